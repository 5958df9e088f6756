"""The open country: fields with hedges, farmsteads, woods, the river's banks."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import shapely
from shapely import LineString, Point, Polygon

from .blocks import blob, block
from .districts import District
from .land import Land
from .plan import Box, Frame, Furnishing, Patch, Road
from .trees import hedge, trees_at, wood

_CROPS = ("wheat", "maize", "pasture", "soil", "hay", "soy")


def fields(
    district: District, roads: Sequence[Road], site: Land, rng: np.random.Generator
) -> Furnishing:
    """Fields of different crops, hedges between some of them, and a farm at the track's end."""
    near = _near(district, roads)
    keep_off = shapely.union_all([road.line.buffer(road.width_m / 2 + 3.5) for road in near])
    land = district.outline.buffer(-3).difference(keep_off)
    width, height = district.size
    parts = [_farmstead(end, site, rng) for end in _track_ends(district, near)]
    yards = [building.footprint for part in parts for building in part.buildings]
    if yards:
        land = land.difference(shapely.union_all(yards).envelope.buffer(16))
    half_s, half_t = 0.62 * width, 0.62 * height
    crops = rng.permutation(len(_CROPS))
    cut = _cut_fields((-half_s, -half_t, half_s, half_t), district.frame, rng)
    for index, (field, angle) in enumerate(cut):
        crop = _CROPS[crops[index % len(crops)]]
        for piece in shapely.get_parts(field.intersection(land)):
            if isinstance(piece, Polygon) and piece.area > 400:
                parts.append(_field(piece, crop, angle, site, rng))
    return Furnishing.joined(parts)


def woodland(
    district: District, roads: Sequence[Road], site: Land, rng: np.random.Generator
) -> Furnishing:
    """A wood with a ragged edge and a clearing or two."""
    near = _near(district, roads)
    cleared = [road.line.buffer(road.width_m / 2 + 2.5) for road in near]
    edge = shapely.get_coordinates(district.outline.exterior.segmentize(60.0))
    for x, y in edge[rng.random(len(edge)) < 0.4].tolist():
        cleared.append(blob(Frame(x, y, 0.0), rng.uniform(10, 30), rng))
    x, y = district.frame.at(*(rng.uniform(-0.3, 0.3, 2) * district.size))
    cleared.append(blob(Frame(x, y, 0.0), rng.uniform(14, 36), rng))
    area = district.outline.difference(shapely.union_all(cleared))
    floor = tuple(
        Patch(part, "wood floor")
        for part in shapely.get_parts(area)
        if isinstance(part, Polygon) and part.area > 60
    )
    glades = wood(district.outline, site, rng, spacing_m=19.0)
    return Furnishing(grounds=floor, trees=(wood(area, site, rng), glades))


def river_banks(
    river: Polygon, bridges: Sequence[Polygon], site: Land, rng: np.random.Generator
) -> Furnishing:
    """The water, its muddy edge, and trees along it."""
    open_strip = river.buffer(17).difference(river.buffer(1.0))
    if bridges:
        open_strip = open_strip.difference(shapely.union_all(bridges).buffer(7))
    trees = wood(open_strip, site, rng, spacing_m=7.5)
    trees = trees.where(rng.random(len(trees.x)) < 0.72)
    grounds = (
        Patch(river.buffer(9), "rough grass"),
        Patch(river.buffer(1.8), "bank"),
        Patch(river, "water"),
    )
    return Furnishing(grounds=grounds, trees=(trees,))


def _near(district: District, roads: Sequence[Road]) -> list[Road]:
    reach = district.outline.buffer(25)
    return [road for road in roads if road.line.intersects(reach)]


# -- farms -------------------------------------------------------------------------------------


def _track_ends(district: District, roads: Sequence[Road]) -> Iterator[Frame]:
    for road in roads:
        if road.kind == "track":
            for end, before in ((-1, -2), (0, 1)):
                x, y = road.line.coords[end]
                x0, y0 = road.line.coords[before]
                inside = district.outline.buffer(-25)
                if inside.contains(Point(x, y)):
                    yield Frame(x, y, math.atan2(y - y0, x - x0))


def _farmstead(end: Frame, site: Land, rng: np.random.Generator) -> Furnishing:
    """A house, barns and silos around a yard."""
    yard = Patch(end.box(-12, -16, 34, 16).buffer(4), "gravel", 0.95)
    street = f"farm {end.x:.0f} {end.y:.0f}"
    places = (
        (end.moved(8, 26), (15, 10), "house", "shingle grey", 5.0, "hip"),
        (end.moved(42, 0, math.pi / 2), (38, 15), "farm_auxiliary", "metal", 5.5, "gable"),
        (end.moved(12, -27), (27, 12), "barn", "rust", 5.0, "gable"),
        (end.moved(66, 4, math.pi / 2), (50, 13), "farm_auxiliary", "white roof", 3.5, "gable"),
    )
    parts = [Furnishing(grounds=(yard,))]
    for frame, size, kind, covering, eaves, roof in places[: int(rng.integers(2, 5))]:
        here = frame.moved(0, 0, rng.uniform(-0.06, 0.06))
        parts.append(
            block(here, size, site, kind=kind, covering=covering, street=street,
                  eaves_m=eaves, rng=rng, roof=roof)
        )  # fmt: skip
    silo = Point(end.at(30, -10)).buffer(2.8)
    if rng.random() < 0.6 and site.is_free(silo):
        site.take(silo)
        parts.append(Furnishing(boxes=(Box(silo, 11.0, 1.15),)))
    shade = trees_at(np.array([end.at(-4, 31), end.at(20, 35), end.at(3, 38)]), (3, 5.5), rng)
    return Furnishing.joined([*parts, Furnishing(trees=(shade,))])


def _cut_fields(
    box: tuple[float, float, float, float], frame: Frame, rng: np.random.Generator
) -> Iterator[tuple[Polygon, float]]:
    """Halve a rectangle into fields; each with the direction of its rows."""
    s0, t0, s1, t1 = box
    wide, high = s1 - s0, t1 - t0
    if wide * high < 30_000 or (wide * high < 75_000 and rng.random() < 0.4):
        angle = frame.angle + (0 if wide > high else math.pi / 2) + rng.uniform(-0.05, 0.05)
        yield frame.box(s0 + 1.5, t0 + 1.5, s1 - 1.5, t1 - 1.5), angle
        return
    share = rng.uniform(0.36, 0.64)
    if wide > high:
        parts = ((s0, t0, s0 + share * wide, t1), (s0 + share * wide, t0, s1, t1))
    else:
        parts = ((s0, t0, s1, t0 + share * high), (s0, t0 + share * high, s1, t1))
    for part in parts:
        yield from _cut_fields(part, frame, rng)


def _field(
    area: Polygon, crop: str, angle: float, site: Land, rng: np.random.Generator
) -> Furnishing:
    ground = (
        Patch(area, "rough grass"),
        *(
            Patch(part, crop, float(rng.uniform(0.88, 1.12)), angle)
            for part in shapely.get_parts(area.buffer(-1.5))
        ),
    )
    trees = []
    ring = area.exterior.simplify(3.0)
    for first, last in zip(ring.coords, ring.coords[1:], strict=False):
        side = LineString([first, last])
        if side.length > 50 and rng.random() < 0.22:
            trees.append(hedge(side, site, rng))
            points = shapely.get_coordinates(side.interpolate(np.arange(5, side.length, 21.0)))
            trees.append(trees_at(points[rng.random(len(points)) < 0.6], (2.5, 5.0), rng))
    return Furnishing(grounds=ground, trees=tuple(trees))
