"""OpenStreetMap's roads and buildings: read from an extract of any form, kept as GeoParquet."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import geopandas
import pyarrow.parquet

from .elements import OSM_SUFFIXES, Bounds, UnsortedError, elements, header, sorted_copy
from .errors import TilingError
from .files import written_beside
from .geoparquet import write_geoparquet
from .sieve import Feature, Sieve, overlap, union
from .vectors import VECTOR_SUFFIXES, extent, features

LICENCE = "ODbL-1.0"
ATTRIBUTION = "© OpenStreetMap contributors"

COLUMNS = ("osm_id", "kind", "tags", "label", "geometry")
"""Of both frames of an extract."""

KEYS = ("highway", "building", "building:part")
"""An element with none of these tags is passed over."""

_DEGREES = "EPSG:4326"
_META = "orthotrace"

_ROWS = 4096
"""Features in a row group: some of a cell's, so that a cell reads little that is not its own."""


@dataclass(frozen=True)
class Extract:
    """Roads and buildings of a place, as OSM had them on a day. Both frames in EPSG:4326."""

    roads: geopandas.GeoDataFrame
    """`osm_id` ("way/12"), `kind` (the value of highway), `tags` (JSON with sorted keys), `label`
    ("yes", or "unknown": to be masked), `geometry`: lines, in pieces where the file lacks nodes,
    and areas where the tags say area=yes."""

    buildings: geopandas.GeoDataFrame
    """As roads; `kind` is the value of building, `geometry` valid polygons."""

    snapshot: str | None = None
    """Date of the data (ISO): as the file tells it, else of the newest edit; None if it has none.
    Never the date of the file, which says when it was copied."""

    dropped: Mapping[str, int] = field(default_factory=dict)
    """How many were left out, by class and reason: {"road: path": 12}."""

    def __post_init__(self) -> None:
        for frame in (self.roads, self.buildings):
            if tuple(frame.columns) != COLUMNS or frame.crs != _DEGREES:
                raise ValueError(
                    f"an extract has {COLUMNS} in {_DEGREES}, got {[*frame.columns]} in {frame.crs}"
                )


def read_osm(path: Path, bounds_wgs84: Bounds | None = None) -> Extract:
    """The roads and buildings of an OSM file that touch the bounds (left, bottom, right, top).

    The form is told by the name: OSM_SUFFIXES by pyosmium, VECTOR_SUFFIXES by GDAL. An extract
    without roads or buildings is fine; one with neither, or of another place (no overlap with the
    bounds), is a TilingError.
    """
    if not path.name.endswith(OSM_SUFFIXES + VECTOR_SUFFIXES):
        raise TilingError(
            f"{path} is no form of OSM data known here; "
            f"wanted one of {', '.join(OSM_SUFFIXES + VECTOR_SUFFIXES)}"
        )
    if path.name.endswith(OSM_SUFFIXES):
        snapshot, box = header(path)
        sieve = _sieve_osm(path, bounds_wgs84)
    else:
        snapshot, box = None, extent(path)
        sieve = Sieve.of(features(path, bounds_wgs84), bounds_wgs84)
    _check_place(path, sieve, box)
    if snapshot is None and sieve.newest is not None:
        snapshot = sieve.newest.strftime("%Y-%m-%dT%H:%M:%SZ")
    return extract_of(sieve, snapshot)


def extract_of(sieve: Sieve, snapshot: str | None) -> Extract:
    """What a sieve kept, as frames."""
    dropped = dict(sorted(sieve.dropped.items()))
    return Extract(_frame(sieve.roads), _frame(sieve.buildings), snapshot, dropped)


def save_extract(extract: Extract, folder: Path) -> None:
    """Write `roads.parquet` and `buildings.parquet` (GeoParquet 1.1, bbox covering, ODbL named).

    Their rows are put in the order of Hilbert's curve.
    """
    told = {
        "snapshot": extract.snapshot,
        "dropped": dict(extract.dropped),
        "licence": LICENCE,
        "attribution": ATTRIBUTION,
    }
    metadata = {_META: json.dumps(told, sort_keys=True)}
    for name, frame in (("roads", extract.roads), ("buildings", extract.buildings)):
        with written_beside(folder / f"{name}.parquet", pyarrow.parquet.read_table) as part:
            write_geoparquet(part, frame, metadata, _ROWS)


def load_extract(folder: Path, bounds_wgs84: Bounds | None = None) -> Extract:
    """Undo `save_extract`, for what touches the bounds; TilingError where there are no such files.

    With bounds (left, bottom, right, top) only the groups of rows that touch them are decoded.
    """
    roads, _ = _load(folder / "roads.parquet", bounds_wgs84)
    buildings, told = _load(folder / "buildings.parquet", bounds_wgs84)
    return Extract(roads, buildings, told["snapshot"], told["dropped"])


# -- inside ------------------------------------------------------------------------------------


def _load(path: Path, bounds: Bounds | None) -> tuple[geopandas.GeoDataFrame, dict[str, Any]]:
    try:
        told = json.loads(pyarrow.parquet.read_schema(path).metadata[_META.encode()])
        frame = geopandas.read_parquet(path, bbox=bounds)
        return frame[[*COLUMNS]].reset_index(drop=True), told
    except (OSError, KeyError, TypeError, ValueError) as problem:
        raise TilingError(
            f"{path} is no extract of this project ({problem}); wanted one that "
            "`orthotrace label` wrote: remove it and run that again"
        ) from problem


def _sieve_osm(path: Path, bounds: Bounds | None) -> Sieve:
    """The file sieved; if it holds ways before their nodes, by way of a sorted copy."""
    try:
        sieve = Sieve.of(elements(path, KEYS), bounds)
        if sieve.extent is not None or not sieve.shapeless:
            return sieve
    except UnsortedError:
        pass  # said by what follows: a copy in order, or why there is none
    with sorted_copy(path) as copy:
        sieve = Sieve.of(elements(copy, KEYS), bounds)
    if sieve.extent is None:
        raise TilingError(
            f"{path} holds {sieve.shapeless} roads and buildings but the places of none; "
            "wanted their nodes in the same file, with positive ids"
        )
    return sieve


def _check_place(path: Path, sieve: Sieve, box: Bounds | None) -> None:
    """TilingError if the file holds nothing, or only another place than the sieve's bounds."""
    whole = union(box, sieve.extent) if box and sieve.extent else box or sieve.extent
    if whole is None or (sieve.extent is None and sieve.bounds is None):
        raise TilingError(f"{path} holds no road and no building; wanted an OSM extract with some")
    if sieve.bounds is not None and not overlap(whole, sieve.bounds):
        raise TilingError(
            f"{path} holds another place: it lies in {_degrees(whole)}, "
            f"wanted an extract of {_degrees(sieve.bounds)}"
        )


def _frame(rows: list[Feature]) -> geopandas.GeoDataFrame:
    texts = {
        "osm_id": [row.osm_id for row in rows],
        "kind": [row.kind for row in rows],
        "tags": [json.dumps(row.tags, sort_keys=True, ensure_ascii=False) for row in rows],
        "label": [row.label for row in rows],
    }
    shapes = [row.geometry for row in rows]
    frame = geopandas.GeoDataFrame(texts, geometry=shapes, crs=_DEGREES)
    return frame.astype(dict.fromkeys(texts, "str"))


def _degrees(bounds: Bounds) -> str:
    left, bottom, right, top = bounds
    return f"longitude {left:.4f} to {right:.4f}, latitude {bottom:.4f} to {top:.4f}"
