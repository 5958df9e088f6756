"""Which tiles are held back from training, so that figures and thresholds are honest."""

from collections.abc import Iterable

import numpy as np
from shapely import STRtree, box
from shapely.geometry.base import BaseGeometry

from ..tiling.grid import Cell, Grid, Window
from .errors import ModelError

WHOLE_CELLS = 10
"""From so many cells on, whole cells are held back: neighbouring tiles resemble one another."""


def hold_back(grid: Grid, cells: Iterable[Cell], share: float, seed: int) -> frozenset[Window]:
    """A share of the cells' tiles, chosen by a seed; whole cells where there are ten or more.

    A share above 0 holds back at least one, and never all. ModelError for a share outside [0, 1).
    """
    if not 0 <= share < 1:
        raise ModelError(f"the share that is held back is in [0, 1), got {share}")
    groups = [[*grid.window(cell).lattice(grid.tile)] for cell in sorted(cells)]
    if len(groups) < WHOLE_CELLS:
        groups = [[tile] for tiles in groups for tile in tiles]
    count = min(max(round(share * len(groups)), int(share > 0)), len(groups) - 1)
    if count <= 0:
        return frozenset()
    chosen = np.random.default_rng(seed).permutation(len(groups))[:count]
    return frozenset(tile for number in chosen for tile in groups[number])


def touching(grid: Grid, cells: Iterable[Cell], areas: Iterable[BaseGeometry]) -> frozenset[Window]:
    """The cells' tiles that touch one of the polygons `areas`, in the grid's CRS."""
    tree = STRtree(list(areas))
    tiles = [tile for cell in cells for tile in grid.window(cell).lattice(grid.tile)]
    outlines = [box(*grid.bounds(tile)) for tile in tiles]
    found, _ = tree.query(outlines, predicate="intersects")
    return frozenset(tiles[number] for number in np.unique(found))
