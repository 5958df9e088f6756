"""The map as files that any GIS opens: GeoPackage, GeoParquet, FlatGeobuf, GeoJSON.

What was found in imagery and what was joined with OSM are different layers: the second is a
derivative database under the ODbL. Every file says so in its own metadata, and whose imagery it
is. The same features give the same bytes, so dates inside a file are pinned.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import geopandas
import numpy as np
import pyogrio
import shapely
from geopandas import GeoDataFrame

from ..tiling.files import written_beside
from ..tiling.geoparquet import write_geoparquet
from ..tiling.grid import same_crs
from .errors import MappingError
from .scoring.compare import Comparison

ODBL = "ODbL-1.0"

OSM = "© OpenStreetMap contributors, https://www.openstreetmap.org/copyright"

PINNED = "2000-01-01T00:00:00.000Z"
"""The time of change inside a GeoPackage: always this one, so that it says nothing."""

_DEGREE = 1e-7
"""Step of the coordinates of a GeoJSON file: a centimetre."""

_ROWS = 100_000
"""Features in a row group of a GeoParquet file, the unit that a reader skips by its box."""


@dataclass(frozen=True, slots=True, eq=False)
class MapLayer:
    """One layer of the map."""

    name: str

    kind: str
    """What an empty layer holds: "LineString" or "Polygon"."""

    of_osm: bool
    """Whether it was joined with OSM, and so stands under the ODbL."""

    features: GeoDataFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """What each file says about where it comes from."""

    imagery: str
    """Whose imagery, and its licence: "USDA NAIP 2022, public domain"."""

    licence: str = ODBL
    """Of what was found in imagery. What was joined with OSM is always under the ODbL."""

    osm: str = OSM
    """Whom OSM's licence wants named: the model learnt from it, and it was joined with."""

    def of(self, layer: MapLayer) -> dict[str, str]:
        """The metadata of a layer."""
        joined = "compared with OpenStreetMap" if layer.of_osm else "a model's finds alone"
        licence = ODBL if layer.of_osm else self.licence
        return {
            "description": f"{layer.name}: {joined}. Licence: {licence}. "
            f"Imagery: {self.imagery}. OpenStreetMap: {self.osm}, {ODBL}.",
            "licence": licence,
            "attribution": f"{self.imagery}; {self.osm} ({ODBL})",
        }


def layers_of(
    features: Mapping[str, GeoDataFrame], comparison: Comparison | None = None
) -> list[MapLayer]:
    """The layers of a map: what was found and, given a comparison, what is joined with OSM."""
    layers = [
        MapLayer("roads", "LineString", False, features["roads"]),
        MapLayer("buildings", "Polygon", False, features["buildings"]),
    ]
    if comparison is not None:
        layers += [
            MapLayer("roads_vs_osm", "LineString", True, comparison.roads),
            MapLayer("buildings_vs_osm", "Polygon", True, comparison.buildings),
            MapLayer("osm_missing_roads", "LineString", True, _missing(comparison.osm_roads)),
            MapLayer("osm_missing_buildings", "Polygon", True, _missing(comparison.osm_buildings)),
        ]
    return layers


def _missing(osm: GeoDataFrame) -> GeoDataFrame:
    """What of OSM the map lacks, without the columns that say so."""
    return osm[osm["map"] == "missing"].drop(columns=["map", "map_id"])


def export(
    layers: Sequence[MapLayer],
    folder: Path,
    name: str,
    *,
    notice: Notice,
    formats: Sequence[str] = (),
    crs: str | None = None,
) -> list[Path]:
    """Write the layers: NAME.gpkg with all of them, LAYER.parquet (.fgb, .geojson) with one each.

    In all of FORMATS if none is told, and in `crs`, by default the first layer's (GeoJSON is
    always in WGS84). Each file is read back before it stands in its place. MappingError for an
    unknown format or an invalid geometry.
    """
    check_formats(formats)
    formats = formats or FORMATS
    target = crs or layers[0].features.crs
    paths: list[Path] = []
    if "gpkg" in formats:
        paths.append(folder / f"{name}.gpkg")
        ready = [_prepared(layer, target) for layer in layers]
        with written_beside(paths[-1], partial(_check, layers=ready)) as part:
            _write_gpkg(part, ready, notice)
    for suffix in (suffix for suffix in _WRITERS if suffix in formats):
        for layer in layers:
            is_json = suffix == "geojson"
            one = _prepared(layer, "EPSG:4326" if is_json else target, rounded=is_json)
            paths.append(folder / f"{layer.name}.{suffix}")
            with written_beside(paths[-1], partial(_check, layers=[one])) as part:
                _WRITERS[suffix](part, one, notice.of(one))
    return paths


def check_formats(formats: Sequence[str]) -> None:
    """MappingError for a format that there is not."""
    if odd := set(formats) - set(FORMATS):
        raise MappingError(
            f"there is no export to {', '.join(sorted(odd))}; wanted some of {', '.join(FORMATS)}"
        )


# -- before and after ----------------------------------------------------------------------


def _prepared(layer: MapLayer, crs: str, rounded: bool = False) -> MapLayer:
    """The layer in `crs`, with one kind of geometry and text where a column may be empty.

    `rounded` to the steps of a GeoJSON file.
    """
    if layer.features.crs is None:
        raise MappingError(f"the layer {layer.name} has no CRS; wanted one")
    frame = layer.features.to_crs(crs).reset_index(drop=True)
    text = [name for name, kind in frame.dtypes.items() if kind.kind == "O" and kind != "geometry"]
    frame = frame.astype(dict.fromkeys(text, "string"))
    invalid = np.flatnonzero(~shapely.is_valid(frame.geometry.to_numpy()))
    if len(invalid):
        raise MappingError(
            f"row {invalid[0]} of the layer {layer.name} has an invalid geometry or none; "
            "wanted valid ones only"
        )
    if rounded:
        frame = frame.set_geometry(_rounded(frame))
    if frame.geom_type.str.startswith("Multi").any():
        frame = frame.set_geometry(_multiplied(frame))
    return MapLayer(layer.name, layer.kind, layer.of_osm, frame)


def _rounded(frame: GeoDataFrame) -> geopandas.GeoSeries:
    """Coordinates on the steps of GeoJSON; areas stay valid areas, lines stay in one part.

    GDAL would round too, and leave lines beside the areas of a shape that became too thin.
    """
    shapes = frame.geometry.to_numpy()
    rounded = shapely.set_precision(shapes, _DEGREE, mode="pointwise")
    areas = shapely.get_dimensions(shapes) == 2
    rounded[areas] = shapely.set_precision(shapes[areas], _DEGREE, mode="valid_output")
    return geopandas.GeoSeries(rounded, index=frame.index, crs=frame.crs)


def _multiplied(frame: GeoDataFrame) -> geopandas.GeoSeries:
    """Single geometries as multiple ones of one part, so that a layer is of one kind."""
    shapes = frame.geometry.to_numpy().copy()
    lines = np.flatnonzero(frame.geom_type == "LineString")
    shapes[lines] = shapely.multilinestrings(shapes[lines][:, None])
    areas = np.flatnonzero(frame.geom_type == "Polygon")
    shapes[areas] = shapely.multipolygons(shapes[areas][:, None])
    return geopandas.GeoSeries(shapes, index=frame.index, crs=frame.crs)


def _kind(layer: MapLayer) -> str:
    """The kind of geometry that the file declares; "Unknown" where lines and areas are mixed."""
    kinds = set(layer.features.geom_type)
    return layer.kind if not kinds else kinds.pop() if len(kinds) == 1 else "Unknown"


def _check(path: Path, layers: Sequence[MapLayer]) -> None:
    """Read a file back: as many features, the same CRS, all valid."""
    for layer in layers:
        if path.suffix == ".parquet":
            found = geopandas.read_parquet(path)
        else:
            found = pyogrio.read_dataframe(path, layer=layer.name)
        same = len(found) == len(layer.features) and same_crs(
            found.crs.to_wkt(), layer.features.crs.to_wkt()
        )
        if not same or not shapely.is_valid(found.geometry.to_numpy()).all():
            raise MappingError(
                f"{path} does not read back as it was written ({len(found)} features of "
                f"{layer.name}, wanted {len(layer.features)} valid ones); is the disk whole?"
            )


# -- formats -------------------------------------------------------------------------------


def _write_gpkg(path: Path, layers: Sequence[MapLayer], notice: Notice) -> None:
    with _pinned_dates():
        for layer in layers:
            told = notice.of(layer)
            pyogrio.write_dataframe(
                layer.features,
                path,
                layer=layer.name,
                driver="GPKG",
                geometry_type=_kind(layer),
                layer_options={"DESCRIPTION": told["description"]},
                layer_metadata={key: told[key] for key in ("licence", "attribution")},
            )


def _write_fgb(path: Path, layer: MapLayer, told: Mapping[str, str]) -> None:
    pyogrio.write_dataframe(
        layer.features,
        path,
        layer=layer.name,
        driver="FlatGeobuf",
        geometry_type=_kind(layer),
        layer_options={"TITLE": layer.name, "DESCRIPTION": told["description"]},
        layer_metadata={key: told[key] for key in ("licence", "attribution")},
    )


def _write_geojson(path: Path, layer: MapLayer, told: Mapping[str, str]) -> None:
    pyogrio.write_dataframe(
        layer.features,
        path,
        layer=layer.name,
        driver="GeoJSON",
        geometry_type=_kind(layer),
        layer_options={
            "RFC7946": "YES",
            "COORDINATE_PRECISION": "7",
            "AUTODETECT_JSON_STRINGS": "NO",  # tags stay text, as in the other formats
            "FOREIGN_MEMBERS_COLLECTION": json.dumps(told, ensure_ascii=False),
        },
    )


def _write_parquet(path: Path, layer: MapLayer, told: Mapping[str, str]) -> None:
    write_geoparquet(path, layer.features, told, _ROWS)


_WRITERS: Mapping[str, Callable[[Path, MapLayer, Mapping[str, str]], None]] = {
    "parquet": _write_parquet,
    "fgb": _write_fgb,
    "geojson": _write_geojson,
}
"""One layer to one file, by suffix."""

FORMATS = ("gpkg", *_WRITERS)
"""All that a map can be exported to."""


@contextmanager
def _pinned_dates() -> Iterator[None]:
    """GDAL writes PINNED wherever it would write the present time."""
    before = pyogrio.get_gdal_config_option("OGR_CURRENT_DATE")
    pyogrio.set_gdal_config_options({"OGR_CURRENT_DATE": PINNED})
    try:
        yield
    finally:
        pyogrio.set_gdal_config_options({"OGR_CURRENT_DATE": before})
