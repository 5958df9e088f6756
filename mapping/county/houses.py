"""Houses along the streets: detached ones in gardens, terraces, and shops in the town.

Each plot is laid out in a frame of its own whose s axis runs along the street, with t = 0 at the
edge of the carriageway and t growing away from it.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import shapely
from shapely import Point

from .districts import District
from .land import Land
from .plan import (
    Bay,
    Box,
    Building,
    Frame,
    Furnishing,
    Patch,
    Road,
    Wing,
    frame_beside,
    one_polygon,
)
from .trees import garden_trees, hedge

_HOUSE_COVERINGS = ("shingle grey", "shingle brown", "shingle dark", "tile", "shingle light")
_HOUSE_SHARES = (0.34, 0.22, 0.2, 0.1, 0.14)
_PLOT_DEPTH_M = 34.0
_CORNER_M = 10.0
"""Length at both ends of a street where no plot opens."""


def line_streets(
    roads: Sequence[Road], districts: Sequence[District], site: Land, rng: np.random.Generator
) -> Furnishing:
    """Put houses on both sides of every street, as the district behind asks for."""
    outlines = shapely.STRtree([district.outline for district in districts])
    parts = []
    for road in roads:
        if road.bridge or road.kind in ("service", "parking_aisle", "track"):
            continue
        taste = rng.choice(len(_HOUSE_COVERINGS), p=_HOUSE_SHARES)
        for side in (1, -1):
            parts += list(_one_side(road, side, districts, outlines, int(taste), site, rng))
    return Furnishing.joined(parts)


def _one_side(
    road: Road,
    side: int,
    districts: Sequence[District],
    outlines: shapely.STRtree,
    taste: int,
    site: Land,
    rng: np.random.Generator,
) -> Iterator[Furnishing]:
    """Plot after plot along one side of a road; where nothing fits, a little further on."""
    along = _CORNER_M
    while along < road.line.length - _CORNER_M:
        here = frame_beside(road, along, side)
        use = _use_at(here.at(0, 20), districts, outlines)
        length = _plot_length(use, road, rng)
        left = road.line.length - _CORNER_M - along
        if length is None or length > left:
            along += 15.0
            continue
        # The frame stands in the middle of the plot's front, where the street is its tangent.
        frame = frame_beside(road, along + length / 2, side)
        if use == "town":
            placed = _town_plot(frame, length, road, site, rng)
        else:
            placed = _detached(frame, length, road, taste, site, rng)
        if placed is None:
            along += 5.0
            continue
        yield placed
        along += length


def _use_at(
    point: tuple[float, float], districts: Sequence[District], outlines: shapely.STRtree
) -> str:
    found = outlines.query(Point(point), predicate="within")
    return districts[int(found.min())].use if len(found) else "farm"


def _plot_length(use: str, road: Road, rng: np.random.Generator) -> float | None:
    """How much of the street a plot takes in metres; None where nobody builds."""
    if use == "suburb":
        return float(rng.uniform(19, 27))
    if use == "town":
        return float(rng.uniform(28, 62))
    if use == "farm" and road.kind != "primary" and rng.random() < 0.05:
        return float(rng.uniform(30, 40))
    return None


# -- detached houses ---------------------------------------------------------------------------


def _detached(
    frame: Frame, length: float, road: Road, taste: int, site: Land, rng: np.random.Generator
) -> Furnishing | None:
    """A house in its garden with a drive; None where there is no room."""
    setback = rng.uniform(7.5, 13) + (6 if road.kind in ("primary", "secondary") else 0)
    if not site.has_room(frame, (-5.5, setback - 1, 5.5, setback + 9)):
        return None
    wings = _house_wings(frame.moved(rng.uniform(-1.5, 1.5), setback), length, rng)
    footprint = one_polygon(shapely.union_all([wing.outline() for wing in wings]))
    if not site.is_free(footprint.buffer(2.0, join_style="mitre")):
        return None
    site.take(footprint)
    is_usual = rng.random() < 0.6
    other = rng.choice(len(_HOUSE_COVERINGS), p=_HOUSE_SHARES)
    house = Building(
        footprint=footprint,
        wings=wings,
        kind="house" if rng.random() < 0.6 else "yes",
        covering=_HOUSE_COVERINGS[taste if is_usual else other],
        tint=float(rng.uniform(0.82, 1.15)),
        street=road.street,
    )
    half = length / 2 - 0.5
    grounds = []
    plot = frame.box(-half, 2.5, half, _PLOT_DEPTH_M)
    if rng.random() < 0.8:
        grounds.append(Patch(plot, "lawn", float(rng.uniform(0.86, 1.14))))
    drive = _drive(frame, half, setback, site, house, rng)
    garden = _garden(frame, half, setback + 14, site, rng)
    trees = [garden_trees(plot, site, float(rng.uniform(0.5, 3.2)), rng)]
    if rng.random() < 0.35:
        trees.append(hedge(frame.line([(half, 10), (half, _PLOT_DEPTH_M)]), site, rng))
    own = Furnishing((house,), tuple(grounds), boxes=_chimney(wings[0], rng), trees=tuple(trees))
    return Furnishing.joined([own, drive, garden])


def _house_wings(front: Frame, length: float, rng: np.random.Generator) -> tuple[Wing, ...]:
    """The wings of a house whose front wall is on the s axis of `front`."""
    long, deep = rng.uniform(11, min(17, length - 6)), rng.uniform(8, 11)
    roof = "hip" if rng.random() < 0.4 else "gable"
    eaves = 3.0 if rng.random() < 0.5 else 5.6
    pitch = rng.uniform(0.45, 0.85)
    main = Wing(front.moved(0, deep / 2), long / 2, deep / 2, roof, eaves, pitch)
    form = rng.random()
    if form < 0.45:
        return (main,)
    # An L: a wing across, towards the street or the garden, as deep as half the house.
    towards = -1.0 if form < 0.75 else 1.0
    across, reach = rng.uniform(5.5, 7.5), rng.uniform(3.0, 5.5)
    s = (long - across) / 2 * (1 if rng.random() < 0.5 else -1)
    t = deep / 2 + towards * (reach / 2)
    place = front.moved(s, t, math.pi / 2)
    return main, Wing(place, (deep + reach) / 2, across / 2, roof, eaves, pitch)


def _drive(
    frame: Frame, half: float, setback: float, site: Land, house: Building, rng: np.random.Generator
) -> Furnishing:
    """A drive beside or before the house, often with a car, sometimes with a garage at its end."""
    side = 1 if rng.random() < 0.5 else -1
    s = side * (half - 2.2)
    deep = setback + rng.uniform(2, 9)
    garage = _garage(frame.moved(s - side * 1.2, deep + 3.2), house, site, rng)
    material = ("concrete", "asphalt", "gravel")[rng.choice(3, p=(0.5, 0.3, 0.2))]
    area = frame.box(s - 1.6, -0.3, s + 1.6, deep).difference(house.footprint)
    ground = tuple(
        Patch(part, material, float(rng.uniform(0.9, 1.1)))
        for part in shapely.get_parts(area)
        if part.area > 4
    )
    bays = tuple(Bay(frame.moved(s, t, math.pi / 2), 0.4) for t in (3.5, 9.5) if t + 2.5 < deep)
    return Furnishing(garage, ground, bays)


def _garage(
    frame: Frame, house: Building, site: Land, rng: np.random.Generator
) -> tuple[Building, ...]:
    """A garage in the middle of `frame`, roofed as its house is; often none."""
    wing = Wing(frame, 3.3, 3.1, "gable" if rng.random() < 0.7 else "flat", 2.6, 0.45)
    outline = wing.outline()
    if rng.random() > 0.4 or not site.is_free(outline.buffer(1.2, join_style="mitre")):
        return ()
    site.take(outline)
    return (replace(house, footprint=outline, wings=(wing,), kind="garage"),)


def _garden(
    frame: Frame, half: float, behind: float, site: Land, rng: np.random.Generator
) -> Furnishing:
    """Now and then a swimming pool in its deck, or a vegetable bed."""
    choice = rng.random()
    s, t = rng.uniform(-half + 6, half - 6), min(behind + 4, _PLOT_DEPTH_M - 5)
    spot = frame.moved(s, t, rng.uniform(-0.1, 0.1))
    if choice < 0.11 and site.is_free(spot.box(-6, -4, 6, 4)):
        site.take(spot.box(-6, -4, 6, 4))
        pool = spot.box(-3.2, -1.4, 3.2, 1.4).buffer(0.9)
        return Furnishing(grounds=(Patch(spot.box(-6, -3.8, 6, 3.8), "deck"), Patch(pool, "pool")))
    if choice < 0.2 and site.is_free(spot.box(-3, -2, 3, 2)):
        return Furnishing(grounds=(Patch(spot.box(-3, -2, 3, 2), "soil", 0.9, spot.angle),))
    return Furnishing()


def _chimney(wing: Wing, rng: np.random.Generator) -> tuple[Box, ...]:
    if rng.random() > 0.45:
        return ()
    s = rng.uniform(-0.6, 0.6) * wing.half_length
    ridge = wing.eaves_m + wing.pitch * wing.half_width
    return (Box(wing.frame.moved(s, 0.6).box(-0.5, -0.5, 0.5, 0.5), ridge + 1.0, 0.7),)


# -- the town ----------------------------------------------------------------------------------


def _town_plot(
    frame: Frame, length: float, road: Road, site: Land, rng: np.random.Generator
) -> Furnishing | None:
    """A row of shops along a big road, else a terrace."""
    is_shop = road.kind in ("primary", "secondary") and rng.random() < 0.7
    unit = rng.uniform(8, 14) if is_shop else rng.uniform(5.4, 7.2)
    deep = rng.uniform(14, 20) if is_shop else rng.uniform(8.6, 10.4)
    setback = rng.uniform(3.2, 4.5) if is_shop else rng.uniform(3.6, 6.5)
    count = int((length - 4) // unit)
    start = -count * unit / 2
    if not site.has_room(frame, (start, setback, -start, setback + deep)):
        return None
    whole = frame.box(start, setback, -start, setback + deep)
    if not site.is_free(whole.buffer(1.5, join_style="mitre")):
        return None
    site.take(whole)
    edges = [start + unit * i for i in range(count + 1)]
    units = list(_units(frame, edges, (setback, setback + deep), is_shop, road.street, rng))
    boxes = [
        box
        for unit in units
        for box in (units_on_roof(unit, 1, rng) if is_shop else _chimney(unit.wings[0], rng))
    ]
    back = frame.box(start, setback + deep, -start, setback + deep + 16)
    ground = Patch(back, "concrete" if is_shop else "lawn", float(rng.uniform(0.85, 1.05)))
    bays = _kerbside(frame, start, rng)
    yard = (Patch(frame.box(start, 0, -start, setback), "paving"),) if is_shop else ()
    trees = garden_trees(back, site, float(rng.uniform(0.3, 2.0)), rng)
    return Furnishing(tuple(units), (ground, *yard), bays, tuple(boxes), trees=(trees,))


def _units(
    frame: Frame,
    edges: Sequence[float],
    depth: tuple[float, float],
    is_shop: bool,
    street: str,
    rng: np.random.Generator,
) -> Iterator[Building]:
    """Houses between party walls at `edges` along s, from front to back wall along t."""
    covering = "membrane" if is_shop else _HOUSE_COVERINGS[rng.choice(4, p=(0.4, 0.2, 0.2, 0.2))]
    eaves, tint, pitch = rng.uniform(5.5, 8.5), rng.uniform(0.85, 1.1), rng.uniform(0.5, 0.8)
    front, back = depth
    for s0, s1 in zip(edges, edges[1:], strict=False):
        height = eaves + (rng.uniform(-0.8, 0.8) if is_shop else 0.0)
        middle = frame.moved((s0 + s1) / 2, (front + back) / 2)
        roof = "flat" if is_shop else "gable"
        # The roof goes on over the party wall; the footprint ends it.
        wing = Wing(middle, (s1 - s0) / 2 + 1.0, (back - front) / 2, roof, height, pitch)
        yield Building(
            footprint=frame.box(s0, front, s1, back),
            wings=(wing,),
            kind="retail" if is_shop else "terrace",
            covering=covering,
            tint=float(tint * rng.uniform(0.93, 1.07)),
            street=street,
            row=f"{street}/{frame.x:.1f}/{frame.y:.1f}",
        )


def _kerbside(frame: Frame, start: float, rng: np.random.Generator) -> tuple[Bay, ...]:
    """Cars along the kerb, on the carriageway."""
    share = float(rng.uniform(0.1, 0.6))
    places = np.arange(start + 3, -start - 3, 6.2)
    return tuple(Bay(frame.moved(float(s), -1.3), share) for s in places)


def units_on_roof(building: Building, count: int, rng: np.random.Generator) -> tuple[Box, ...]:
    """Air conditioners and skylights on a flat roof."""
    inner = building.footprint.buffer(-2.5)
    if inner.is_empty:
        return ()
    wing = building.wings[0]
    boxes = []
    for _ in range(int(rng.integers(0, 2 * count + 1))):
        s = rng.uniform(-0.8, 0.8) * wing.half_length
        t = rng.uniform(-0.8, 0.8) * wing.half_width
        side = rng.uniform(0.8, 1.8)
        area = wing.frame.moved(s, t).box(-side, -side * 0.7, side, side * 0.7)
        if inner.contains(area):
            boxes.append(Box(area, wing.eaves_m + 1.5, float(rng.choice((0.55, 0.95, 1.1)))))
    return tuple(boxes)
