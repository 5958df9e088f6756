"""What takes a whole district: shops with their car parks, a school, flats, works, a park."""

import math
from collections.abc import Callable, Sequence

import numpy as np
import shapely
from shapely import LineString, Point

from .blocks import access, blob, block, car_park, courtyard
from .districts import District
from .land import Land
from .plan import Box, Frame, Furnishing, Patch, Road, one_polygon
from .trees import thickets, wood

Furnish = Callable[[District, Sequence[Road], Land, np.random.Generator], Furnishing]


def retail(
    district: District, roads: Sequence[Road], site: Land, rng: np.random.Generator
) -> Furnishing:
    """Large shops back to back, each row with its car park before it."""
    width, height = (length - 60 for length in district.size)
    turns = (0.0, math.pi) if height > 330 else (0.0,)
    middle = 0.0 if len(turns) == 2 else height / 2 - 20
    frames = [district.frame.moved(0, middle, turn) for turn in turns]
    deep = min(height / len(turns) - 20, 190.0)
    return Furnishing.joined(
        [_shop_row(frame, (width, deep), district, roads, site, rng) for frame in frames]
    )


def _shop_row(
    frame: Frame, size_m: tuple[float, float], district: District, roads: Sequence[Road],
    site: Land, rng: np.random.Generator,
) -> Furnishing:  # fmt: skip
    """Shops along the s axis, on its right side; beyond them cars, and a kiosk or two."""
    width, deep = size_m
    street, shop_deep = "retail park", float(rng.uniform(34, 52))
    apron = frame.box(-0.47 * width, -deep, 0.47 * width, 0)
    ground = Patch(apron.intersection(district.outline.buffer(-9)), "asphalt", 1.04)
    rows_deep = max(17.0, deep - shop_deep - 48)
    corner = frame.moved(-0.4 * width, -shop_deep - 20 - rows_deep)
    park = car_park(corner, (0.8 * width, rows_deep), street, 0.6, site, rng)
    parts = [Furnishing(grounds=(ground,)), access(park, roads, street, site)]
    coverings = rng.choice(("membrane", "membrane", "white roof", "gravel roof"), 4)
    s = -0.45 * width
    for share, covering in zip(rng.dirichlet((5, 3, 4, 3)), coverings, strict=True):
        length = 0.9 * width * share
        here = shop_deep * float(rng.uniform(0.75, 1.0))
        parts.append(
            block(frame.moved(s + length / 2, -6 - here / 2), (length - 3, here), site,
                  kind="retail", covering=str(covering), street=street, eaves_m=7.5, rng=rng)
        )  # fmt: skip
        s += length
    for share in (-0.33, 0.3):
        kiosk = frame.moved(share * width, -deep + 12)
        parts.append(
            block(kiosk, (24, 14), site, kind="commercial", covering="gravel roof",
                  street=street, eaves_m=4.5, rng=rng)
        )  # fmt: skip
    site.take(apron)
    return Furnishing.joined(parts)


def industry(
    district: District, roads: Sequence[Road], site: Land, rng: np.random.Generator
) -> Furnishing:
    """Halls of sheet metal, each in its yard."""
    width, height = (length - 50 for length in district.size)
    cols, rows = max(1, round(width / 150)), max(1, round(height / 110))
    street, parts = "works", []
    for col in range(cols):
        for row in range(rows):
            s, t = ((col + 0.5) / cols - 0.5) * width, ((row + 0.5) / rows - 0.5) * height
            yard = district.frame.moved(s, t)
            size = (0.62 * width / cols * rng.uniform(0.7, 1), 0.4 * height / rows)
            covering = str(rng.choice(("metal", "metal", "white roof", "gravel roof")))
            hall = block(
                yard.moved(0, 0.16 * height / rows), size, site, kind="industrial",
                covering=covering, street=street, eaves_m=9.0, rng=rng,
                roof="gable" if rng.random() < 0.4 else "flat",
            )  # fmt: skip
            half_s, half_t = 0.46 * width / cols, 0.44 * height / rows
            ground = Patch(
                yard.box(-half_s, -half_t, half_s, half_t),
                str(rng.choice(("concrete", "asphalt", "gravel"))),
                float(rng.uniform(0.85, 1.05)),
            )
            parts += [Furnishing(grounds=(ground,)), hall]
            front = yard.moved(-half_s + 4, -half_t + 3)
            park = car_park(front, (half_s, 17.0), street, 0.6, site, rng)
            trucks = _trucks(yard.moved(half_s * 0.4, -half_t * 0.55), int(rng.integers(0, 7)))
            parts += [access(park, roads, street, site), Furnishing(boxes=trucks)]
            site.take(one_polygon(ground.area))
    return Furnishing.joined(parts)


def flats(
    district: District, roads: Sequence[Road], site: Land, rng: np.random.Generator
) -> Furnishing:
    """Blocks of flats on lawns, between rows of cars, around a building with a yard."""
    width, height = (length - 50 for length in district.size)
    street, frame = "gardens", district.frame
    outline = district.outline.buffer(-6)
    parts = [Furnishing(grounds=(Patch(outline, "lawn", 0.95),))]
    parts.append(
        courtyard(frame, (52, 46), 12, site, kind="apartments", street=street, eaves_m=12.5,
                  covering="tile", rng=rng)
    )  # fmt: skip
    count = max(2, round(width / 78))
    for col in range(count):
        s = ((col + 0.5) / count - 0.5) * width
        if col % 2:
            # Turned, so that the row of cars runs along the blocks' narrow ends.
            lot = frame.moved(s - width / count / 2 + 8, -0.36 * height, math.pi / 2)
            cars = car_park(lot, (0.72 * height, 17.0), street, 0.75, site, rng)
            parts.append(access(cars, roads, street, site))
        covering, roof = str(rng.choice(("membrane", "shingle brown", "tile"))), "hip"
        for t in np.arange(-height / 2 + 10, height / 2 - 4, float(rng.uniform(31, 38))):
            place = frame.moved(s + rng.uniform(-3, 3), float(t), rng.uniform(-0.04, 0.04))
            size = (float(rng.uniform(0.5, 0.68)) * width / count, 13.0)
            parts.append(
                block(place, size, site, kind="apartments", covering=covering, street=street,
                      eaves_m=11.0, rng=rng, roof="flat" if covering == "membrane" else roof)
            )  # fmt: skip
    return Furnishing.joined([*parts, Furnishing(trees=(thickets(outline, site, rng, 9.5),))])


def school(
    district: District, roads: Sequence[Road], site: Land, rng: np.random.Generator
) -> Furnishing:
    """A school around a yard, its gymnasium, car park and sports grounds."""
    width, height = (length - 60 for length in district.size)
    street, frame = "school", district.frame.moved(0, 0, math.pi * int(rng.integers(2)))
    grounds = district.outline.buffer(-8)
    parts = [Furnishing(grounds=(Patch(grounds, "lawn", 1.0),))]
    at = frame.moved(-0.16 * width, 0.22 * height)
    parts.append(
        courtyard(at, (82, 60), 17, site, kind="school", street=street, eaves_m=8.0,
                  covering="gravel roof", rng=rng)
    )  # fmt: skip
    for s, t, size in ((68, -6, (36, 42)), (-62, 12, (34, 20)), (0, 52, (90, 16))):
        parts.append(
            block(at.moved(s, t), size, site, kind="school", covering="membrane", street=street,
                  eaves_m=9.0, rng=rng)
        )  # fmt: skip
    lot = frame.moved(-0.42 * width, -0.18 * height)
    parts.append(access(car_park(lot, (100, 50), street, 0.9, site, rng), roads, street, site))
    parts.append(_sports_ground(frame.moved(0.22 * width, -0.24 * height), site))
    parts.append(_diamond(frame.moved(-0.3 * width, -0.4 * height, 0.5), site))
    parts.append(_courts(frame.moved(0.36 * width, 0.2 * height), site))
    trees = thickets(grounds, site, rng, 12.0)
    return Furnishing.joined([*parts, Furnishing(trees=(trees,))])


def park(
    district: District, roads: Sequence[Road], site: Land, rng: np.random.Generator
) -> Furnishing:
    """Meadow, groups of trees and a pond with paths around it."""
    outline = district.outline.buffer(-10)
    # The pond lies in the middle of what the county has of the park.
    visible = outline.intersection(site.county)
    radius = 0.17 * math.sqrt(visible.area)
    pond = blob(Frame(visible.centroid.x, visible.centroid.y, district.frame.angle), radius, rng)
    reach = shapely.maximum_inscribed_circle(pond).length
    ground = (
        Patch(outline, "park"),
        Patch(pond.buffer(2.5), "bank"),
        Patch(pond, "water"),
        *(Patch(pond.buffer(-0.06 * i * reach), "water", 1 - 0.075 * i) for i in range(1, 11)),
        Patch(pond.buffer(-0.64 * reach), "deep water"),
    )
    walk = LineString(pond.buffer(12).exterior.coords)
    ring = LineString(outline.buffer(-16).exterior.coords)
    link = shapely.shortest_line(walk, ring)
    paths = tuple(line for line in (walk, ring, link) if line.length > 1)
    site.take(pond.buffer(3))
    sand = district.frame.moved(min(district.size) * 0.33, 0).box(-9, -6, 9, 6)
    groves = [
        wood(
            blob(district.frame.moved(s, t), rng.uniform(14, 34), rng).difference(walk.buffer(2)),
            site,
            rng,
            6.5,
        )
        for s, t in rng.uniform(-0.38, 0.38, (6, 2)) * np.array(district.size)
    ]
    loose = wood(outline, site, rng, spacing_m=17.0)
    loose = loose.where(rng.random(len(loose.x)) < 0.3)
    return Furnishing(grounds=(*ground, Patch(sand, "sand")), paths=paths, trees=(*groves, loose))


# -- pieces ------------------------------------------------------------------------------------


def _trucks(frame: Frame, count: int) -> tuple[Box, ...]:
    """Lorries side by side."""
    return tuple(
        Box(frame.moved(4.2 * i, 0).box(-1.3, -7.5, 1.3, 5.5), 3.6, 1.25) for i in range(count)
    )


def _sports_ground(frame: Frame, site: Land) -> Furnishing:
    """A pitch inside a running track, smaller where room is short."""
    for scale in (1.0, 0.8, 0.6):
        half_s, half_t = 46 * scale, 31 * scale
        core = frame.box(-half_s, -2, half_s, 2)
        oval = core.buffer(half_t)
        if site.is_free(oval):
            site.take(oval)
            pitch = frame.box(-half_s, -half_t * 0.68, half_s, half_t * 0.68)
            lines = shapely.union_all(
                [pitch.exterior, frame.line([(0, -half_t * 0.68), (0, half_t * 0.68)])]
            ).buffer(0.25)
            grounds = [Patch(oval, "tartan"), Patch(core.buffer(half_t - 8), "pitch")]
            grounds += [Patch(part, "bay line") for part in shapely.get_parts(lines)]
            return Furnishing(grounds=tuple(grounds))
    return Furnishing()


def _diamond(frame: Frame, site: Land) -> Furnishing:
    """A baseball field: a quarter of a disc of sand, grass inside it and beyond."""
    home = frame.box(0, 0, 75, 75)
    outfield = one_polygon(Point(frame.at(0, 0)).buffer(70).intersection(home))
    if not site.is_free(outfield):
        return Furnishing()
    site.take(outfield)
    infield = Point(frame.at(10, 10)).buffer(30).intersection(home)
    return Furnishing(
        grounds=(
            Patch(outfield, "pitch", 0.97),
            Patch(infield, "sand", 0.86),
            Patch(frame.box(3, 3, 24, 24), "pitch"),
        )
    )


def _courts(frame: Frame, site: Land) -> Furnishing:
    """Four tennis courts side by side."""
    if not site.is_free(frame.box(-36, -18, 36, 18)):
        return Furnishing()
    site.take(frame.box(-36, -18, 36, 18))
    courts = [frame.moved(s, 0).box(-5.5, -12, 5.5, 12) for s in (-25.5, -8.5, 8.5, 25.5)]
    lines = [Patch(court.exterior.buffer(0.2), "bay line") for court in courts]
    inner = [Patch(court, "court") for court in courts]
    return Furnishing(grounds=(Patch(frame.box(-36, -18, 36, 18), "tartan", 0.8), *inner, *lines))


SITES: dict[str, Furnish] = {
    "retail": retail,
    "industry": industry,
    "flats": flats,
    "school": school,
    "park": park,
}
"""What furnishes a district, by its use; the uses not named here are built along streets."""
