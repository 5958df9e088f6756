"""Draws the plan of a county: streets first, then what fills the land between them."""

import numpy as np
import shapely
from numpy.typing import NDArray
from rasterio.features import rasterize
from rasterio.transform import Affine

from .country import fields, river_banks, woodland
from .houses import line_streets
from .land import Land
from .plan import Furnishing, Patch, Plan, Road, Trees
from .sites import SITES, Furnish
from .streets import Streets, lay_streets, with_shared_nodes
from .trees import street_trees, thickets

_WITH_THICKETS = ("suburb", "town", "retail", "industry")


def draw_plan(size_m: tuple[int, int], rng: np.random.Generator) -> Plan:
    """A county of `size_m` (width and height in metres); the same generator, the same county."""
    streets = lay_streets(size_m, rng)
    site = _site_of(streets, size_m)

    def furnished(furnish: Furnish, use: str) -> list[Furnishing]:
        having = [district for district in streets.districts if district.use == use]
        return [furnish(district, streets.roads, site, rng) for district in having]

    # Who comes first has the choice of place: large things, farms, houses; then what is green.
    parts = [part for use, furnish in SITES.items() for part in furnished(furnish, use)]
    parts += furnished(fields, "farm")
    parts.append(line_streets(streets.roads, streets.districts, site, rng))
    parts += furnished(woodland, "wood")
    parts.append(river_banks(streets.river, streets.bridges, site, rng))
    parts.append(Furnishing(trees=_loose_trees(streets, site, rng)))
    return _assembled(Furnishing.joined(parts), streets, size_m)


def _loose_trees(streets: Streets, site: Land, rng: np.random.Generator) -> tuple[Trees, ...]:
    """Thickets where nobody mows, and rows of trees along streets."""
    idle = [d.outline.buffer(-8) for d in streets.districts if d.use in _WITH_THICKETS]
    lined = [road for road in streets.roads if road.pavement and not road.bridge]
    return (
        *(thickets(area, site, rng, 9.0) for area in idle),
        *(street_trees(road, site, rng) for road in lined),
    )


def _site_of(streets: Streets, size_m: tuple[int, int]) -> Land:
    """Roads and water taken, with the distance that building law asks for."""
    shapes = [road.surface().buffer(2.6) for road in streets.roads]
    shapes += [streets.river.buffer(2)]
    burnt = rasterize(
        shapes, (size_m[1], size_m[0]), transform=Affine.identity(), all_touched=True, dtype="uint8"
    )
    return Land(burnt.astype(bool))


def _assembled(everything: Furnishing, streets: Streets, size_m: tuple[int, int]) -> Plan:
    county = shapely.box(0, 0, *size_m)
    inner = [road for road in everything.roads if county.contains(road.line)]
    roads = with_shared_nodes([*streets.roads, *inner])
    grounds = [*everything.grounds, *_pavements(roads)]
    grounds += [Patch(bridge, "concrete") for bridge in streets.bridges]
    kept = Trees.joined(everything.trees)
    return Plan(
        size_m,
        tuple(roads),
        everything.buildings,
        tuple(grounds),
        everything.bays,
        everything.boxes,
        everything.paths,
        kept.where(~_on_roads(kept, roads)),
    )


def _pavements(roads: list[Road]) -> list[Patch]:
    return [
        Patch(road.line.buffer(road.width_m / 2 + 2.0, cap_style="flat"), "paving")
        for road in roads
        if road.pavement and not road.bridge
    ]


def _on_roads(trees: Trees, roads: list[Road]) -> NDArray[np.bool_]:
    """Trees whose trunk would stand on the carriageway or a metre beside it."""
    index = shapely.STRtree([road.surface().buffer(1.0) for road in roads])
    hit = index.query(shapely.points(trees.x, trees.y), predicate="intersects")[0]
    found = np.zeros(len(trees.x), bool)
    found[hit] = True
    return found
