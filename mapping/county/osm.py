"""The county as OpenStreetMap has it: a third of the houses missing, all a few metres aside.

Also what a reader must leave out: a tunnel, a road that is only proposed, `building=no`, a car park
underground, footways. The same generator and county, the same bytes.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import osmium
import shapely
from osmium.osm.mutable import Node, Relation, Way
from shapely import LineString, Polygon
from shapely.affinity import translate

from .plan import Building, Floats, Frame, Plan, Road, one_polygon

SHIFT_M = (2.5, -1.8)
"""Where OSM has everything, against the truth: eastwards and northwards."""

SNAPSHOT = "2022-01-15T00:00:00Z"

_WHOLE_STREETS = 0.22
"""Share of the buildings that is missing street by street."""

_BUILDINGS_MISSING = 0.335
"""With those that are missing one by one."""

_ROADS_MISSING = 0.17
"""Share of the length, in whole streets."""

_JITTER_M = 0.5

Tags = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Extract:
    """An extract while it grows; nodes at one place are one node."""

    to_degrees: Callable[[Floats], Floats]
    """From the county's metres to longitude and latitude."""

    nodes: dict[tuple[float, float], int] = field(default_factory=dict)
    node_tags: dict[int, Tags] = field(default_factory=dict)
    ways: list[tuple[list[int], Tags]] = field(default_factory=list)
    relations: list[tuple[list[tuple[str, int, str]], Tags]] = field(default_factory=list)

    def add_nodes(self, xy_N2: Floats) -> list[int]:
        """Their ids; the county's metres are moved to where OSM has them."""
        degrees = np.round(self.to_degrees(xy_N2 + np.array(SHIFT_M)), 7)
        keys = [(float(lon), float(lat)) for lon, lat in degrees]
        return [self.nodes.setdefault(key, 1001 + len(self.nodes)) for key in keys]

    def add_way(self, xy_N2: Floats, tags: Tags) -> int:
        self.ways.append((self.add_nodes(xy_N2), tags))
        return 500_000 + len(self.ways)

    def add_area(self, area: Polygon, tags: Tags) -> None:
        """A closed way, or a multipolygon where the area has holes."""
        rings = [area.exterior, *area.interiors]
        if len(rings) == 1:
            self.add_way(shapely.get_coordinates(rings[0]), tags)
            return
        ways = [self.add_way(shapely.get_coordinates(ring), {}) for ring in rings]
        roles = ["outer", *["inner"] * (len(rings) - 1)]
        members = [("w", way, role) for way, role in zip(ways, roles, strict=True)]
        self.relations.append((members, {"type": "multipolygon", **tags}))


def write_osm(
    path: Path, plan: Plan, to_degrees: Callable[[Floats], Floats], rng: np.random.Generator
) -> None:
    """Write the extract as PBF to `path` itself: give it the part of `written_beside`."""
    extract = _Extract(to_degrees)
    for road in _mapped_roads(plan.roads, rng):
        _add_road(extract, road, rng)
    _add_buildings(extract, _mapped_buildings(plan.buildings, rng), rng)
    for line in plan.paths:
        extract.add_way(shapely.get_coordinates(line), {"highway": "footway"})
    for patch in plan.grounds:
        if patch.material in ("water", "pool") and patch.tint == 1.0:
            tags = (
                {"natural": "water"} if patch.material == "water" else {"leisure": "swimming_pool"}
            )
            extract.add_area(one_polygon(patch.area), tags)
    _add_what_is_not_there(extract, plan)
    _write(path, extract)


# -- what is mapped ----------------------------------------------------------------------------


def _mapped_buildings(buildings: Sequence[Building], rng: np.random.Generator) -> list[Building]:
    """Two thirds: whole streets were never mapped, and some houses were built since.

    What stands around a yard is a landmark and always there.
    """
    plain = [b for b in buildings if not b.footprint.interiors]
    groups: dict[str, list[int]] = {}
    for number, building in enumerate(plain):
        groups.setdefault(building.street, []).append(number)
    whole, target = (
        round(share * len(buildings)) for share in (_WHOLE_STREETS, _BUILDINGS_MISSING)
    )
    missing: set[int] = set()
    names = sorted(groups)
    for place in rng.permutation(len(names)).tolist():
        # The last street is only begun: its houses are in the order in which they stand.
        missing.update(groups[names[place]][: whole - len(missing)])
    others = [number for number in range(len(plain)) if number not in missing]
    singles = rng.permutation(len(others))[: max(target - len(missing), 0)]
    missing.update(others[place] for place in singles.tolist())
    landmarks = [b for b in buildings if b.footprint.interiors]
    return [b for number, b in enumerate(plain) if number not in missing] + landmarks


def _mapped_roads(roads: Sequence[Road], rng: np.random.Generator) -> list[Road]:
    """All but some side streets, each missing as a whole."""
    groups: dict[str, list[Road]] = {}
    for number, road in enumerate(roads):
        if road.kind not in ("primary", "secondary", "tertiary"):
            groups.setdefault(road.street or f"track {number}", []).append(road)
    wanted = _ROADS_MISSING * sum(road.line.length for road in roads)
    missing: list[Road] = []
    names = sorted(groups)
    for place in rng.permutation(len(names)).tolist():
        group = groups[names[place]]
        if sum(road.line.length for road in [*missing, *group]) <= wanted:
            missing += group
    gone = {id(road) for road in missing}
    return [road for road in roads if id(road) not in gone]


# -- its tags ----------------------------------------------------------------------------------


def _add_road(extract: _Extract, road: Road, rng: np.random.Generator) -> None:
    tags = {"highway": road.kind}
    if road.kind == "parking_aisle":
        tags = {"highway": "service", "service": "parking_aisle"}
    if road.street and road.kind not in ("service", "parking_aisle"):
        tags["name"] = road.street
    tags["surface"] = "unpaved" if road.kind == "track" else "asphalt"
    if road.bridge:
        tags |= {"bridge": "yes", "layer": "1"}
    if road.kind == "primary":
        tags |= {"lanes": "4", "ref": "US 15"}
    if road.kind in ("secondary", "tertiary") and rng.random() < 0.6:
        tags["lanes"] = "2"
    form = rng.random()
    if form < 0.2:
        tags["width"] = f"{road.width_m:.1f}"
    elif form < 0.25:
        tags["width"] = f"{road.width_m / 0.3048:.0f}'"
    elif form < 0.28:
        tags["width"] = "unknown"
    points = shapely.get_coordinates(road.line)
    nodes = extract.add_nodes(points + _sway(points))
    if road.turning_circle:
        extract.node_tags[nodes[-1]] = {"highway": "turning_circle"}
    extract.ways.append((nodes, tags))


def _sway(xy_N2: Floats) -> Floats:
    """Slow waves of half a metre, the same wherever two roads share a node."""
    x, y = xy_N2.T
    east = np.sin(x / 41 + 2.0 * np.sin(y / 67))
    north = np.sin(y / 37 + 2.0 * np.sin(x / 59))
    return _JITTER_M * np.stack([east, north], axis=1)


def _add_buildings(
    extract: _Extract, buildings: Iterable[Building], rng: np.random.Generator
) -> None:
    """Each a little aside in its own way; houses of one terrace keep their common walls."""
    aside: dict[str, Floats] = {}
    for number, building in enumerate(buildings, start=1):
        own = rng.normal(0, _JITTER_M, 2)
        if building.row:
            own = aside.setdefault(building.row, own)
        tags = {"building": building.kind}
        if rng.random() < 0.3 and building.kind in ("house", "terrace"):
            tags |= {"addr:housenumber": str(number), "addr:street": building.street}
        if rng.random() < 0.1:
            tags["building:levels"] = str(max(1, round(building.wings[0].eaves_m / 3)))
        extract.add_area(translate(building.footprint, *own.tolist()), tags)


def _add_what_is_not_there(extract: _Extract, plan: Plan) -> None:
    """What a map of the surface must not take for a road or a building."""
    width, height = plan.size_m
    at = Frame(0.3 * width, 0.4 * height, 0.4)
    lines: tuple[tuple[LineString, Tags], ...] = (
        (at.line([(0, 0), (150, 0)]), {"highway": "service", "tunnel": "yes", "layer": "-1"}),
        (at.line([(0, 60), (220, 70)]), {"highway": "proposed", "proposed": "primary"}),
        (at.line([(30, -20), (40, 90)]), {"highway": "footway", "footway": "sidewalk"}),
    )
    for line, tags in lines:
        extract.add_way(shapely.get_coordinates(line), tags)
    areas: tuple[tuple[Polygon, Tags], ...] = (
        (at.box(10, 20, 24, 32), {"building": "no"}),
        (at.box(40, 20, 80, 44), {"amenity": "parking", "parking": "underground", "layer": "-1"}),
        (at.box(90, 20, 110, 34), {"building": "yes", "location": "underground"}),
        (at.box(-30, -30, -10, -16), {"demolished:building": "house"}),
    )
    for area, tags in areas:
        extract.add_area(area, tags)


# -- the file ----------------------------------------------------------------------------------


def _write(path: Path, extract: _Extract) -> None:
    header = osmium.io.Header()
    header.set("generator", "orthotrace county")
    header.set("osmosis_replication_timestamp", SNAPSHOT)
    with osmium.SimpleWriter(str(path), header=header, overwrite=True) as writer:
        for place, number in extract.nodes.items():
            tags = extract.node_tags.get(number, {})
            node = Node(id=number, location=place, tags=tags, version=1, timestamp=SNAPSHOT)
            writer.add_node(node)
        for number, (nodes, tags) in enumerate(extract.ways, start=500_001):
            way = Way(id=number, nodes=nodes, tags=tags, version=1, timestamp=SNAPSHOT)
            writer.add_way(way)
        for number, (members, tags) in enumerate(extract.relations, start=900_001):
            relation = Relation(
                id=number, members=members, tags=tags, version=1, timestamp=SNAPSHOT
            )
            writer.add_relation(relation)
