"""OSM features from vector files: GeoPackage, GeoJSON, FlatGeobuf, GeoParquet.

Such files name things in many ways, so tags are looked for in columns (`highway`), in a column
of all tags (JSON, a map, or GDAL's `other_tags`), and, without any, in the name of the layer.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pandas
import pyogrio
import shapely
import shapely.errors
from pyproj import Transformer
from shapely import GeometryCollection, LineString, MultiLineString, MultiPolygon, Polygon

from .elements import Bounds, Element, valid_polygon
from .errors import TilingError

VECTOR_SUFFIXES = (".gpkg", ".geojson", ".json", ".fgb", ".parquet")
"""Names that are read here end in one of these."""

_ROAD_LAYER = re.compile(r"road|highway|street", re.IGNORECASE)
_BUILDING_LAYER = re.compile(r"building|footprint", re.IGNORECASE)
_HSTORE = re.compile(r'"((?:[^"\\]|\\.)*)"=>"((?:[^"\\]|\\.)*)"')
_ID_COLUMNS = ("full_id", "@id", "feature_id", "osm_id", "osm_way_id", "osmid", "id")
_TAGS = frozenset({"highway", "building", "tags", "other_tags"})
"""Columns of which any one says what is a road or a building."""

_NO_TAGS = frozenset(
    {*_ID_COLUMNS, "osm_type", "@type", "tags", "other_tags", "kind", "label", "width_m", "bbox"}
)
"""Columns that are no tags; the last ones are of this project's own files."""


def features(path: Path, bounds_wgs84: Bounds | None) -> Iterator[Element]:
    """The roads and buildings of a file, in degrees (EPSG:4326), layer by layer.

    Only near `bounds_wgs84`, where the format has an index. A line without a `highway` in a
    layer of roads is `highway=road`, a polygon in a layer of buildings `building=yes`; a file of
    one layer needs no name for it. TilingError for a file that cannot be read or has no CRS, and
    for one in which nothing says what is a road and what a building.
    """
    understood = False
    for name, alone, frame in _layers(path, bounds_wgs84):
        if frame.crs is None:
            raise TilingError(f"{path} has no CRS (layer {name}); wanted one, such as EPSG:4326")
        columns = [str(column) for column in frame.columns]
        assumed = _assumed(name, alone, columns)
        understood = understood or any(assumed) or bool(_TAGS & {*columns})
        yield from _read(path, lambda frame=frame, told=(name, assumed): _rows(frame, *told))
    if not understood:
        raise TilingError(
            f"{path} does not say what is a road or a building; wanted a column `highway`, "
            "`building` or `tags`, or layers called roads and buildings"
        )


def _rows(frame: Any, name: str, assumed: tuple[str | None, str | None]) -> list[Element]:
    """The elements of one layer's frame; ValueError for what is none."""
    frame = frame.to_crs("EPSG:4326")
    geometries = frame.geometry.tolist()
    if not np.isfinite(shapely.get_coordinates(geometries)).all():
        raise ValueError(f"a coordinate of the layer {name} is no finite number")
    rows = frame.drop(columns=frame.geometry.name).to_dict("records")
    return [
        element
        for number, (geometry, row) in enumerate(zip(geometries, rows, strict=True))
        if geometry is not None and not geometry.is_empty
        for element in _element(f"{name}/{number}", shapely.force_2d(geometry), row, assumed)
    ]


def extent(path: Path) -> Bounds | None:
    """The bounds in degrees of all layers together, None where the format does not say."""
    if not path.is_file():
        raise TilingError(f"{path} is no file; wanted an OSM extract such as county.gpkg")
    if path.suffix == ".parquet":
        return None
    boxes: list[Bounds] = _read(path, lambda: list(_boxes(path)))
    if not boxes:
        return None
    left, bottom, right, top = zip(*boxes, strict=True)
    return min(left), min(bottom), max(right), max(top)


def _boxes(path: Path) -> Iterator[Bounds]:
    """The bounds in degrees of each layer that tells them."""
    for name, _ in pyogrio.list_layers(path):
        info = pyogrio.read_info(path, layer=name, force_total_bounds=True)
        if info["crs"] and info["total_bounds"] is not None and info["features"]:
            to_degrees = Transformer.from_crs(info["crs"], "EPSG:4326", always_xy=True)
            yield to_degrees.transform_bounds(*info["total_bounds"])


def _layers(path: Path, bounds: Bounds | None) -> Iterator[tuple[str, bool, Any]]:
    """Name, whether it is the only one, and frame of each layer with geometry."""
    if path.suffix == ".parquet":
        yield path.stem, True, _read(path, lambda: geopandas.read_parquet(path))
        return
    names = [name for name, kind in _read(path, lambda: pyogrio.list_layers(path)) if kind]
    for name in names:
        if not _matters(name, names):
            continue
        frame = _read(path, lambda name=name: _frame(path, name, bounds))
        yield name, len(names) == 1, frame


def _frame(path: Path, layer: str, bounds: Bounds | None) -> Any:
    """A layer, of what is near the bounds (degrees) alone where the format has an index."""
    crs = pyogrio.read_info(path, layer=layer)["crs"]
    box = None
    if bounds is not None and crs is not None:
        box = Transformer.from_crs("EPSG:4326", crs, always_xy=True).transform_bounds(*bounds)
    return pyogrio.read_dataframe(path, layer=layer, bbox=box)


def _read(path: Path, read: Any) -> Any:
    """What `read` gives; the libraries' errors as ours."""
    try:
        return read()
    except (RuntimeError, ValueError, OSError, shapely.errors.GEOSException) as problem:
        raise TilingError(
            f"{path} cannot be read as a vector file ({' '.join(str(problem).split())}); "
            f"wanted a whole one of {', '.join(VECTOR_SUFFIXES)}"
        ) from problem


def _matters(name: str, names: list[str]) -> bool:
    """Whether a layer is to be read: beside one of buildings, "schools" tells them once more."""
    return any(
        kind.search(name) or not any(kind.search(other) for other in names)
        for kind in (_ROAD_LAYER, _BUILDING_LAYER)
    )


def _assumed(name: str, alone: bool, columns: list[str]) -> tuple[str | None, str | None]:
    """The `highway` of lines and `building` of polygons without a tag; None: left out."""
    tagged = _TAGS & {*columns}
    nameless = alone and not tagged
    road = "highway" not in tagged and (nameless or _ROAD_LAYER.search(name) is not None)
    building = "building" not in tagged and (nameless or _BUILDING_LAYER.search(name) is not None)
    return "road" if road else None, "yes" if building else None


def _element(
    place: str, geometry: Any, row: Mapping[str, Any], assumed: tuple[str | None, str | None]
) -> Iterator[Element]:
    tags = _tags(row)
    osm_id = _osm_id(row) or place
    road, building = assumed
    if isinstance(geometry, LineString | MultiLineString):
        if "highway" not in tags and road:
            tags["highway"] = road
        yield Element(osm_id, tags, geometry, area=False)
    elif isinstance(geometry, Polygon | MultiPolygon):
        if "building" not in tags and building:
            tags["building"] = building
        if "highway" in tags:
            tags.setdefault("area", "yes")  # whoever wrote a polygon took it for an area
        valid = valid_polygon(geometry)
        yield Element(osm_id, tags, valid, True, "" if valid is not None else "broken ring")
    elif isinstance(geometry, GeometryCollection):
        yield Element(osm_id, tags, None, "building" in tags, "neither a line nor an area")


def _tags(row: Mapping[str, Any]) -> dict[str, str]:
    tags = {
        key: f"{value:g}" if isinstance(value, float) else str(value)
        for key, value in row.items()
        if key not in _NO_TAGS and _there(value)
    }
    return tags | _all_tags(row.get("tags")) | _all_tags(row.get("other_tags"))


def _all_tags(value: Any) -> dict[str, str]:
    """A column of all tags: JSON, a mapping, pairs of key and value, or GDAL's "a"=>"b" text."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        value = json.loads(value)
    elif isinstance(value, str):
        value = [(_unescaped(key), _unescaped(told)) for key, told in _HSTORE.findall(value)]
    if isinstance(value, Mapping):
        value = list(value.items())
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, list):
        return {}
    return {str(key): str(told) for key, told in value if told is not None}


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def _osm_id(row: Mapping[str, Any]) -> str | None:
    """ "way/12" from the forms of QuickOSM (w12), overpass turbo (way/12) and GDAL (12)."""
    kinds = {"w": "way", "r": "relation", "n": "node"}
    for column in _ID_COLUMNS:
        value = row.get(column)
        if not _there(value):
            continue
        text = f"{value:.0f}" if isinstance(value, float) else str(value)
        if re.fullmatch(r"(?:way|relation|node)/-?\d+", text):
            return text
        if match := re.fullmatch(r"([wrn])(\d+)", text):
            return f"{kinds[match[1]]}/{match[2]}"
        if column.startswith("osm") and re.fullmatch(r"-?\d+", text):
            # GDAL's multipolygons have the id of a way in a column of its own.
            kind = "relation" if column == "osm_id" and "osm_way_id" in row else "way"
            return f"{row.get('osm_type') or kind}/{text}"
    return None


def _there(value: Any) -> bool:
    """Whether a cell of a table holds something."""
    if value is None or value is pandas.NA or (isinstance(value, str) and not value):
        return False
    return not (isinstance(value, float) and math.isnan(value))
