"""Roads and buildings from a vector file of any form and CRS."""

from pathlib import Path

import geopandas
import pyogrio
from geopandas import GeoDataFrame
from pyogrio.errors import DataLayerError, DataSourceError

from ..errors import MappingError

NAMES = {
    "road": "roads",
    "roads": "roads",
    "building": "buildings",
    "buildings": "buildings",
    "area": "area",
}
"""What a layer may be called, and what it then holds."""

_KINDS = {
    "roads": ("LineString", "MultiLineString"),
    "buildings": ("Polygon", "MultiPolygon"),
}


def read_features(path: Path) -> dict[str, GeoDataFrame]:
    """The "roads", "buildings" and "area" of a GeoPackage, GeoParquet, FlatGeobuf or GeoJSON.

    Layers are known by their name; in a file with one layer of another name lines are roads and
    polygons buildings. What is not there has no entry. MappingError for a file that cannot be
    read or holds neither.
    """
    layers = _layers(path)
    found = {NAMES[name.lower()]: layer for name, layer in layers.items() if name.lower() in NAMES}
    if not found and len(layers) == 1:
        (layer,) = layers.values()
        found = {
            name: layer[layer.geom_type.isin(kinds)].reset_index(drop=True)
            for name, kinds in _KINDS.items()
        }
        found = {name: features for name, features in found.items() if len(features)}
    if not found:
        raise MappingError(
            f"{path} holds the layers {', '.join(layers) or '(none)'} without roads or buildings; "
            "wanted layers of these names, or one layer of lines or polygons"
        )
    for name, features in found.items():
        if features.crs is None:
            raise MappingError(f"the layer {name} of {path} has no CRS; wanted one")
    return found


def _layers(path: Path) -> dict[str, GeoDataFrame]:
    """The layers of a file that have a geometry, by name."""
    if not path.is_file():
        raise MappingError(f"{path} is not there; wanted a file of roads and buildings")
    try:
        if path.suffix == ".parquet":
            return {path.stem: geopandas.read_parquet(path)}
        return {
            str(name): pyogrio.read_dataframe(path, layer=name)
            for name, kind in pyogrio.list_layers(path)
            if kind is not None
        }
    # pyarrow's errors are ValueErrors.
    except (DataSourceError, DataLayerError, ValueError, OSError) as problem:
        raise MappingError(
            f"{path} cannot be read ({problem}); "
            "wanted a GeoPackage, GeoParquet, FlatGeobuf or GeoJSON"
        ) from problem
