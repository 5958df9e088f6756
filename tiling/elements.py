"""An OSM file (PBF or XML, packed or not) as a stream of lines and areas, by pyosmium.

Geometry is in degrees, longitude before latitude (EPSG:4326).
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import osmium
import shapely
from shapely import LineString, MultiLineString, MultiPolygon, Polygon

from .errors import TilingError

OSM_SUFFIXES = (".pbf", ".osm", ".osm.gz", ".osm.bz2")
"""Names that are read here end in one of these."""

Bounds = tuple[float, float, float, float]
"""Left, bottom, right, top."""

_IN_MEMORY_BYTES = 256 << 20
"""Size of a file up to which the places of its nodes are kept in memory (16 bytes a node)."""

_SORTABLE_BYTES = 100 << 20
"""Size of a file up to which one that is out of order is sorted here, in memory."""

NODE_MISSING = "node missing"
"""The fault of a way that the file holds without (some of) its nodes."""


@dataclass(frozen=True, slots=True)
class Element:
    """A way or multipolygon with its geometry; a closed way is told twice, as line and as area."""

    osm_id: str
    """ "way/123" or "relation/5"."""

    tags: dict[str, str]

    geometry: LineString | MultiLineString | Polygon | MultiPolygon | None
    """Valid if an area; a line in pieces where nodes are missing; None where none can be made."""

    area: bool
    """Told as an area, not as a line."""

    fault: str = ""
    """Why the geometry is none, or only a part."""

    changed: datetime | None = None
    """When it was last edited, where the file says so."""


class UnsortedError(TilingError):
    """Nodes do not stand before the ways that need them, so no geometry can be made."""


def elements(path: Path, keys: Sequence[str] = ()) -> Iterator[Element]:
    """The ways and multipolygons of an OSM file that have one of the tags `keys` (none: all).

    In the order of the file; memory does not grow with it but for the places of its nodes, which
    go to a temporary file where they are many. Rings that cross themselves are repaired where
    they are ways. TilingError for a file that is cut short or no OSM data, when that is reached.
    """
    wkb = osmium.geom.WKBFactory()
    # Areas come later than their ways and relations: what they may need or lack is kept till then.
    crossing: dict[str, Polygon] = {}
    awaited: dict[str, Element] = {}
    with _told(path), _processor(path, keys) as processor:
        for found in processor:
            if found.is_way():
                way = _way(found, wkb)
                if (polygon := _crossing(way)) is not None:
                    crossing[way.osm_id] = polygon
                yield way
            elif found.is_area():
                area = _area(found, wkb, crossing)
                awaited.pop(area.osm_id, None)
                yield area
            elif found.is_relation() and found.tags.get("type") == "multipolygon":
                name, changed = f"relation/{found.id}", _changed(found)
                fault = "incomplete relation"
                awaited[name] = Element(name, dict(found.tags), None, True, fault, changed)
        yield from awaited.values()


def header(path: Path) -> tuple[str | None, Bounds | None]:
    """When the data was taken (ISO) and the bounds that the file gives itself, if it says so."""
    with _told(path):
        head = osmium.FileProcessor(path).header
    taken = head.get("osmosis_replication_timestamp") or head.get("timestamp") or None
    box = head.box()
    if not box.valid():
        return taken, None
    low, high = box.bottom_left, box.top_right
    return taken, (low.lon, low.lat, high.lon, high.lat)


@contextmanager
def sorted_copy(path: Path) -> Iterator[Path]:
    """The same data in the order that reading needs; UnsortedError if too much to sort here."""
    if path.stat().st_size > _SORTABLE_BYTES:
        raise UnsortedError(
            f"{path} holds ways before their nodes; wanted it sorted, as "
            f"`osmium sort {path.name} -o sorted.osm.pbf` does"
        )
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "sorted.osm.pbf"
        merger = osmium.MergeInputReader()
        with _told(path), osmium.SimpleWriter(str(copy)) as writer:
            merger.add_file(str(path))
            merger.apply(writer, simplify=True)
        yield copy


def valid_polygon(geometry: Any) -> Polygon | MultiPolygon | None:
    """The geometry as valid polygons, without what repair leaves of lines; None if empty."""
    if geometry.is_valid and not geometry.is_empty:
        alone = shapely.get_num_geometries(geometry) == 1
        valid: Polygon | MultiPolygon = shapely.get_geometry(geometry, 0) if alone else geometry
        return valid
    geometry = shapely.make_valid(geometry, method="structure", keep_collapsed=False)
    parts = [
        part
        for part in shapely.get_parts(shapely.get_parts(geometry))
        if isinstance(part, Polygon) and part.area > 0
    ]
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else MultiPolygon(parts)


# -- inside ------------------------------------------------------------------------------------


@contextmanager
def _processor(path: Path, keys: Sequence[str]) -> Iterator[Any]:
    filters = [osmium.filter.KeyFilter(*keys)] if keys else []
    with tempfile.TemporaryDirectory() as folder:
        small = path.stat().st_size <= _IN_MEMORY_BYTES
        index = "flex_mem" if small else f"sparse_file_array,{folder}/nodes"
        processor = osmium.FileProcessor(path).with_locations(index).with_areas(*filters)
        for each in filters:
            processor.with_filter(each)
        yield processor


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """osmium's errors while it reads a file, as ours."""
    if not path.is_file() or path.stat().st_size == 0:
        found = "is empty" if path.is_file() else "is no file"
        raise TilingError(f"{path} {found}; wanted an OSM extract such as county.osm.pbf")
    try:
        yield
    except (RuntimeError, ValueError, osmium.InvalidLocationError) as problem:
        if "out of order" in str(problem):
            raise UnsortedError(
                f"{path} is not sorted ({problem}); wanted nodes, ways, relations by id"
            ) from problem
        raise TilingError(
            f"{path} is cut short or no OSM data ({problem}); "
            f"wanted a whole file of the kind that its name says ({', '.join(OSM_SUFFIXES)})"
        ) from problem


def _way(way: Any, wkb: Any) -> Element:
    told = f"way/{way.id}", dict(way.tags)
    changed = _changed(way)
    try:
        return Element(*told, shapely.from_wkb(wkb.create_linestring(way)), False, "", changed)
    except osmium.InvalidLocationError:
        return Element(*told, _known_pieces(way), False, NODE_MISSING, changed)
    except RuntimeError:  # osmium's word for fewer than two places
        return Element(*told, None, False, "a single point", changed)


def _known_pieces(way: Any) -> LineString | MultiLineString | None:
    """The runs of nodes whose places the file holds: what lies between is never bridged."""
    runs: list[list[tuple[float, float]]] = [[]]
    for node in way.nodes:
        if node.location.valid():
            runs[-1].append((node.lon, node.lat))
        elif runs[-1]:
            runs.append([])
    lines = [LineString(run) for run in runs if len(set(run)) > 1]
    if not lines:
        return None
    return lines[0] if len(lines) == 1 else MultiLineString(lines)


def _crossing(way: Element) -> Polygon | None:
    """The polygon of a closed way whose ring crosses itself: osmium will give it no rings."""
    line = way.geometry
    if way.fault or not isinstance(line, LineString) or not line.is_closed or line.is_simple:
        return None
    return Polygon(line) if shapely.get_num_points(line) > 3 else None


def _area(area: Any, wkb: Any, crossing: dict[str, Polygon]) -> Element:
    osm_id = f"{'way' if area.from_way() else 'relation'}/{area.orig_id()}"
    polygon = crossing.pop(osm_id, None)
    if area.num_rings()[0]:
        polygon = shapely.from_wkb(wkb.create_multipolygon(area))
    valid = None if polygon is None else valid_polygon(polygon)
    fault = "broken ring" if valid is None else ""
    return Element(osm_id, dict(area.tags), valid, True, fault, _changed(area))


def _changed(thing: Any) -> datetime | None:
    """The time of the last edit; osmium's for "not told" is the beginning of 1970."""
    changed: datetime = thing.timestamp
    return changed if changed > datetime(1970, 1, 2, tzinfo=UTC) else None
