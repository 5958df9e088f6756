"""Paints a plan: what colour each half metre is, and how high it stands.

Nothing is lit here. Everything is burnt by name or number into one raster and then looked up, so
the cost is a few passes over the pixels, whatever the number of things.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import shapely
from numpy.typing import NDArray
from rasterio.transform import Affine
from shapely import LineString, Polygon

from .canvas import Canvas, Pixels, Texture
from .crowns import put_trees
from .materials import CARS, GROUNDS, ROOFS, Material
from .plan import Bay, Box, Building, Patch, Plan, Road, frame_beside

_STRIP = 512
"""Rows that are coloured at once: bounds the memory of the look-ups."""


@dataclass(frozen=True, slots=True)
class Painting:
    """A rectangle of the county, unlit. Row 0 is in the north."""

    transform: Affine
    """From (column, row) to the county's metres."""

    colour_CHW: Pixels
    """Reflectances of red, green, blue and near infrared."""

    height_HW: Pixels
    """Metres above ground."""


def paint(
    plan: Plan,
    bounds: tuple[int, int, int, int],
    season: str,
    rng: np.random.Generator,
) -> Painting:
    """Paint the part of a plan inside `bounds` (left, bottom, right, top in metres).

    `season` is "summer" or "autumn". Which bays hold cars, and of which colour, is drawn anew.
    """
    canvas = Canvas.of_bounds(bounds)
    texture = Texture.random(canvas.shape, rng)
    cars = _cars(plan, rng)
    colour_CHW = _ground(plan, season, canvas, texture)
    height_HW = np.zeros(canvas.shape, np.float32)
    _put_bridges(plan.roads, height_HW, canvas)
    _put_cars(cars, colour_CHW, height_HW, canvas, rng)
    _put_roofs(plan.buildings, colour_CHW, height_HW, canvas, texture)
    _put_boxes(plan.boxes, colour_CHW, height_HW, canvas)
    put_trees(plan.trees, season, colour_CHW, height_HW, canvas, texture, rng)
    return Painting(canvas.transform, colour_CHW, height_HW)


# -- ground ------------------------------------------------------------------------------------


def _ground(plan: Plan, season: str, canvas: Canvas, texture: Texture) -> Pixels:
    patches = [*plan.grounds, *_paths(plan), *_carriageways(plan.roads)]
    number_HW = canvas.burn([patch.area for patch in patches])
    base = Patch(shapely.box(0, 0, *plan.size_m), "rough grass")
    return _coloured(number_HW, [base, *patches], season, canvas, texture)


def _coloured(
    number_HW: NDArray[np.int32],
    patches: Sequence[Patch],
    season: str,
    canvas: Canvas,
    texture: Texture,
) -> Pixels:
    """Colour by patch, made uneven as its material is; strip by strip, to spare memory."""
    materials = [GROUNDS[patch.material] for patch in patches]
    colours = np.array(
        [np.multiply(getattr(m, season), p.tint) for m, p in zip(materials, patches, strict=True)],
        np.float32,
    )
    column = _columns(materials)
    grain, clump, drought, rows = (column(n) for n in ("grain", "clump", "drought", "rows"))
    wave = np.float32(2 * math.pi) / column("period_m")
    angle = np.array([patch.angle for patch in patches], np.float32)
    wave_x, wave_y = -np.sin(angle) * wave, np.cos(angle) * wave
    out_CHW = np.empty((4, *number_HW.shape), np.float32)
    for top in range(0, number_HW.shape[0], _STRIP):
        part = slice(top, min(top + _STRIP, number_HW.shape[0])), slice(0, number_HW.shape[1])
        n, patch = number_HW[part], texture.patch[part]
        x, y = canvas.metres(part)
        bent = np.float32(0.5) * patch
        light = 1 + grain[n] * texture.grain[part] + clump[n] * texture.clump[part]
        light += rows[n] * np.sin(x * wave_x[n] + y * wave_y[n] + bent)
        dry = drought[n] * np.tanh(0.5 * patch + 0.5 * texture.broad[part])
        for band, turn in enumerate((0.7, 0.22, 0.45, -0.4)):
            out_CHW[band][part] = colours[n, band] * light * (1 + np.float32(turn) * dry)
    return out_CHW


def _columns(materials: Sequence[Material]) -> Callable[[str], Pixels]:
    return lambda name: np.array([getattr(m, name) for m in materials], np.float32)


def _paths(plan: Plan) -> list[Patch]:
    return [Patch(path.buffer(1.0), "gravel", 1.05) for path in plan.paths]


def _carriageways(roads: Sequence[Road]) -> list[Patch]:
    """Surfaces, small roads first, then what is painted on them."""
    ordered = sorted(roads, key=lambda road: road.width_m)
    surfaces = [
        Patch(road.surface(), _surface(road), 0.93 + (len(road.street) * 7 % 13) / 90)
        for road in ordered
    ]
    return surfaces + [mark for road in ordered for mark in _markings(road)]


def _surface(road: Road) -> str:
    if road.kind == "track":
        return "dirt"
    # A street's age goes by its name, so that all its stretches agree and no draw is needed.
    age = sum(map(ord, road.street)) % 6
    return "fresh asphalt" if age == 0 else "worn asphalt" if age < 4 else "asphalt"


def _markings(road: Road) -> list[Patch]:
    """Lines on the larger roads; thinner than a pixel, so that they only tint it."""
    if road.kind not in ("primary", "secondary", "tertiary"):
        return []
    half = road.width_m / 2
    yellow = [road.line.offset_curve(0.25), road.line.offset_curve(-0.25)]
    marks = [(line, "yellow line") for line in yellow if road.kind == "primary"]
    if road.kind != "primary":
        marks += [(dash, "yellow line") for dash in _dashes(road, 0.0)]
    if road.kind == "primary":
        marks += [
            (dash, "white line") for side in (-1, 1) for dash in _dashes(road, side * half / 2)
        ]
    if road.kind != "tertiary":
        edges = (road.line.offset_curve(side * (half - 0.6)) for side in (-1, 1))
        marks += [(edge, "white line") for edge in edges]
    return [Patch(line.buffer(0.2, cap_style="flat"), name) for line, name in marks]


def _dashes(road: Road, offset_m: float) -> list[LineString]:
    """Three metres of line, nine of gap, away from the ends."""
    line = road.line.offset_curve(offset_m)
    starts = np.arange(9.0, line.length - 12.0, 12.0)
    points = line.interpolate(np.stack([starts, starts + 3.0], axis=1))
    pairs = shapely.get_coordinates(points).reshape(-1, 2, 2)
    return [LineString(pair) for pair in pairs]


# -- what stands on the ground -----------------------------------------------------------------


def _put_bridges(roads: Sequence[Road], height_HW: Pixels, canvas: Canvas) -> None:
    decks = [r.line.buffer(r.width_m / 2 + 2.2, cap_style="flat") for r in roads if r.bridge]
    height_HW[canvas.burn(decks) > 0] = 3.5


def _put_roofs(
    buildings: Sequence[Building],
    colour_CHW: Pixels,
    height_HW: Pixels,
    canvas: Canvas,
    texture: Texture,
) -> None:
    number_HW = canvas.burn([building.footprint for building in buildings])
    for number, building in enumerate(buildings, start=1):
        part = canvas.part(building.footprint.bounds)
        if part is None:
            continue
        own = number_HW[part] == number
        material = ROOFS[building.covering]
        uneven = 1 + material.grain * texture.grain[part] + material.clump * texture.clump[part]
        height_HW[part][own] = _roof_height(building, part, canvas)[own]
        for band, reflectance in enumerate(material.summer):
            colour_CHW[band][part][own] = (reflectance * building.tint * uneven)[own]


def _roof_height(building: Building, part: tuple[slice, slice], canvas: Canvas) -> Pixels:
    x, y = canvas.metres(part)
    heights = [np.full(np.broadcast_shapes(x.shape, y.shape), building.wings[0].eaves_m)]
    for wing in building.wings:
        cos, sin = math.cos(wing.frame.angle), math.sin(wing.frame.angle)
        dx, dy = x - wing.frame.x, y - wing.frame.y
        heights.append(wing.height_m(dx * cos + dy * sin, dy * cos - dx * sin))
    return np.asarray(np.max(heights, axis=0), np.float32)


def _put_boxes(boxes: Sequence[Box], colour_CHW: Pixels, height_HW: Pixels, canvas: Canvas) -> None:
    number_HW = canvas.burn([box.area for box in boxes])
    put = number_HW > 0
    tint = np.array([box.tint for box in boxes], np.float32)
    height = np.array([box.height_m for box in boxes], np.float32)
    which = number_HW[put] - 1
    height_HW[put] = height[which]
    colour_CHW[:, put] = np.array([[0.66], [0.66], [0.66], [0.58]], np.float32) * tint[which]


def _cars(plan: Plan, rng: np.random.Generator) -> list[Polygon]:
    """Parked ones in bays, moving ones on the larger roads."""
    parked = [bay for bay in plan.bays if rng.random() < bay.share]
    return [_car(bay, rng) for bay in parked + _traffic(plan.roads, rng)]


def _car(bay: Bay, rng: np.random.Generator) -> Polygon:
    half = rng.uniform(2.0, 2.6)
    frame = bay.frame.moved(rng.uniform(-0.3, 0.3), rng.uniform(-0.2, 0.2), rng.normal(0, 0.03))
    return frame.box(-half, -0.95, half, 0.95)


def _traffic(roads: Sequence[Road], rng: np.random.Generator) -> list[Bay]:
    per_km = {"primary": 26.0, "secondary": 16.0, "tertiary": 7.0, "residential": 2.0}
    bays = []
    for road in roads:
        count = rng.poisson(per_km.get(road.kind, 0.0) * road.line.length / 1000)
        for along in rng.uniform(0, road.line.length, count):
            side = 1 if rng.random() < 0.5 else -1
            lane = road.width_m * (0.25 if road.kind != "primary" else rng.choice((0.125, 0.375)))
            bays.append(
                Bay(frame_beside(road, float(along), side).moved(0, -road.width_m / 2 + lane), 1.0)
            )
    return bays


def _put_cars(
    cars: Sequence[Polygon],
    colour_CHW: Pixels,
    height_HW: Pixels,
    canvas: Canvas,
    rng: np.random.Generator,
) -> None:
    number_HW = canvas.burn(cars)
    put = number_HW > 0
    paints = np.array(CARS, np.float32)[rng.integers(0, len(CARS), len(cars) + 1)]
    paints *= rng.uniform(0.85, 1.1, (len(cars) + 1, 1)).astype(np.float32)
    colour_CHW[:, put] = paints[number_HW[put]].T
    height_HW[put] += np.float32(1.5)
