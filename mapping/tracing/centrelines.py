"""From a path of pixels to a road: straightened, measured, in a fixed sense."""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import shapely
from numpy.typing import NDArray

from ...tiling.grid import Grid
from ...tiling.scores import LEVELS
from .ground import ground_pixel_at
from .network import Node, line_m, topmost
from .skeleton import Path

SMOOTH_PX = 4
"""Pixels to either side over which a path is averaged."""

TOLERANCE_PX = 1.0
"""How far a simplified line may be from the averaged path."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A path, or a part of one that lies in one cell, with what was found along it."""

    path: Path
    """Row and column of each pixel, absolute."""

    scores: NDArray[np.uint8]
    """Stored score at each pixel."""

    radii_px: NDArray[np.float32]
    """From each pixel's centre to the middle of the nearest pixel that is no road."""

    fixed: NDArray[np.bool_]
    """Whether each pixel is to stay where it is, since nodata is near."""

    cuts: tuple[bool, bool] = (False, False)
    """Whether the path goes on before its first and behind its last pixel, in another cell."""


@dataclass(frozen=True, slots=True)
class Road:
    """A finished road between two nodes."""

    line: NDArray[np.float64]
    """Row and column of its points, absolute; half way between whole numbers is a pixel's edge."""

    score: float
    """Mean probability along the line."""

    width_m: float
    length_m: float

    place: Node
    """The pixel half way along the path: no two roads share one."""


def finish(piece: Piece, grid: Grid, ring: bool = False) -> Road:
    """A whole path as a road: in a fixed sense, without staircase, measured.

    `ring`: it has no node, and its start is to be chosen.
    """
    order = np.arange(len(piece.path))
    if ring:
        start = topmost(piece.path[:-1])
        order = np.concatenate([order[start:-1], order[: start + 1]])
    path = piece.path[order]
    if path[::-1].tolist() < path.tolist():
        path, order = path[::-1], order[::-1]
    place = (int(path[len(path) // 2, 0]), int(path[len(path) // 2, 1]))
    pixel_m = ground_pixel_at(grid, *place)
    line = straightened(path, piece.fixed[order])
    return Road(
        line,
        float(piece.scores[order].mean() / LEVELS),
        width(float(np.median(piece.radii_px[order])), pixel_m),
        line_m(line, pixel_m),
        place,
    )


def straightened(path: Path, fixed: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The path averaged and simplified, its ends and `fixed` pixels where they were.

    Where that would cross itself, the path stays as it is.
    """
    stops = np.union1d(np.flatnonzero(fixed), [0, len(path) - 1])
    parts = [_straightened_between(path[one : other + 1]) for one, other in pairwise(stops)]
    line = np.concatenate([part[:-1] for part in parts] + [path[-1:]])
    return line if shapely.LineString(line).is_simple else path.astype(np.float64)


def _straightened_between(path: Path) -> NDArray[np.float64]:
    if len(path) == 2:
        return path.astype(np.float64)
    line = shapely.LineString(averaged(path, SMOOTH_PX))
    return shapely.get_coordinates(shapely.simplify(line, TOLERANCE_PX))


def averaged(path: Path, reach: int) -> NDArray[np.float64]:
    """Each point as the mean of those up to `reach` before and behind it; less towards the ends."""
    place = np.arange(len(path))
    reaches = np.minimum(np.minimum(place, place[::-1]), reach)
    sums = np.vstack([np.zeros((1, 2), np.int64), np.cumsum(path, axis=0)])
    totals = sums[place + reaches + 1] - sums[place - reaches]
    means: NDArray[np.float64] = totals / (2 * reaches + 1)[:, None]
    return means


def width(radius_px: float, pixel_m: tuple[float, float]) -> float:
    """Ground width of a road whose middle pixel has this radius (as in Piece)."""
    # Of drawn roads of 3 to 20 px at all angles this is 0.2 px too wide on average.
    return 2 * radius_px * math.sqrt(pixel_m[0] * pixel_m[1])
