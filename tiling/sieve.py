"""What is kept of a stream of OSM elements: roads, buildings, and why the rest is not."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self

import shapely
from shapely import Polygon

from .elements import Bounds, Element
from .tags import Verdict, judge_building, judge_road


@dataclass(frozen=True, slots=True)
class Feature:
    """A road or building that labels need."""

    osm_id: str
    """ "way/123" or "relation/5"."""

    kind: str
    """The value of `highway` or `building`."""

    tags: dict[str, str]

    geometry: Any
    """Line or area of a road, valid area of a building, in degrees (EPSG:4326)."""

    label: str
    """ "yes", or "unknown": to be masked."""


@dataclass
class Sieve:
    """Sorts elements as they come; only those that touch `bounds` (degrees, None: all) stay."""

    bounds: Bounds | None
    roads: list[Feature] = field(default_factory=list)
    buildings: list[Feature] = field(default_factory=list)

    dropped: Counter[str] = field(default_factory=Counter)
    """How many were left out, by class and reason: {"road: path": 12}."""

    extent: Bounds | None = None
    """Of all geometry that came by, kept or not."""

    newest: datetime | None = None
    """When the newest edit was."""

    shapeless: int = 0
    """How many came without a geometry."""

    @classmethod
    def of(cls, stream: Iterable[Element], bounds: Bounds | None) -> Self:
        """The whole stream sorted, without what it tells twice."""
        sieve = cls(bounds)
        for element in stream:
            sieve.add(element)
        sieve.roads = _once(sieve.roads)
        sieve.buildings = sieve._without_outlines(_once(sieve.buildings))
        return sieve

    def add(self, element: Element) -> None:
        """Keep a road or building, or count why not; what lies off the bounds is not counted."""
        if element.geometry is None:
            self.shapeless += 1
        elif not self._touched_by(element.geometry):
            return
        if element.changed is not None:
            self.newest = max(self.newest or element.changed, element.changed)
        if "highway" in element.tags and _is_road(element):
            self._sort("road", self.roads, element, judge_road(element.tags))
        if "building" in element.tags or "building:part" in element.tags:
            verdict = judge_building(element.tags)
            if element.area:
                self._sort("building", self.buildings, element, verdict)
            elif verdict.label != "no" and (fault := _why_no_area(element)):
                self.dropped[f"building: {fault}"] += 1

    def _touched_by(self, geometry: Any) -> bool:
        box = geometry.bounds
        self.extent = box if self.extent is None else union(self.extent, box)
        if self.bounds is None:
            return True
        return overlap(box, self.bounds) and geometry.intersects(shapely.box(*self.bounds))

    def _sort(self, name: str, into: list[Feature], element: Element, verdict: Verdict) -> None:
        if verdict.label == "no":
            self.dropped[f"{name}: {verdict.reason}"] += 1
        elif element.geometry is None:
            self.dropped[f"{name}: {element.fault}"] += 1
        else:
            kind = element.tags["highway" if name == "road" else "building"]
            feature = (element.osm_id, kind, element.tags, element.geometry, verdict.label)
            into.append(Feature(*feature))

    def _without_outlines(self, buildings: list[Feature]) -> list[Feature]:
        """Without ways that are tagged as buildings like the relation whose outer ring they are.

        They would count twice, and fill its courtyards.
        """
        shells = {
            _ring(part)
            for building in buildings
            if building.osm_id.startswith("relation/")
            for part in shapely.get_parts(building.geometry)
        }
        kept = [
            building
            for building in buildings
            if not building.osm_id.startswith("way/") or _ring(building.geometry) not in shells
        ]
        if len(kept) < len(buildings):
            self.dropped["building: outline of a multipolygon"] = len(buildings) - len(kept)
        return kept


def overlap(one: Bounds, other: Bounds) -> bool:
    """Whether two boxes share a point."""
    return one[0] <= other[2] and other[0] <= one[2] and one[1] <= other[3] and other[1] <= one[3]


def union(one: Bounds, other: Bounds) -> Bounds:
    """The box around two boxes."""
    low = min(one[0], other[0]), min(one[1], other[1])
    return *low, max(one[2], other[2]), max(one[3], other[3])


def _is_road(element: Element) -> bool:
    """Whether this telling of an element is the road: a closed way is a line unless area=yes."""
    filled = element.tags.get("area") == "yes"
    if element.area:
        return filled or element.osm_id.startswith("relation/")
    return not (filled and element.geometry is not None and element.geometry.is_closed)


def _why_no_area(way: Element) -> str:
    """Why the line of a building will not be told as an area too; "" if it will."""
    if way.fault:
        return way.fault
    line = way.geometry
    if line is None or not line.is_closed or way.tags.get("area") == "no":
        return "not closed"
    # There and back is no ring: osmium tells no area of it.
    return "" if shapely.get_num_points(line) > 3 else "broken ring"


def _once(features: list[Feature]) -> list[Feature]:
    """Without repeats, which overlapping layers have; one id may have several geometries."""
    if len({each.osm_id for each in features}) == len(features):
        return features
    return list({(each.osm_id, each.geometry.wkb): each for each in features}.values())


def _ring(geometry: Any) -> bytes:
    """The same bytes for the same outer ring, whatever its start and direction; b"" if several."""
    if not isinstance(geometry, Polygon):
        return b""
    ring: bytes = shapely.normalize(Polygon(geometry.exterior)).wkb
    return ring
