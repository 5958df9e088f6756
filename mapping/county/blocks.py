"""Large single things: a hall, a building around a yard, a car park with its drive."""

import math
from collections.abc import Sequence

import numpy as np
import shapely
from shapely import LineString, Point, Polygon

from .houses import units_on_roof
from .land import Land
from .plan import (
    WIDTHS_M,
    Bay,
    Building,
    Frame,
    Furnishing,
    Patch,
    Road,
    Trees,
    Wing,
)
from .trees import trees_at

_BAY_M = (2.7, 5.2)
"""Width and length of a parking bay."""

_AISLE_M = 6.0


def block(
    frame: Frame,
    size_m: tuple[float, float],
    site: Land,
    *,
    kind: str,
    covering: str,
    street: str,
    eaves_m: float,
    rng: np.random.Generator,
    roof: str = "flat",
) -> Furnishing:
    """One large building in the middle of `frame`, smaller or not at all where room is short."""
    for scale in (1.0, 0.85, 0.7, 0.55):
        half_s, half_t = scale * size_m[0] / 2, scale * size_m[1] / 2
        wing = Wing(frame, half_s, half_t, roof, eaves_m, 0.3)
        if site.is_free(wing.outline().buffer(4.0, join_style="mitre")):
            site.take(wing.outline())
            building = Building(
                footprint=wing.outline(),
                wings=(wing,),
                kind=kind,
                covering=covering,
                tint=float(rng.uniform(0.85, 1.12)),
                street=street,
            )
            count = int(half_s * half_t / 90) if roof == "flat" else 0
            return Furnishing((building,), boxes=units_on_roof(building, count, rng))
    return Furnishing()


def courtyard(
    frame: Frame, side_m: tuple[float, float], deep_m: float, site: Land, *, kind: str, street: str,
    eaves_m: float, covering: str, rng: np.random.Generator,
) -> Furnishing:  # fmt: skip
    """A building around a yard that is open to the sky."""
    half_s, half_t = side_m[0] / 2, side_m[1] / 2
    outer = frame.box(-half_s, -half_t, half_s, half_t)
    if not site.is_free(outer.buffer(3.0, join_style="mitre")):
        return Furnishing()
    site.take(outer)
    yard = frame.box(-half_s + deep_m, -half_t + deep_m, half_s - deep_m, half_t - deep_m)
    building = Building(
        footprint=Polygon(outer.exterior.coords, [yard.exterior.coords]),
        wings=(Wing(frame, half_s, half_t, "flat", eaves_m),),
        kind=kind,
        covering=covering,
        tint=float(rng.uniform(0.9, 1.05)),
        street=street,
    )
    boxes = units_on_roof(building, 6, rng)
    tree = trees_at(np.array([frame.at(0, 0)]), (2.5, 4.0), rng, conifers=0.0)
    return Furnishing((building,), (Patch(yard, "lawn"),), boxes=boxes, trees=(tree,))


def car_park(
    frame: Frame, size_m: tuple[float, float], street: str, fill: float, site: Land,
    rng: np.random.Generator,
) -> Furnishing:  # fmt: skip
    """Rows of bays on both sides of aisles; `frame` stands in its south-west corner."""
    width, depth = size_m
    module = 2 * _BAY_M[1] + _AISLE_M
    rows = int(depth // module)
    area = frame.box(0, 0, width, rows * module)
    if rows < 1 or not site.is_free(area):
        return Furnishing()
    site.take(area)
    roads, bays, marks = [], [], []
    for row in range(rows):
        middle = (row + 0.5) * module
        roads.append(_lane(frame, [(4, middle), (width - 4, middle)], "parking_aisle", street))
        for t in (middle - 5.6, middle + 5.6):
            for s in np.arange(9.0, width - 9.0, _BAY_M[0]):
                here = frame.moved(float(s) + _BAY_M[0] / 2, t, math.pi / 2)
                # Cars stand where the shops' doors are.
                bays.append(Bay(here, fill * math.exp(-abs(s - width / 2) / width)))
                marks.append(frame.moved(float(s), t).box(-0.14, -2.4, 0.14, 2.4))
    for s in (4.0, width - 4.0):
        if rows > 1:
            ends = [(s, module / 2), (s, (rows - 0.5) * module)]
            roads.append(_lane(frame, ends, "service", street))
    tint = float(rng.uniform(0.86, 1.1))
    grounds = [Patch(area, "asphalt", tint), *(Patch(mark, "bay line") for mark in marks)]
    islands, trees = _islands(frame, width, module, rows, rng)
    return Furnishing((), (*grounds, *islands), tuple(bays), roads=tuple(roads), trees=tuple(trees))


def access(park: Furnishing, roads: Sequence[Road], street: str, site: Land) -> Furnishing:
    """A car park with the drive from its nearest corner to the nearest street, if one can be."""
    corners = [xy for road in park.roads for xy in (road.line.coords[0], road.line.coords[-1])]
    streets = [road.line for road in roads if road.kind != "track" and not road.bridge]
    ways = [shapely.shortest_line(Point(xy), line) for xy in corners for line in streets]
    for way in sorted(ways, key=lambda line: line.length):
        if 1 < way.length < 110 and _is_clear(way, site):
            drive = Road(line=way, kind="service", width_m=WIDTHS_M["service"], street=street)
            return Furnishing.joined([park, Furnishing(roads=(drive,))])
    return park


def _is_clear(way: LineString, site: Land) -> bool:
    """Whether nothing stands in the way between the car park's edge and the street's."""
    along = np.arange(8.0, way.length - 11.0, 1.0)
    points = shapely.get_coordinates(way.interpolate(along))
    return not site.is_taken(points[:, 0], points[:, 1]).any()


def blob(frame: Frame, radius_m: float, rng: np.random.Generator) -> Polygon:
    """A rounded shape of no particular form."""
    turn = np.linspace(0, 2 * math.pi, 60, endpoint=False)
    reach = np.ones_like(turn)
    for times in (2, 3, 5):
        reach += rng.uniform(0.05, 0.5 / times) * np.sin(times * turn + rng.uniform(0, 6.3))
    ring = [
        frame.at(radius_m * r * math.cos(a), radius_m * r * math.sin(a))
        for a, r in zip(turn.tolist(), reach.tolist(), strict=True)
    ]
    return Polygon(ring).buffer(0)


def _lane(frame: Frame, points: Sequence[tuple[float, float]], kind: str, street: str) -> Road:
    return Road(line=frame.line(points), kind=kind, width_m=WIDTHS_M[kind], street=street)


def _islands(
    frame: Frame, width: float, module: float, rows: int, rng: np.random.Generator
) -> tuple[list[Patch], list[Trees]]:
    """Planted strips where the rows of bays end."""
    patches = []
    for row in range(rows):
        middle = (row + 0.5) * module
        for s in (8.0, width - 8.0):
            for t in (middle - 5.6, middle + 5.6):
                patches.append(Patch(frame.moved(s, t).box(-0.8, -2.3, 0.8, 2.3), "lawn"))
    spots = [patch.area.centroid.coords[0] for patch in patches if rng.random() < 0.6]
    trees = trees_at(np.array(spots).reshape(-1, 2), (1.2, 2.8), rng, conifers=0.0)
    return patches, [trees]
