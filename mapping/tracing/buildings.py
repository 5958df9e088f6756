"""Buildings from scores: polygons of connected pixels, made whole over the cells' edges.

A building is a set of found pixels that hang together over pixel edges. Buildings within LINK
pixels of each other make a *cluster*, and a cluster is what has to be whole before its outlines
are simplified. What touches the edge of a cell stays *open*: pixel outlines in whole numbers, with
sums that add. `join_buildings` makes it whole and finishes it by the same function as what never
was cut, so the result does not depend on the cells.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
import shapely
from affine import Affine
from numpy.typing import NDArray
from rasterio.features import shapes
from scipy import ndimage

from ...tiling.grid import Cell, Grid, Window
from ...tiling.scores import LEVELS, NODATA
from ..errors import MappingError
from .ground import ground_area
from .masks import fill_holes, found, hole_pixels
from .outlines import Polygons, canonical, simplified
from .seams import NONE, Sides, groups

LINK = 1
"""Pixels by which found pixels are grown to find what is near: gaps of 2 LINK pixels link."""


@dataclass(frozen=True)  # without slots, so that the class itself tells the defaults
class BuildingRecipe:
    """How scores become buildings; areas are on the ground."""

    threshold: float = 0.5
    """Probability from which a pixel is of a building, in (0, 1]."""

    min_area_m2: float = 15.0
    """Smaller ones are dropped."""

    hole_m2: float = 5.0
    """Smaller holes are filled, save those with nodata."""

    tolerance_px: float = 1.0
    """Square root of the area of corners that are too slight to keep; 0 for the pixels' edges."""

    def __post_init__(self) -> None:
        sizes = (self.min_area_m2, self.hole_m2, self.tolerance_px)
        if not 0 < self.threshold <= 1 or min(sizes) < 0:
            raise MappingError(f"wanted a threshold in (0, 1] and no negative size, got {self}")


@dataclass(frozen=True, slots=True)
class Pieces:
    """Buildings, or parts of them, as pixels: one entry each."""

    outlines: Polygons
    """Along pixel edges: x is the column, y the row, absolute and whole."""

    pixels: NDArray[np.int64]

    totals: NDArray[np.int64]
    """Sum of the stored scores over the pixels."""

    clusters: NDArray[np.int32]
    """Number of the cluster, from 0."""

    def take(self, which: NDArray[np.bool_] | NDArray[np.integer]) -> Self:
        """Some of them."""
        return type(self)(
            self.outlines[which], self.pixels[which], self.totals[which], self.clusters[which]
        )


@dataclass(frozen=True, slots=True)
class OpenBuildings:
    """What a cell cannot finish alone: the clusters that touch its edge."""

    pieces: Pieces

    beside_nodata: NDArray[np.bool_]
    """By cluster: whether it comes within LINK of nodata."""

    piece_sides: Sides
    """Numbers of `pieces` along the edge."""

    cluster_sides: Sides


@dataclass(frozen=True, slots=True)
class Buildings:
    """Finished buildings, sorted by place: one entry each."""

    outlines: Polygons
    """In pixels: x is the column, y the row, absolute."""

    scores: NDArray[np.float64]
    """Mean probability over a building's pixels."""

    areas_m2: NDArray[np.float64]
    """On the ground."""

    places: NDArray[np.int64]
    """Row and column of the leftmost of its topmost pixels: no two share one."""


def building_margin(grid: Grid, core: Window, recipe: BuildingRecipe) -> int:
    """Pixels around a cell on which its buildings depend."""
    return hole_pixels(grid, core, recipe.hole_m2) + LINK + 1


def trace_buildings(
    scores_HW: NDArray[np.uint8], view: Window, core: Window, grid: Grid, recipe: BuildingRecipe
) -> tuple[Buildings, OpenBuildings]:
    """The buildings of a cell: those finished, and those that its edge leaves open.

    `scores_HW` are stored scores of `view`, which is `core` with a margin of at least
    `building_margin`.
    """
    known_HW = scores_HW != NODATA
    mask_HW = found(scores_HW, recipe.threshold)
    mask_HW = fill_holes(mask_HW, known_HW, grid, view, recipe.hole_m2)
    near_HW = ndimage.maximum_filter(mask_HW, 2 * LINK + 1)
    inside = core.slices(view)
    clusters_HW, count = ndimage.label(near_HW[inside])
    clusters_HW -= 1  # numbers from 0; NONE where there is none
    pieces, pieces_HW = _pieces(mask_HW[inside], scores_HW[inside], clusters_HW, core)
    beside_nodata = np.zeros(count + 1, bool)
    beside_nodata[clusters_HW[~known_HW[inside]]] = True

    cluster_sides = Sides.of(clusters_HW)
    open_clusters = cluster_sides.numbers()
    is_open = np.isin(pieces.clusters, open_clusters)
    opened = pieces.take(is_open)
    return finish(pieces.take(~is_open), beside_nodata, grid, recipe), OpenBuildings(
        Pieces(
            opened.outlines,
            opened.pixels,
            opened.totals,
            np.searchsorted(open_clusters, opened.clusters).astype(np.int32),
        ),
        beside_nodata[open_clusters],
        Sides.of(pieces_HW).renumbered(np.flatnonzero(is_open).astype(np.int32)),
        cluster_sides.renumbered(open_clusters),
    )


def join_buildings(
    opened: Mapping[Cell, OpenBuildings], grid: Grid, recipe: BuildingRecipe
) -> Buildings:
    """What the cells' edges had cut, whole and finished."""
    cells = sorted(opened)
    if not cells:
        return finish(_gathered([]), np.empty(0, bool), grid, recipe)
    clusters = groups(
        {cell: opened[cell].cluster_sides for cell in cells},
        {cell: len(opened[cell].beside_nodata) for cell in cells},
    )
    buildings = groups(
        {cell: opened[cell].piece_sides for cell in cells},
        {cell: len(opened[cell].pieces.outlines) for cell in cells},
    )
    beside_nodata = np.zeros(1 + max(int(c.max(initial=NONE)) for c in clusters.values()), bool)
    for cell in cells:
        beside_nodata[clusters[cell][opened[cell].beside_nodata]] = True
    parts = _gathered(
        [
            Pieces(p.outlines, p.pixels, p.totals, clusters[cell][p.clusters])
            for cell in cells
            for p in [opened[cell].pieces]
        ]
    )
    whole = np.concatenate([buildings[cell] for cell in cells])
    return finish(_united(parts, whole), beside_nodata, grid, recipe)


def finish(
    pieces: Pieces, beside_nodata: NDArray[np.bool_], grid: Grid, recipe: BuildingRecipe
) -> Buildings:
    """Whole clusters of whole buildings, without the small ones, simplified and measured.

    A cluster beside nodata (`beside_nodata`, by cluster) keeps its pixels' edges: a straightened
    wall could lean onto what was not looked at.
    """
    places = _places(pieces.outlines)
    m2 = ground_area(grid, places[:, 0], places[:, 1])
    large = np.flatnonzero(pieces.pixels * m2 >= recipe.min_area_m2)
    chosen = large[np.lexsort((places[large, 1], places[large, 0]))]
    kept, m2 = pieces.take(chosen), m2[chosen]
    outlines = canonical(kept.outlines)
    free = ~beside_nodata[kept.clusters]
    if recipe.tolerance_px > 0:
        outlines[free] = simplified(outlines[free], kept.clusters[free], recipe.tolerance_px)
    return Buildings(
        outlines,
        kept.totals / (kept.pixels * LEVELS),
        shapely.area(outlines) * m2,
        places[chosen],
    )


def _pieces(
    mask_HW: NDArray[np.bool_],
    scores_HW: NDArray[np.uint8],
    clusters_HW: NDArray[np.int32],
    core: Window,
) -> tuple[Pieces, NDArray[np.int32]]:
    """The connected pixels of a cell, and the array of their numbers."""
    pieces_HW, count = ndimage.label(mask_HW)
    pieces_HW -= 1
    numbers = pieces_HW[mask_HW]
    clusters = np.empty(count, np.int32)
    clusters[numbers] = clusters_HW[mask_HW]  # the same for all pixels of a piece
    outlines = np.empty(count, object)
    at = Affine.translation(core.left, core.top)
    for polygon, number in shapes(pieces_HW, mask_HW, connectivity=4, transform=at):
        shell, *holes = polygon["coordinates"]
        outlines[int(number)] = shapely.Polygon(shell, holes)
    pieces = Pieces(
        outlines,
        np.bincount(numbers, minlength=count),
        # Whole numbers far below 2**53, so the sums of floats are exact.
        np.bincount(numbers, scores_HW[mask_HW], minlength=count).astype(np.int64),
        clusters,
    )
    return pieces, pieces_HW


def _gathered(parts: list[Pieces]) -> Pieces:
    none = Pieces(
        np.empty(0, object), np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int32)
    )
    return Pieces(
        np.concatenate([p.outlines for p in (none, *parts)]),
        np.concatenate([p.pixels for p in (none, *parts)]),
        np.concatenate([p.totals for p in (none, *parts)]),
        np.concatenate([p.clusters for p in (none, *parts)]),
    )


def _united(parts: Pieces, whole: NDArray[np.integer]) -> Pieces:
    """Parts of one building (`whole` numbers them from 0) as one: outlines united, sums added."""
    order = np.argsort(whole, kind="stable")
    _, first = np.unique(whole[order], return_index=True)
    if not len(order):
        return parts
    outlines = np.empty(len(first), object)
    for number, members in enumerate(np.split(order, first[1:])):
        outlines[number] = shapely.union_all(parts.outlines[members])
    return Pieces(
        outlines,
        np.add.reduceat(parts.pixels[order], first),
        np.add.reduceat(parts.totals[order], first),
        parts.clusters[order[first]],
    )


def _places(outlines: Polygons) -> NDArray[np.int64]:
    """Row and column of the leftmost of each polygon's topmost pixels."""
    xy, which = shapely.get_coordinates(outlines, return_index=True)
    order = np.lexsort((xy[:, 0], xy[:, 1], which))
    _, first = np.unique(which[order], return_index=True)
    return xy[order[first]][:, ::-1].astype(np.int64)
