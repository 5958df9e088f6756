"""Roads from scores: centrelines with width, made whole over the cells' edges.

Each cell sees a margin around itself, in which its neighbours come to the same skeleton and the
same network. A step from pixel to pixel belongs to the cell that holds the first of the two, so
that each is written once; where a path leaves a cell, both cells end on the same pixel.
`join_roads` links these ends; a whole path is then finished by the same function wherever it lay.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from scipy.spatial import KDTree
from skimage.morphology import skeletonize

from ...tiling.grid import Cell, Grid, Window
from ...tiling.scores import NODATA, threshold_byte
from ..errors import MappingError
from .centrelines import Piece, Road, finish, width
from .ground import ground_pixel_at
from .masks import Mask, fill_holes, found
from .network import (
    Node,
    Terrain,
    bridged,
    merged,
    pruned,
    without_bits,
)
from .seams import Chain, End, chains, follow
from .skeleton import Path, skeleton_paths

SNAP_PX = 3.0
"""Cut ends of two cells that are no farther apart are taken as one, where they are not equal."""

CLEAR_PX = 4
"""Pixels of a path that are this near to nodata stay where they are: they could move onto it."""


@dataclass(frozen=True)  # without slots, so that the class itself tells the defaults
class RoadRecipe:
    """How scores become roads; sizes are on the ground."""

    threshold: float = 0.5
    """Probability from which a pixel is of a road, in (0, 1]."""

    spur_m: float = 15.0
    """Shorter dead ends at a junction are dropped, and those shorter than the road is wide."""

    min_length_m: float = 30.0
    """Roads connected with nothing else that are shorter are dropped, and loops too."""

    gap_m: float = 20.0
    """Dead ends that look at each other over at most this are joined; 0 for never."""

    hole_m2: float = 20.0
    """Smaller holes in the road are filled, save those with nodata."""

    max_width_m: float = 80.0
    """What holds a square of this is no road: a car park, a runway, water."""

    def __post_init__(self) -> None:
        sizes = (self.spur_m, self.min_length_m, self.gap_m, self.hole_m2)
        if not 0 < self.threshold <= 1 or min(sizes) < 0 or self.max_width_m <= 0:
            raise MappingError(f"wanted a threshold in (0, 1] and no negative size, got {self}")


@dataclass(frozen=True, slots=True)
class Crossings:
    """How the cells' edges were joined: numbers of cut ends."""

    met: int = 0
    """Pairs that end on the same pixel."""

    snapped: int = 0
    """Pairs that end within SNAP_PX of each other."""

    unmatched: int = 0
    """Ends without another: the road ends there."""


def road_margin(grid: Grid, core: Window, recipe: RoadRecipe) -> int:
    """Pixels around a cell on which its roads depend: at least 128, and at least 100 m."""
    reach_m = max(100.0, recipe.max_width_m + recipe.gap_m, recipe.min_length_m + recipe.gap_m)
    return max(128, math.ceil(reach_m / min(ground_pixel_at(grid, core.top, core.left))))


def trace_roads(
    scores_HW: NDArray[np.uint8], view: Window, core: Window, grid: Grid, recipe: RoadRecipe
) -> tuple[list[Road], list[Piece]]:
    """The roads of a cell: those finished, and the pieces that its edge leaves open.

    `scores_HW` are stored scores of `view`, which is `core` with a margin of at least
    `road_margin`.
    """
    known_HW = scores_HW != NODATA
    mask_HW = found(scores_HW, recipe.threshold)
    mask_HW = fill_holes(mask_HW, known_HW, grid, view, recipe.hole_m2)
    mask_HW &= ~_too_wide(mask_HW, grid, core, recipe.max_width_m)
    skeleton_HW: Mask = skeletonize(mask_HW)  # type: ignore[no-untyped-call]  # it has no types
    radii_HW = _radii(mask_HW, skeleton_HW)
    corner = np.array([view.top, view.left])
    terrain = _terrain(scores_HW, skeleton_HW, radii_HW, corner, grid, recipe)
    paths = _network([path + corner for path in skeleton_paths(skeleton_HW)], terrain, recipe)

    nodata_HW = ndimage.maximum_filter(~known_HW, 2 * CLEAR_PX + 1)
    finished, opened = [], []
    for path, cuts in cut(paths, core):
        at = tuple((path - corner).T)
        piece = Piece(path, scores_HW[at], radii_HW[at], nodata_HW[at], cuts)
        if any(cuts):
            opened.append(piece)
        else:
            finished.append(finish(piece, grid))
    return finished, opened


def _network(paths: list[Path], terrain: Terrain, recipe: RoadRecipe) -> list[Path]:
    paths = pruned(paths, terrain, recipe.spur_m)
    paths = merged(paths, terrain, recipe.min_length_m)
    paths = bridged(paths, terrain, recipe.gap_m)
    paths = pruned(paths, terrain, recipe.spur_m)  # what merging and bridging left
    return without_bits(paths, terrain, recipe.min_length_m)


def _terrain(
    scores_HW: NDArray[np.uint8],
    skeleton_HW: Mask,
    radii_HW: NDArray[np.float32],
    corner: NDArray[np.integer],
    grid: Grid,
    recipe: RoadRecipe,
) -> Terrain:
    least, half = threshold_byte(recipe.threshold), threshold_byte(recipe.threshold / 2)

    def pixel_m(node: Node) -> tuple[float, float]:
        return ground_pixel_at(grid, *node)

    def width_m(node: Node) -> float:
        return width(float(radii_HW[tuple(np.array(node) - corner)]), pixel_m(node))

    def passable(path: Path) -> bool:
        inner = tuple((path[1:-1] - corner).T)
        scores = scores_HW[inner]
        if (scores == NODATA).any() or skeleton_HW[inner].any():
            return False
        missed = scores[scores < least]
        return not len(missed) or bool(missed.mean() >= half)

    def known(pixels: Path) -> bool:
        (top, left), (bottom, right) = pixels.min(axis=0) - corner, pixels.max(axis=0) - corner
        around_HW = scores_HW[max(top - 1, 0) : bottom + 2, max(left - 1, 0) : right + 2]
        return not (around_HW == NODATA).any()

    return Terrain(pixel_m, width_m, passable, known)


def _too_wide(mask_HW: Mask, grid: Grid, core: Window, max_width_m: float) -> Mask:
    """The parts of a mask that hold a square of `max_width_m`."""
    side = math.ceil(max_width_m / min(ground_pixel_at(grid, core.top, core.left))) | 1  # odd
    if side > min(mask_HW.shape):
        return np.zeros_like(mask_HW)
    wide_HW: Mask = ndimage.minimum_filter(mask_HW, side, mode="constant")
    if wide_HW.any():
        wide_HW = ndimage.maximum_filter(wide_HW, side, mode="constant")
    return wide_HW


def _radii(mask_HW: Mask, skeleton_HW: Mask) -> NDArray[np.float32]:
    """Distance in pixels to the nearest pixel that is no road, at the skeleton; elsewhere 1.

    Beyond the array there is no road.
    """
    padded = np.pad(mask_HW, 1)
    outside = np.argwhere(ndimage.binary_dilation(padded) & ~padded) - 1
    radii_HW = np.ones(mask_HW.shape, np.float32)
    if len(outside):
        radii_HW[skeleton_HW] = KDTree(outside).query(np.argwhere(skeleton_HW))[0]
    return radii_HW


# -- over the cells' edges -----------------------------------------------------------------


def cut(paths: Sequence[Path], core: Window) -> list[tuple[Path, tuple[bool, bool]]]:
    """What belongs to a cell, each with whether it goes on before its start and behind its end.

    A step between two pixels belongs to the cell that holds the upper of the two (in one row: the
    left one), so the last pixel of a part may lie outside.
    """
    parts = []
    for path in paths:
        one, other = path[:-1], path[1:]
        swap = (one[:, 0] > other[:, 0]) | ((one[:, 0] == other[:, 0]) & (one[:, 1] > other[:, 1]))
        row, col = np.where(swap[:, None], other, one).T
        inside = (core.top <= row) & (row < core.bottom) & (core.left <= col) & (col < core.right)
        bounds = np.flatnonzero(np.diff(np.pad(inside, 1).astype(np.int8)))
        for first, last in bounds.reshape(-1, 2).tolist():
            parts.append((path[first : last + 1], (first > 0, last < len(inside))))
    return parts


def join_roads(opened: Mapping[Cell, Sequence[Piece]], grid: Grid) -> tuple[list[Road], Crossings]:
    """What the cells' edges had cut, whole and finished, and how well it fitted."""
    pieces = [piece for cell in sorted(opened) for piece in opened[cell]]
    owner = [cell for cell in sorted(opened) for _ in opened[cell]]
    linked, crossings = _linked(pieces, owner)
    found = chains(len(pieces), linked)
    return [finish(_whole(pieces, chain), grid, chain.closed) for chain in found], crossings


def _whole(pieces: Sequence[Piece], chain: Chain) -> Piece:
    """Pieces that follow each other as one; the pixel on which two end counts once."""
    path = follow(chain, [piece.path for piece in pieces])
    order = np.flatnonzero(np.append(True, (np.diff(path, axis=0) != 0).any(axis=1)))
    if chain.closed and (path[0] != path[-1]).any():
        order = np.append(order, 0)
    return Piece(
        path[order],
        follow(chain, [piece.scores for piece in pieces])[order],
        follow(chain, [piece.radii_px for piece in pieces])[order],
        follow(chain, [piece.fixed for piece in pieces])[order],
    )


def _linked(pieces: Sequence[Piece], owner: Sequence[Cell]) -> tuple[dict[End, End], Crossings]:
    """Which cut ends are one: those on one pixel, then the nearest of two cells within SNAP_PX."""
    cut_ends = [(number, end) for number in range(len(pieces)) for end in (0, -1)]
    cut_ends = [(number, end) for number, end in cut_ends if pieces[number].cuts[end]]
    if not cut_ends:
        return {}, Crossings()
    at = np.array([pieces[number].path[end] for number, end in cut_ends])
    pairs = KDTree(at).query_pairs(SNAP_PX, output_type="ndarray")
    apart = np.hypot(*(at[pairs[:, 0]] - at[pairs[:, 1]]).T)
    linked: dict[End, End] = {}
    met = snapped = 0
    for k in np.lexsort((pairs[:, 1], pairs[:, 0], apart)).tolist():
        one, other = cut_ends[pairs[k, 0]], cut_ends[pairs[k, 1]]
        if one in linked or other in linked or owner[one[0]] == owner[other[0]]:
            continue
        linked[one], linked[other] = other, one
        met, snapped = met + int(apart[k] == 0), snapped + int(apart[k] > 0)
    return linked, Crossings(met, snapped, len(cut_ends) - 2 * (met + snapped))
