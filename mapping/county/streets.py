"""The county's roads and river on the ground: bent, cut at the water, joined by shared nodes."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import shapely
from shapely import LineString, Point, Polygon
from shapely.ops import substring

from .districts import MARGIN_M, District, Draft, Warp, divide
from .names import Names
from .plan import ARTERIAL, WIDTHS_M, Road

_LONGEST_BRIDGE_M = 95.0
"""A road that would run along the river rather than over it ends there."""


@dataclass(frozen=True, slots=True)
class Streets:
    """The county before anything stands along its streets."""

    roads: tuple[Road, ...]
    districts: tuple[District, ...]
    river: Polygon
    bridges: tuple[Polygon, ...]


def lay_streets(size_m: tuple[int, int], rng: np.random.Generator) -> Streets:
    """Draw the roads and say what each piece of land between them is for."""
    warp = Warp.random(rng)
    drafts, districts = divide(size_m, warp, rng)
    river = shapely.buffer(_river(size_m, rng), rng.uniform(11, 15))
    names = Names(rng)
    roads = [
        road for draft in drafts for road in _built(draft, warp, river, size_m, names.next, rng)
    ]
    bridges = tuple(
        shapely.buffer(road.line, road.width_m / 2 + 2.2, cap_style="flat")
        for road in roads
        if road.bridge
    )
    return Streets(tuple(with_shared_nodes(roads)), tuple(districts), river, bridges)


def _river(size_m: tuple[int, int], rng: np.random.Generator) -> LineString:
    """The middle of a river that winds from south to north through the county's east."""
    width, height = size_m
    v = np.arange(-MARGIN_M, height + MARGIN_M, 12.0)
    first, second = rng.uniform(0, 2 * math.pi, 2)
    swing = min(70.0, width / 10)
    u = width * rng.uniform(0.66, 0.76) + swing * np.sin(v / rng.uniform(170, 230) + first)
    u += swing / 3 * np.sin(v / 75 + second) + rng.uniform(-0.1, 0.1) * v
    return LineString(np.stack([u, v], axis=1))


def _built(
    draft: Draft,
    warp: Warp,
    river: Polygon,
    size_m: tuple[int, int],
    next_name: Callable[[], str],
    rng: np.random.Generator,
) -> Iterator[Road]:
    """The stretches of a street on the ground: cut at the county's edge and at the river."""
    whole = warp.line(draft.points)
    usual = Road(
        line=whole,
        kind=draft.kind,
        width_m=round(WIDTHS_M[draft.kind] * rng.uniform(0.93, 1.08), 1),
        street=next_name() if draft.kind != "track" else "",
        pavement=draft.kind != "track" and rng.random() < 0.6,
    )
    for piece in _pieces(whole.intersection(shapely.box(0, 0, *size_m))):
        if draft.kind in ARTERIAL:
            yield from _over(replace(usual, line=piece), river)
        else:
            yield from _beside(replace(usual, line=piece), river, draft.is_open)


def _over(road: Road, river: Polygon) -> Iterator[Road]:
    """A road that crosses the river on bridges."""
    wet = [road.line.project(Point(p)) for p in _crossings(road.line, river)]
    cuts = [0.0]
    for low, high in zip(wet[::2], wet[1::2], strict=False):
        cuts += [max(low - 7, 1.0), min(high + 7, road.line.length - 1.0)]
    cuts.append(road.line.length)
    for index, (low, high) in enumerate(zip(cuts, cuts[1:], strict=False)):
        is_bridge = index % 2 == 1
        if high - low > 0.5 and not (is_bridge and high - low > _LONGEST_BRIDGE_M):
            (stretch,) = _pieces(substring(road.line, low, high))
            yield replace(road, line=stretch, bridge=is_bridge)


def _crossings(line: LineString, river: Polygon) -> Iterator[tuple[float, float]]:
    """Where a line enters and leaves the river, in order along the line."""
    points = shapely.get_coordinates(line.intersection(river.exterior))
    ordered = sorted(points.tolist(), key=lambda point: line.project(Point(point)))
    # A road that begins or ends in mid-river, at the county's edge, has no bridge there.
    first = 1 if river.contains(Point(line.coords[0])) else 0
    yield from ((x, y) for x, y in ordered[first : first + (len(ordered) - first) // 2 * 2])


def _beside(road: Road, river: Polygon, is_open: bool) -> Iterator[Road]:
    """A street that stops before the river; what is left must still hang on the network."""
    ends = {road.line.coords[0], road.line.coords[-1]} if is_open else {road.line.coords[0]}
    for piece in _pieces(road.line.difference(river.buffer(18))):
        if piece.length > 35 and ends & {piece.coords[0], piece.coords[-1]}:
            cut = piece.coords[-1] != road.line.coords[-1]
            circle = road.kind == "residential" and (cut or not is_open)
            forwards = piece if piece.coords[0] in ends else piece.reverse()
            yield replace(road, line=forwards, turning_circle=circle)


def _pieces(shape: shapely.Geometry) -> list[LineString]:
    return [part for part in shapely.get_parts(shape) if isinstance(part, LineString) and part]


def with_shared_nodes(roads: Sequence[Road]) -> list[Road]:
    """The roads with a vertex wherever two of them meet, as in OSM."""
    extra: dict[int, list[Point]] = {}
    lines = [road.line for road in roads]
    pairs = shapely.STRtree(lines).query(lines, predicate="dwithin", distance=0.05)
    for i, j in sorted(zip(*pairs.tolist(), strict=True)):
        if i < j:
            for point in _meetings(lines[i], lines[j]):
                extra.setdefault(i, []).append(point)
                extra.setdefault(j, []).append(point)
    return [
        replace(road, line=_with_vertices(road.line, extra.get(index, [])))
        for index, road in enumerate(roads)
    ]


def _meetings(one: LineString, other: LineString) -> list[Point]:
    """Where two lines cross, or one ends on the other."""
    met = [Point(xy) for xy in shapely.get_coordinates(one.intersection(other))]
    for line, onto in ((one, other), (other, one)):
        for end in (line.coords[0], line.coords[-1]):
            near = Point(end)
            if onto.distance(near) < 0.05 and all(near.distance(point) > 0.1 for point in met):
                met.append(near)
    return met


def _with_vertices(line: LineString, points: Sequence[Point]) -> LineString:
    """The line with each point as a vertex, taking the place of one that is very near."""
    vertices = [(line.project(Point(xy)), xy, False) for xy in line.coords]
    for point in points:
        along = line.project(point)
        vertices = [old for old in vertices if old[2] or abs(old[0] - along) > 0.3]
        vertices.append((along, (point.x, point.y), True))
    return LineString([xy for _, xy, _ in sorted(vertices)])
