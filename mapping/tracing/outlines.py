"""Outlines of pixels made into outlines of houses: no staircase, still apart, still valid.

All in pixels of the grid: x is the column, y the row, both absolute.
"""

import numpy as np
import shapely
from numpy.typing import NDArray

Polygons = NDArray[np.object_]
"""Shapely polygons."""

KEPT_IOU = 0.85
"""A simplified building that agrees less than this with its pixels keeps more of their outline."""


def canonical(polygons: Polygons) -> Polygons:
    """The same areas, with vertices at corners alone, rings and their starts in a fixed order."""
    # A ring in normal form starts at its lowest corner, so that simplify need not drop its start.
    straight = shapely.simplify(shapely.normalize(polygons), 0)
    normal: Polygons = shapely.normalize(straight)
    return normal


def simplified(polygons: Polygons, clusters: NDArray[np.integer], tolerance_px: float) -> Polygons:
    """Pixel outlines without staircases, valid and apart, none far from its pixels.

    `clusters` numbers the sets of polygons that are near each other: what becomes of one depends
    on its cluster alone, and a cluster is changed as a whole. First its staircases are made
    straight and slight corners dropped; if that moves a wall into another or a building loses its
    shape (KEPT_IOU), slight corners alone are dropped; and if that does not do, nothing is.
    """
    result = polygons.copy()
    waiting = np.ones(len(polygons), bool)
    for outlines in (without_stairs(polygons), polygons):
        at = np.flatnonzero(waiting)
        tried = _simplified_by_cluster(outlines[at], clusters[at], tolerance_px)
        good = ~np.isin(clusters[at], clusters[at][_spoilt(tried, polygons[at], clusters[at])])
        result[at[good]] = tried[good]
        waiting[at[good]] = False
    return result


def without_stairs(polygons: Polygons) -> Polygons:
    """Outlines of pixels in which each step is its middle.

    A step is an edge of one pixel between two corners that turn opposite ways: what is left of a
    straight wall that runs askew to the grid. The middles of its steps lie on the wall.
    """
    if not len(polygons):
        return polygons
    kind, closed_xy, (ring_starts, polygon_starts) = shapely.to_ragged_array(polygons)
    ring = np.repeat(np.arange(len(ring_starts) - 1), np.diff(ring_starts))
    last = np.zeros(len(closed_xy), bool)
    last[ring_starts[1:] - 1] = True
    xy, ring = closed_xy[~last], ring[~last]
    starts = ring_starts[:-1] - np.arange(len(ring_starts) - 1)
    ends = np.append(starts[1:], len(xy)) - 1
    after, before = np.arange(len(xy)) + 1, np.arange(len(xy)) - 1
    after[ends], before[starts] = starts, ends

    edge = xy[after] - xy
    turn = np.sign(edge[before, 0] * edge[:, 1] - edge[before, 1] * edge[:, 0])
    step = (np.abs(edge).sum(axis=1) == 1) & (turn * turn[after] < 0)
    corner = ~(step | step[before])

    keep = np.column_stack([corner, step])
    points = np.stack([xy, (xy + xy[after]) / 2], axis=1)[keep]
    counts = np.bincount(np.column_stack([ring, ring])[keep], minlength=len(starts))
    ends = np.cumsum(counts)
    closed = np.insert(points, ends, points[ends - counts], axis=0)
    ring_starts = np.concatenate([[0], np.cumsum(counts + 1)])
    smooth: Polygons = shapely.from_ragged_array(kind, closed, (ring_starts, polygon_starts))
    return smooth


def _simplified_by_cluster(
    polygons: Polygons, clusters: NDArray[np.integer], tolerance_px: float
) -> Polygons:
    result = polygons.copy()
    order = np.argsort(clusters, kind="stable")
    valid = shapely.is_valid(polygons)
    for members in np.split(order, np.flatnonzero(np.diff(clusters[order])) + 1):
        if valid[members].all():
            result[members] = shapely.coverage_simplify(polygons[members], tolerance_px)
    return result


def _spoilt(tried: Polygons, pixels: Polygons, clusters: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Which polygons are invalid, unlike their pixels, or overlap another of their cluster."""
    spoilt: NDArray[np.bool_] = ~shapely.is_valid(tried)
    spoilt |= shapely.get_type_id(tried) != shapely.GeometryType.POLYGON
    at = np.flatnonzero(~spoilt)
    both = shapely.area(shapely.intersection(tried[at], pixels[at]))
    either = shapely.area(tried[at]) + shapely.area(pixels[at]) - both
    spoilt[at[both < KEPT_IOU * either]] = True
    at = np.flatnonzero(~spoilt)
    one, other = shapely.STRtree(tried[at]).query(tried[at], predicate="intersects")
    near = (one < other) & (clusters[at[one]] == clusters[at[other]])
    one, other = at[one[near]], at[other[near]]
    meeting = shapely.area(shapely.intersection(tried[one], tried[other])) > 0
    spoilt[one[meeting]] = True
    return spoilt
