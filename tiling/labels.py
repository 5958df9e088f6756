"""Labels: OSM's features burnt into a window of the grid, 0 no, 1 yes, 255 unknown.

A pixel belongs to a shape if its centre does. Every metre is a metre on the ground, whatever the
CRS. What a pixel gets does not depend on the window it is burnt with.
"""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import geopandas
import numpy as np
import rasterio.features
import shapely
from numpy.typing import NDArray
from pyproj import CRS, Geod
from shapely import Polygon, STRtree
from shapely.geometry.base import BaseGeometry

from .errors import TilingError
from .grid import Grid, Window, short_crs, transformer
from .osm import Extract
from .tags import check_widths, road_width_m
from .values import NO, UNKNOWN, YES

CLASSES = ("road", "building")

Array = NDArray[Any]

_SQUARE = 512
"""Side in pixels of the squares of the grid's lattice that are burnt one by one.

GDAL rounds coordinates relative to the raster's corner, so a centre that lies on an edge could
fall either way in two windows; in squares that stand still it cannot.
"""

_THIN = 4
"""A guard takes at most this part of a feature's breadth on each side: the rest stays certain."""

_ARC = 4
"""Straight pieces of a quarter of a circle: 2 % of the radius off the arc, 7 cm on a 7 m road."""

_GEOD = Geod(ellps="WGS84")


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelRules:
    """How a region's features are drawn."""

    classes: tuple[str, ...] = CLASSES
    """One band each, in this order."""

    widths: Mapping[str, float] = field(default_factory=dict)
    """Width of roads in metres by value of `highway`, or by "default" for all others."""

    use_tags: bool = True
    """Whether a road's own `width` or `lanes` goes before `widths`."""

    guard_m: float | Mapping[str, float] = 2.0
    """Breadth in metres, on each side of a drawn edge, of what is unknown; by class, or for all."""

    def __post_init__(self) -> None:
        if not self.classes or not set(self.classes) <= set(CLASSES):
            raise TilingError(f"labels are of {' or '.join(CLASSES)}, got {self.classes}")
        if isinstance(self.guard_m, Mapping) and not set(self.guard_m) <= set(CLASSES):
            raise TilingError(f"guards are of {' or '.join(CLASSES)}, got {set(self.guard_m)}")
        if min(map(self.guard, self.classes)) < 0:
            raise TilingError(f"a guard is 0 m or more, got {self.guard_m}")
        check_widths(self.widths)

    def guard(self, name: str) -> float:
        """The guard of a class in metres; a class that is not told of has 2."""
        return self.guard_m.get(name, 2.0) if isinstance(self.guard_m, Mapping) else self.guard_m


def on_grid(extract: Extract, rules: LabelRules, grid: Grid) -> dict[str, geopandas.GeoDataFrame]:
    """By class, the features in the grid's CRS, roads with the `width_m` of these rules."""
    frames = {"road": with_widths(extract.roads, rules), "building": extract.buildings}
    return {name: frames[name].to_crs(grid.crs) for name in rules.classes}


def with_widths(roads: geopandas.GeoDataFrame, rules: LabelRules) -> geopandas.GeoDataFrame:
    """An extract's roads with their `width_m` on the ground; NaN for an area.

    Made from the tags each time, so a region may change its widths without reading OSM again.
    """
    widths_m = [
        math.nan if is_area else road_width_m(json.loads(tags), rules.widths, rules.use_tags)
        for tags, is_area in zip(
            roads["tags"], shapely.get_dimensions(roads.geometry) == 2, strict=True
        )
    ]
    return roads.assign(width_m=np.array(widths_m, np.float64))


def burn(
    rules: LabelRules,
    grid: Grid,
    window: Window,
    features: Mapping[str, geopandas.GeoDataFrame],
    mapped: Mapping[str, BaseGeometry | None],
    valid_HW: NDArray[np.bool_] | None = None,
) -> NDArray[np.uint8]:
    """Labels of a window, uint8 KHW, one band per class of the rules.

    `features` as of `on_grid`. `mapped` tells by class, in the grid's CRS, where OSM is taken as
    complete (None or no entry: everywhere); outside it, and where `valid_HW` (the imagery's
    validity in this window) is False, all is unknown. Features whose `label` is "unknown" are
    masked, but never over another's yes.
    """
    bands = [
        _burn_class(grid, window, features[name], rules.guard(name), mapped.get(name))
        for name in rules.classes
    ]
    labels_KHW = np.stack(bands)
    if valid_HW is not None:
        if valid_HW.shape != window.shape:
            raise ValueError(f"validity of {valid_HW.shape} for a window of {window.shape}")
        labels_KHW[:, ~valid_HW] = UNKNOWN
    return labels_KHW


def metres_per_unit(crs: str, x: Array, y: Array) -> tuple[Array, Array]:
    """Metres on the ground of one unit of the CRS, eastwards and northwards on the map, at places.

    Measured on the ellipsoid over a step of some ten metres.
    """
    to_degrees = transformer(crs, "EPSG:4326")
    step = 1e-4 if CRS(crs).is_geographic else 10.0
    lon, lat = to_degrees.transform(x, y)
    scales = []
    for dx, dy in ((step, 0.0), (0.0, step)):
        there = to_degrees.transform(x + dx, y + dy)
        scales.append(np.asarray(_GEOD.inv(lon, lat, *there)[2]) / step)
    if not np.isfinite(scales).all():
        raise TilingError(f"a place lies outside what {short_crs(crs)} can map")
    return scales[0], scales[1]


# -- inside ------------------------------------------------------------------------------------


def _burn_class(
    grid: Grid,
    window: Window,
    frame: geopandas.GeoDataFrame,
    guard_m: float,
    mapped: BaseGeometry | None,
) -> NDArray[np.uint8]:
    near = _near(grid, window, frame, guard_m)
    around, core = _shapes(grid.crs, near, guard_m)
    around_tree, core_tree = STRtree(around), STRtree(core)
    if mapped is not None:
        shapely.prepare(mapped)
    band_HW = np.full(window.shape, NO, np.uint8)
    for square in window.lattice(_SQUARE):
        if (part := square.overlap(window)) is None:
            continue
        square_HW = np.full(square.shape, NO, np.uint8)
        box = shapely.box(*grid.bounds(square))
        for shapes, tree, value in ((around, around_tree, UNKNOWN), (core, core_tree, YES)):
            touching = shapes[np.sort(tree.query(box))]
            _fill(square_HW, grid, square, touching, value)
        if mapped is not None and not mapped.contains(box):
            inside_HW = np.zeros(square.shape, np.uint8)
            _fill(inside_HW, grid, square, [box.intersection(mapped)], 1)
            square_HW[inside_HW == 0] = UNKNOWN
        band_HW[part.slices(window)] = square_HW[part.slices(square)]
    return band_HW


def _near(
    grid: Grid, window: Window, frame: geopandas.GeoDataFrame, guard_m: float
) -> geopandas.GeoDataFrame:
    """The features that may reach into the window, in the frame's order."""
    left, bottom, right, top = grid.bounds(window)
    corners = np.array([left, right, left, right]), np.array([bottom, bottom, top, top])
    broadest_m = frame["width_m"].max() if "width_m" in frame and len(frame) else 0.0
    reach_m = np.nan_to_num(broadest_m) / 2 + guard_m
    # Twice, as a feature's own scale is taken at its middle, which may lie far from the window.
    x, y = (2 * reach_m / scale.min() for scale in metres_per_unit(grid.crs, *corners))
    box = shapely.box(left - x, bottom - y, right + x, top + y)
    return frame.iloc[np.sort(frame.sindex.query(box))]


def _shapes(crs: str, frame: geopandas.GeoDataFrame, guard_m: float) -> tuple[Array, Array]:
    """Where a feature or its guard may be, of all, and where it surely is, of those to be drawn.

    Each is buffered in a frame of ground metres that is true at its middle.
    """
    if frame.empty:
        return np.empty(0, object), np.empty(0, object)
    geometries = frame.geometry.to_numpy().copy()
    left, bottom, right, top = shapely.bounds(geometries).T
    scale_N2 = np.stack(metres_per_unit(crs, (left + right) / 2, (bottom + top) / 2), axis=1)
    ground = _scaled(geometries, scale_N2)
    area = shapely.get_dimensions(ground) == 2
    with np.errstate(divide="ignore"):
        breadth_m = 2 * shapely.area(ground) / shapely.length(ground)
    if not area.all():
        breadth_m = np.where(area, breadth_m, frame["width_m"].to_numpy(np.float64))
    half_m = np.where(area, 0.0, breadth_m / 2)
    around = shapely.buffer(ground, half_m + guard_m, quad_segs=_ARC)
    core_m = half_m - np.minimum(guard_m, breadth_m / _THIN)
    core = shapely.buffer(ground, core_m, quad_segs=_ARC)
    sure = (frame["label"] == "yes").to_numpy() & ~shapely.is_empty(core)
    return _scaled(around, 1 / scale_N2), _scaled(core, 1 / scale_N2)[sure]


def _scaled(geometries: Array, factors_N2: Array) -> Array:
    """The geometries with x and y multiplied, each by its own two factors."""
    coordinates, owner = shapely.get_coordinates(geometries, return_index=True)
    scaled: Array = shapely.set_coordinates(geometries.copy(), coordinates * factors_N2[owner])
    return scaled


def _fill(into_HW: Array, grid: Grid, square: Window, shapes: Iterable[Any], value: int) -> None:
    """Give `value` to the pixels whose centres lie in the shapes."""
    polygons = [
        {
            "type": "Polygon",
            # rasterio asks a polygon for each of its points in turn; this is five times faster.
            "coordinates": [
                shapely.get_coordinates(ring).tolist()
                for ring in (polygon.exterior, *polygon.interiors)
            ],
        }
        for polygon in shapely.get_parts(shapely.get_parts(list(shapes)))
        if isinstance(polygon, Polygon) and not polygon.is_empty
    ]
    if polygons:
        rasterio.features.rasterize(
            polygons, out=into_HW, transform=grid.transform(square), default_value=value
        )
