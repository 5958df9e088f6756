"""What follows what, and what lies on what: the geometry under comparison and evaluation.

Lines are held against lines in short pieces: a piece agrees when its middle lies within the
tolerance of the other side. A length is then a sum of pieces, so nothing is counted twice however
lines cross, overlap or double back, and a line can be cut where it leaves the other side.
All coordinates are ground metres (`metres.to_metric`).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely.geometry.base import BaseGeometry

Geometries = NDArray[Any]
Indices = NDArray[np.intp]
Lengths = NDArray[np.float64]

PIECE_M = 1.0
"""Longest piece of a line; an agreeing length is right to half of it at each end."""

_CHUNK = 100_000
"""Pieces looked up at a time, so that their points take little memory."""


@dataclass(frozen=True, slots=True, eq=False)
class Overlaps:
    """The pairs of two sets of areas that share some ground: one entry for each pair."""

    one: Indices
    """Index in the first set; the pairs are sorted by it, then by `other`."""

    other: Indices
    """Index in the second set."""

    shared_m2: Lengths


def overlaps(one: Geometries, other: Geometries) -> Overlaps:
    """All pairs of valid areas that overlap; those that only touch share 0 m2 and are left out."""
    pair = shapely.STRtree(other).query(one, predicate="intersects")
    left, right = pair[:, np.lexsort(pair[::-1])]
    shared_m2 = shapely.area(shapely.intersection(one[left], other[right]))
    some = shared_m2 > 0
    return Overlaps(left[some], right[some], shared_m2[some])


def valid_areas(areas: Geometries) -> Geometries:
    """The areas, those that cross themselves repaired (their lines and points dropped)."""
    broken = ~shapely.is_valid(areas)
    repaired = areas.copy()
    repaired[broken] = shapely.make_valid(areas[broken], method="structure", keep_collapsed=False)
    return repaired


def spots(areas: Geometries) -> Lengths:
    """A point inside each area, that stands for it: one row of x and y an area."""
    points = shapely.point_on_surface(areas)
    return np.stack([shapely.get_x(points), shapely.get_y(points)], axis=1)


def inside(points_XY: Lengths, area: BaseGeometry | None) -> NDArray[np.bool_]:
    """Whether each point lies in `area`; None is everywhere."""
    if area is None:
        return np.ones(len(points_XY), bool)
    shapely.prepare(area)
    return np.asarray(shapely.intersects_xy(area, *points_XY.T), bool)


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """Lines cut into pieces: one entry for each piece, line by line and along each line."""

    line: Indices
    """Index of the line that the piece belongs to."""

    vertex: Indices
    """Index, in that line, of the vertex before the piece's start."""

    share: Lengths
    """How far from that vertex to the next one the piece starts, in [0, 1)."""

    length_m: Lengths
    middle_XY: Lengths
    """Its middle: one row of x and y a piece."""


def cut_in_pieces(lines: Geometries) -> Pieces:
    """The pieces, each at most PIECE_M long, of an array of LineStrings (None has none)."""
    points, line = shapely.get_coordinates(lines, return_index=True)
    start = np.flatnonzero(line[:-1] == line[1:])
    step_XY = points[start + 1] - points[start]
    length = np.hypot(*step_XY.T)
    count = np.maximum(1, np.ceil(length / PIECE_M)).astype(np.intp)
    owner = np.repeat(np.arange(len(start)), count)
    number = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
    share = number / count[owner]
    middle = points[start[owner]] + step_XY[owner] * (share + 0.5 / count[owner])[:, None]
    first = np.searchsorted(line, np.arange(len(lines)))
    at = start[owner]
    return Pieces(line[at], at - first[line[at]], share, (length / count)[owner], middle)


def nearest(points_XY: Lengths, others: Geometries, reach_m: float) -> Indices:
    """For each point the index of the nearest line or area within `reach_m`; -1 if none is."""
    parts, owner = _parts(others)
    tree = shapely.STRtree(parts)
    found = np.full(len(points_XY), -1, np.intp)
    for start in range(0, len(points_XY) if len(parts) else 0, _CHUNK):
        points = shapely.points(points_XY[start : start + _CHUNK])
        which, near = tree.query_nearest(points, max_distance=reach_m, all_matches=False)
        found[start + which] = owner[near]
    return found


def near_any(points_XY: Lengths, others: Geometries, reach_m: float) -> NDArray[np.bool_]:
    """Whether each point has one of `others` within `reach_m`."""
    return nearest(points_XY, others, reach_m) >= 0


def _parts(geometries: Geometries) -> tuple[Geometries, Indices]:
    """Lines as their single segments, which a tree searches far faster, areas whole; and whose."""
    is_area = shapely.get_dimensions(geometries) == 2
    areas = np.flatnonzero(is_area)
    points, line = shapely.get_coordinates(geometries, return_index=True)
    start = np.flatnonzero(line[:-1] == line[1:])
    start = start[~is_area[line[start]]]
    segments = shapely.linestrings(np.stack([points[start], points[start + 1]], axis=1))
    return np.concatenate([segments, geometries[areas]]), np.concatenate([line[start], areas])
