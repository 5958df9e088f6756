"""How the county's land is divided: districts between roads, and small streets inside them.

Everything here is drawn straight on paper, in coordinates (u, v), and the paper is then bent
smoothly: so streets curve as real ones do, and still meet where they met on paper. The paper is
halved again and again by ever smaller roads; what is left between them are districts, each with
one use.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import shapely
from shapely import LineString, Polygon

from .plan import Floats, Frame

MARGIN_M = 140.0
"""Metres of paper around the county, so that its edge is bent like its middle."""

_LARGEST = 500.0
"""Metres from which a district is halved once more."""

_USES = (
    ("town", "suburb", "retail", "park", "suburb", "school", "town", "suburb", "flats")
    + ("suburb", "industry", "suburb", "suburb", "farm", "suburb", "wood", "suburb", "suburb")
    + ("suburb", "farm", "suburb", "suburb", "wood", "suburb", "farm", "suburb")
)
"""Uses of districts from the town's middle outwards; further out are farms and woods."""

_RURAL = ("farm", "wood")

UV = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Warp:
    """A smooth bending of the paper: a sum of long waves."""

    waves: Floats
    """One row each: wave number in u and v, phase, shift in x and y in metres."""

    @classmethod
    def random(cls, rng: np.random.Generator, count: int = 5) -> Self:
        length = rng.uniform(600, 1500, count)
        heading = rng.uniform(0, 2 * math.pi, count)
        # A shift of 1/26 of the wave's length bends a street by some 14 degrees.
        shift = length / 26 * rng.uniform(0.5, 1.0, count)
        push = rng.uniform(0, 2 * math.pi, count)
        number = 2 * math.pi / length
        columns = (
            number * np.cos(heading),
            number * np.sin(heading),
            rng.uniform(0, 2 * math.pi, count),
            shift * np.cos(push),
            shift * np.sin(push),
        )
        return cls(np.stack(columns, axis=1))

    def bend(self, points_N2: Floats) -> Floats:
        """From (u, v) to (x, y)."""
        ku, kv, phase, dx, dy = self.waves.T
        turn = np.sin(points_N2[:, :1] * ku + points_N2[:, 1:] * kv + phase)
        return np.asarray(points_N2 + np.stack([turn @ dx, turn @ dy], axis=1))

    def line(self, points: Sequence[UV]) -> LineString:
        """A line on paper, on the ground."""
        dense = shapely.segmentize(LineString(points), 9.0)
        return LineString(self.bend(shapely.get_coordinates(dense)))

    def frame(self, u: float, v: float) -> Frame:
        """The frame at a point whose s axis follows u there."""
        (x, y), (x1, y1) = self.bend(np.array([[u, v], [u + 1.0, v]]))
        return Frame(float(x), float(y), math.atan2(y1 - y, x1 - x))


@dataclass(frozen=True, slots=True)
class District:
    """What lies between roads."""

    use: str
    left: float
    bottom: float
    right: float
    top: float
    """Edges on paper, in metres."""

    outline: Polygon
    """On the ground."""

    frame: Frame
    """In its middle, s along u."""

    @property
    def edges(self) -> tuple[float, float, float, float]:
        """Left, bottom, right and top on paper."""
        return self.left, self.bottom, self.right, self.top

    @property
    def size(self) -> tuple[float, float]:
        """Along u and v."""
        return self.right - self.left, self.top - self.bottom


@dataclass(frozen=True, slots=True)
class Draft:
    """A street on paper."""

    points: tuple[UV, ...]
    kind: str
    is_open: bool = True
    """Whether its end meets another street; else it is a dead end with a turning circle."""


# -- districts -----------------------------------------------------------------------------


def divide(
    size_m: tuple[int, int], warp: Warp, rng: np.random.Generator
) -> tuple[list[Draft], list[District]]:
    """All streets on paper, and the districts."""
    width, height = size_m
    paper = (-MARGIN_M, -MARGIN_M, width + MARGIN_M, height + MARGIN_M)
    drafts, boxes = _halve(paper, 0, rng)
    districts = _with_uses(boxes, warp, size_m)
    drafts = [draft for draft in drafts if _is_needed(draft, districts)]
    for district in districts:
        drafts += list(_inner_streets(district, rng))
    return drafts, districts


def _halve(
    box: tuple[float, float, float, float], depth: int, rng: np.random.Generator
) -> tuple[list[Draft], list[tuple[float, float, float, float]]]:
    """Cut a rectangle of the paper by roads until its pieces are districts."""
    left, bottom, right, top = box
    if max(right - left, top - bottom) < _LARGEST and depth >= 2:
        return [], [box]
    kind = ("primary", "secondary", "tertiary", "tertiary", "unclassified")[min(depth, 4)]
    share = rng.uniform(0.42, 0.58)
    # The first road runs from west to east, the next from south to north, then as the land is long.
    if depth == 1 or (depth > 1 and right - left > top - bottom):
        at = left + share * (right - left)
        draft = Draft(((at, bottom), (at, top)), kind)
        parts = [(left, bottom, at, top), (at, bottom, right, top)]
    else:
        at = bottom + share * (top - bottom)
        draft = Draft(((left, at), (right, at)), kind)
        parts = [(left, bottom, right, at), (left, at, right, top)]
    drafts, boxes = [draft], []
    for part in parts:
        more_drafts, more_boxes = _halve(part, depth + 1, rng)
        drafts += more_drafts
        boxes += more_boxes
    return drafts, boxes


def _with_uses(
    boxes: Sequence[tuple[float, float, float, float]], warp: Warp, size_m: tuple[int, int]
) -> list[District]:
    """Give each rectangle its use: the town in the middle, farms and woods outside."""
    middle = (0.45 * size_m[0], 0.5 * size_m[1])

    def distance(box: tuple[float, float, float, float]) -> float:
        return math.dist(((box[0] + box[2]) / 2, (box[1] + box[3]) / 2), middle)

    ordered = sorted(boxes, key=distance)
    further = len(ordered) - len(_USES)
    uses = (*_USES, *(_RURAL[rank % 5 in (1, 4)] for rank in range(further)))[: len(ordered)]
    return [_district(use, box, warp) for use, box in zip(uses, ordered, strict=True)]


def _district(use: str, box: tuple[float, float, float, float], warp: Warp) -> District:
    left, bottom, right, top = box
    ring = [(left, bottom), (right, bottom), (right, top), (left, top), (left, bottom)]
    outline = Polygon(shapely.get_coordinates(warp.line(ring)))
    frame = warp.frame((left + right) / 2, (bottom + top) / 2)
    return District(use, *box, outline, frame)


def _is_needed(draft: Draft, districts: Sequence[District]) -> bool:
    """Whether a small road between districts serves anyone but farmers."""
    line = LineString(draft.points).buffer(1.0)
    return draft.kind != "unclassified" or any(
        district.use not in _RURAL
        for district in districts
        if line.intersects(shapely.box(*district.edges).exterior)
    )


# -- streets inside a district ---------------------------------------------------------------


def _inner_streets(district: District, rng: np.random.Generator) -> Iterator[Draft]:
    width, height = district.size
    lengthwise = width >= height
    length, depth = (width, height) if lengthwise else (height, width)

    def on_paper(points: Sequence[UV]) -> tuple[UV, ...]:
        """From along and across the district to (u, v)."""
        if lengthwise:
            return tuple((district.left + p, district.bottom + q) for p, q in points)
        return tuple((district.left + q, district.bottom + p) for p, q in points)

    drawn = {"suburb": _suburb, "town": _town, "farm": _farm, "wood": _farm}.get(district.use)
    if drawn is not None:
        for draft in drawn(length, depth, rng):
            yield replace(draft, points=on_paper(draft.points))


def _suburb(length: float, depth: float, rng: np.random.Generator) -> Iterator[Draft]:
    """A winding street through the district, with dead ends and crescents on both sides."""
    sway, phase = rng.uniform(8, 16), rng.uniform(0, 2 * math.pi)
    middle = depth * rng.uniform(0.46, 0.54)

    def across(p: float) -> float:
        return middle + sway * math.sin(2 * math.pi * p / length + phase)

    stops = np.linspace(0, length, 25)
    places = _spread(length, 80.0, rng)
    along = sorted({*stops.tolist(), *places})
    yield Draft(tuple((p, across(p)) for p in along), "residential")
    for end in (0.0, depth):
        reach = abs(end - middle) - rng.uniform(44, 52)
        towards = math.copysign(1.0, end - middle)
        queue = list(places)
        while queue and reach > 35:
            p = queue.pop(0)
            tip = middle + towards * reach
            if queue and rng.random() < 0.45:
                yield _crescent(p, queue.pop(0), across, tip)
            else:
                lean = rng.uniform(-9, 9)
                bend = (p + 0.15 * lean, (across(p) + tip) / 2)
                points = ((p, across(p)), bend, (p + lean, tip))
                yield Draft(_rounded(points), "residential", is_open=False)


def _crescent(p: float, q: float, across: Callable[[float], float], tip: float) -> Draft:
    """A street that leaves another and comes back to it."""
    corners = ((p, across(p)), (p, tip), (q, tip), (q, across(q)))
    return Draft(_rounded(corners, times=3), "residential")


def _town(length: float, depth: float, rng: np.random.Generator) -> Iterator[Draft]:
    """Straight parallel streets, cut by one or two across."""
    across = _spread(length, 190.0, rng)
    rows = _spread(depth, 74.0, rng)
    for q in rows:
        yield Draft(((0.0, q), *((p, q) for p in across), (length, q)), "residential")
    for p in across:
        yield Draft(((p, 0.0), *((p, q) for q in rows), (p, depth)), "residential")


def _farm(length: float, depth: float, rng: np.random.Generator) -> Iterator[Draft]:
    """A track to the middle, by way of one bend."""
    p = length * rng.uniform(0.35, 0.65)
    bend = (p + rng.uniform(-40, 40), depth * 0.3)
    tip = (p + rng.uniform(-70, 70), depth * rng.uniform(0.55, 0.8))
    yield Draft(_rounded(((p, 0.0), bend, tip)), "track")


def _spread(length: float, spacing: float, rng: np.random.Generator) -> list[float]:
    """Places along a length, about `spacing` apart and half of it from the ends."""
    count = max(1, round(length / spacing))
    step = length / count
    return [step * (i + 0.5) + float(rng.uniform(-4, 4)) for i in range(count)]


def _rounded(points: Sequence[UV], times: int = 2) -> tuple[UV, ...]:
    """Corners cut (Chaikin's scheme); the ends stay."""
    for _ in range(times):
        cut: list[UV] = [points[0]]
        for (u0, v0), (u1, v1) in zip(points, points[1:], strict=False):
            cut.append((0.75 * u0 + 0.25 * u1, 0.75 * v0 + 0.25 * v1))
            cut.append((0.25 * u0 + 0.75 * u1, 0.25 * v0 + 0.75 * v1))
        points = [*cut, points[-1]]
    return tuple(points)
