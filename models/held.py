"""Which tiles are held back from training, so that figures and thresholds are honest."""

from collections.abc import Iterable, Sequence

import numpy as np
import shapely
from shapely import STRtree, box
from shapely.geometry.base import BaseGeometry

from ..tiling.grid import Cell, Grid, Window
from .errors import ModelError

WHOLE_CELLS = 10
"""From so many cells on, whole cells are held back: neighbouring tiles resemble one another."""


def hold_back(
    grid: Grid, cells: Iterable[Cell], area: BaseGeometry, share: float, seed: int
) -> frozenset[Window]:
    """A share of the cells' tiles, chosen by a seed; whole cells where there are ten or more.

    Chosen from the tiles whose middle lies in `area`, a polygon in the grid's CRS of where labels
    are known; from those that touch it where fewer than two do. A share above 0 holds back at
    least one, and never all. ModelError for a share outside [0, 1).
    """
    if not 0 <= share < 1:
        raise ModelError(f"the share that is held back is in [0, 1), got {share}")
    tiles = [t for cell in sorted(cells) for t in grid.window(cell).lattice(grid.tile)]
    outlines = np.array([box(*grid.bounds(tile)) for tile in tiles])
    shapely.prepare(area)
    inside = shapely.intersects(area, shapely.centroid(outlines))
    if inside.sum() < 2:
        inside = shapely.intersects(area, outlines)
    known = [tile for tile, there in zip(tiles, inside, strict=True) if there]
    groups = _groups(grid, known)
    count = min(max(round(share * len(groups)), int(share > 0)), len(groups) - 1)
    if count <= 0:
        return frozenset()
    chosen = np.random.default_rng(seed).permutation(len(groups))[:count]
    return frozenset(tile for number in chosen for tile in groups[number])


def _groups(grid: Grid, tiles: Sequence[Window]) -> list[list[Window]]:
    """What is held back together: the tiles of a cell, or each by itself where cells are few."""
    groups: dict[Cell, list[Window]] = {}
    for tile in tiles:
        (cell,) = grid.cells(tile)
        groups.setdefault(cell, []).append(tile)
    return list(groups.values()) if len(groups) >= WHOLE_CELLS else [[tile] for tile in tiles]


def touching(grid: Grid, cells: Iterable[Cell], areas: Iterable[BaseGeometry]) -> frozenset[Window]:
    """The cells' tiles that touch one of the polygons `areas`, in the grid's CRS."""
    tree = STRtree(list(areas))
    tiles = [tile for cell in cells for tile in grid.window(cell).lattice(grid.tile)]
    outlines = [box(*grid.bounds(tile)) for tile in tiles]
    found, _ = tree.query(outlines, predicate="intersects")
    return frozenset(tiles[number] for number in np.unique(found))
