"""What a map page shows: rasters placed for web Mercator, features in longitude and latitude."""

import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import geopandas
import numpy as np
import shapely
from affine import Affine
from numpy.typing import NDArray
from PIL import Image
from rasterio.enums import Resampling
from rasterio.warp import reproject, transform_bounds

from ...tiling.grid import Window, transformer
from ...tiling.layer import Layer
from ..errors import MappingError
from ..scoring.compare import Comparison
from .palette import STYLES
from .thumbnail import Kind, Thumbnail, thumbnail

VectorGroup: TypeAlias = Literal["map", "comparison", "osm", "truth"]
Value: TypeAlias = str | int | float | bool

_MERCATOR = "EPSG:3857"
_WGS84 = "EPSG:4326"
_DECIMALS = 6
"""Of a degree: a tenth of a metre, less than a pixel of the finest imagery."""

_WEBP_QUALITY = 82


@dataclass(frozen=True, slots=True)
class RasterView:
    """A picture of a layer, to be laid over a web map."""

    name: str
    """What its switch is called: "Labels, generation 0"."""

    kind: Kind

    image: bytes
    """A WebP (imagery) or PNG (the rest) whose rows and columns run along web Mercator's axes."""

    media_type: str

    corners: tuple[tuple[float, float], ...]
    """Longitude and latitude of the top left, top right, bottom right and bottom left corner."""

    classes: tuple[str, ...] = ()
    """For the legend of labels and scores."""

    opacity: float = 1.0

    shown: bool = False
    """Whether it is switched on when the page opens."""

    def __post_init__(self) -> None:
        if len(self.corners) != 4:
            raise MappingError(f"a raster has four corners, got {self.corners} for {self.name}")
        if not 0 <= self.opacity <= 1:
            raise MappingError(f"an opacity is in [0, 1], got {self.opacity} for {self.name}")


@dataclass(frozen=True, slots=True, eq=False)
class VectorView:
    """Features of one meaning."""

    name: str
    """What their switch is called: "New buildings"."""

    group: VectorGroup

    features: geopandas.GeoDataFrame
    """Lines or areas in any CRS; all further columns are shown when one is clicked."""

    style: str
    """A key of `palette.STYLES`."""

    shown: bool = False
    """Whether they are switched on when the page opens."""

    def __post_init__(self) -> None:
        if self.style not in STYLES:
            raise MappingError(
                f"{self.name} has the style {self.style!r}; wanted one of {', '.join(STYLES)}"
            )
        if self.features.crs is None:
            raise MappingError(f"{self.name} has no CRS, so it has no place on a map")


def raster_view(
    layer: Layer,
    window: Window,
    name: str,
    kind: Kind,
    *,
    max_side: int = 2048,
    opacity: float = 1.0,
    shown: bool = False,
) -> RasterView:
    """The window of a layer as a view, warped so that it stands right however large it is."""
    small = thumbnail(layer, window, kind, max_side)
    placed, bounds = _to_mercator(small, smooth=kind != "labels")
    image, media_type = _encoded(placed, lossy=kind == "imagery")
    classes = () if kind == "imagery" else layer.bands
    return RasterView(name, kind, image, media_type, _corners(bounds), classes, opacity, shown)


def comparison_views(comparison: Comparison, *, shown: bool = False) -> list[VectorView]:
    """What is new, missing and the same, each for roads and buildings, as far as there is any.

    What was not looked at and what OpenStreetMap itself leaves open is none of the three.
    """
    answers = [
        ("new", "roads", comparison.roads, "osm"),
        ("new", "buildings", comparison.buildings, "osm"),
        ("missing", "roads", comparison.osm_roads, "map"),
        ("missing", "buildings", comparison.osm_buildings, "map"),
        ("same", "roads", comparison.roads, "osm"),
        ("same", "buildings", comparison.buildings, "osm"),
    ]
    return [
        VectorView(f"{answer.capitalize()} {name}", "comparison", chosen, answer, shown)
        for answer, name, features, column in answers
        if len(chosen := features[features[column] == answer])
    ]


def kept(views: Sequence[VectorView], limit: int) -> list[geopandas.GeoDataFrame]:
    """The features of each view, at most about `limit` in all.

    Each view keeps its share of the limit: those of the highest score where there is one, then the
    longest (areas by their outline); their order stays.
    """
    total = sum(len(view.features) for view in views)
    return [
        view.features
        if total <= limit
        else _foremost(view.features, math.ceil(limit * len(view.features) / total))
        for view in views
    ]


def visible(features: geopandas.GeoDataFrame) -> geopandas.GeoDataFrame:
    """The features that have a geometry, and one that is not empty."""
    return features[~(features.geometry.is_empty | features.geometry.isna())]


def geojson(features: geopandas.GeoDataFrame) -> dict[str, Any]:
    """A GeoJSON feature collection (RFC 7946: longitude, latitude); `id` is the feature's number.

    Empty geometries are left out, and so is a property that has no value.
    """
    drawn = visible(features)
    flat = shapely.force_2d(drawn.geometry.to_crs(_WGS84).to_numpy())
    rounded = shapely.transform(flat, lambda xy: np.round(xy, _DECIMALS))
    names = [str(name) for name in drawn.columns if name != drawn.geometry.name]
    columns = [drawn[name].tolist() for name in names]
    rows = zip(*columns, strict=True) if columns else ((),) * len(drawn)
    return {
        "type": "FeatureCollection",
        "features": [
            {
                "type": "Feature",
                "id": number,
                "geometry": json.loads(shape),
                "properties": _properties(dict(zip(names, row, strict=True))),
            }
            for number, (shape, row) in enumerate(
                zip(shapely.to_geojson(rounded), rows, strict=True)
            )
        ],
    }


# -- rasters -----------------------------------------------------------------------------------


def _to_mercator(
    small: Thumbnail, *, smooth: bool
) -> tuple[NDArray[np.uint8], tuple[float, float, float, float]]:
    """The thumbnail in web Mercator, with as many pixels on its long side, and its bounds there."""
    bounds = transform_bounds(small.crs, _MERCATOR, *small.bounds)
    wide, tall = bounds[2] - bounds[0], bounds[3] - bounds[1]
    pixel = max(wide, tall) / max(small.rgba_HWC.shape)
    cols, rows = max(1, round(wide / pixel)), max(1, round(tall / pixel))
    placed_CHW = np.zeros((4, rows, cols), np.uint8)
    reproject(
        np.ascontiguousarray(np.moveaxis(small.rgba_HWC, 2, 0)),
        placed_CHW,
        src_transform=small.transform,
        src_crs=small.crs,
        dst_transform=Affine(wide / cols, 0.0, bounds[0], 0.0, -tall / rows, bounds[3]),
        dst_crs=_MERCATOR,
        src_alpha=4,
        dst_alpha=4,
        resampling=Resampling.bilinear if smooth else Resampling.nearest,
    )
    return np.ascontiguousarray(np.moveaxis(placed_CHW, 0, 2)), bounds


def _corners(bounds: tuple[float, float, float, float]) -> tuple[tuple[float, float], ...]:
    left, bottom, right, top = bounds
    to_degrees = transformer(_MERCATOR, _WGS84)
    corners = (left, top), (right, top), (right, bottom), (left, bottom)
    degrees = [to_degrees.transform(*corner) for corner in corners]
    return tuple((round(lon, 9), round(lat, 9)) for lon, lat in degrees)


def _encoded(rgba_HWC: NDArray[np.uint8], *, lossy: bool) -> tuple[bytes, str]:
    stream = io.BytesIO()
    image = Image.fromarray(rgba_HWC)
    if lossy:
        image.save(stream, "WEBP", quality=_WEBP_QUALITY, method=4)
        return stream.getvalue(), "image/webp"
    image.save(stream, "PNG", optimize=True)
    return stream.getvalue(), "image/png"


# -- features ----------------------------------------------------------------------------------


def _foremost(features: geopandas.GeoDataFrame, count: int) -> geopandas.GeoDataFrame:
    order = np.argsort(-shapely.length(features.geometry.to_numpy()), kind="stable")
    if "score" in features:
        score = features["score"].fillna(-1).to_numpy()[order]
        order = order[np.argsort(-score, kind="stable")]
    return features.iloc[np.sort(order[:count])]


def _properties(row: Mapping[str, Any]) -> dict[str, Value]:
    told = {name: _plain(value) for name, value in row.items()}
    return {name: value for name, value in told.items() if value is not None}


def _plain(value: Any) -> Value | None:
    """The value as JSON has it; None for none, and for numbers that JSON cannot hold."""
    if isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return round(value, 3) if math.isfinite(value) else None
    if value is None or str(value) in ("NaT", "<NA>"):
        return None
    return str(value)
