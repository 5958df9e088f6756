"""Areas that a region names, by polygon file, rectangle or place, brought into the grid's CRS.

An area is cut in its own CRS to what is near the imagery first: a rectangle of the world has no
shape in UTM.
"""

from pathlib import Path

import geopandas as gpd
import numpy as np
import pyogrio
import shapely
from shapely.geometry.base import BaseGeometry

from ..tiling.elements import valid_polygon
from ..tiling.files import written_beside
from ..tiling.grid import maps_earth, transformer
from .errors import MappingError
from .parts import Boundary, Polygons
from .region import Region

Bounds = tuple[float, float, float, float]
"""Left, bottom, right, top."""


def boundary_of(region: Region, crs: str, imagery: BaseGeometry, folder: Path) -> BaseGeometry:
    """What is mapped, in `crs`; all of the imagery, whose outline is given in `crs`, if not told.

    MappingError for a file or place of no use, and for a boundary without imagery. `folder` keeps
    the outline of a place.
    """
    told = _told(region.boundary, folder)
    if told is None:
        return imagery
    area = _moved(told, crs, imagery.bounds)
    if area.intersection(imagery).area == 0:  # touching at an edge alone shares no pixel
        raise MappingError(
            f"region {region.name}: no imagery inside the boundary; the imagery spans "
            f"{_extent(imagery.bounds, crs)} and the boundary "
            f"{_extent(told.total_bounds, told.crs.to_wkt())} "
            "(west, south, east, north in degrees)"
        )
    return area


def read_polygons(part: Polygons, crs: str, near: Bounds) -> BaseGeometry:
    """The union of a file's polygons in `crs`, as far as they are near the bounds `near` of `crs`.

    MappingError if the file has no polygon, no CRS of Earth, or several layers and none is told.
    """
    return _moved(_polygons(part), crs, near)


# -- in their own CRS ----------------------------------------------------------------------


def _told(part: Boundary, folder: Path) -> gpd.GeoSeries | None:
    """The areas of a boundary."""
    if part.file is not None:
        return _polygons(Polygons(file=part.file, layer=part.layer))
    if part.bbox is not None:
        return gpd.GeoSeries([shapely.box(*part.bbox)], crs=part.crs)
    if part.place is not None:
        return _place(part.place, folder / "place.parquet")
    return None


def _polygons(part: Polygons) -> gpd.GeoSeries:
    """The polygons of a file, repaired."""
    frame = _frame(part)
    areas = frame[frame.geom_type.isin(["Polygon", "MultiPolygon"])].geometry
    if not np.isfinite(shapely.get_coordinates(areas)).all():
        raise MappingError(f"{part.file} holds a coordinate that is no finite number; wanted none")
    areas = _repaired(areas)
    if areas.empty or areas.crs is None or not maps_earth(areas.crs):
        named = "without a CRS" if areas.crs is None else f"in the CRS {areas.crs.name}"
        raise MappingError(
            f"{part.file} holds {len(areas)} polygons {named}; "
            "wanted at least one polygon and a CRS of Earth"
        )
    return areas


def _frame(part: Polygons) -> gpd.GeoDataFrame:
    """The told layer of a file, or its only one."""
    try:
        if part.file.suffix == ".parquet" and part.layer is None:
            return gpd.read_parquet(part.file)
        layers = [name for name, kind in pyogrio.list_layers(part.file) if kind is not None]
        if part.layer is None and len(layers) != 1:
            raise MappingError(
                f"{part.file} has {len(layers)} layers of shapes ({', '.join(layers) or 'none'}); "
                "wanted one, or `layer` to say which"
            )
        frame = gpd.read_file(part.file, layer=part.layer or layers[0])
    except (OSError, ValueError, RuntimeError) as problem:
        raise MappingError(
            f"{part.file} cannot be read ({problem}); wanted a file of polygons"
            + (f" with a layer {part.layer!r}" if part.layer else "")
        ) from problem
    if not isinstance(frame, gpd.GeoDataFrame):
        raise MappingError(f"{part.file} has no shapes in {part.layer}; wanted polygons")
    return frame


def _repaired(areas: gpd.GeoSeries) -> gpd.GeoSeries:
    """The areas as valid polygons: rings drawn by hand often cross themselves."""
    return gpd.GeoSeries([valid_polygon(area) for area in areas], crs=areas.crs).dropna()


def _place(name: str, kept: Path) -> gpd.GeoSeries:
    """The outline of a place; asked for once and then kept, so that it is the same next time."""
    if not kept.exists() or gpd.read_parquet(kept)["place"].iloc[0] != name:
        with written_beside(kept) as part:
            _ask(name).to_parquet(part)
    return _repaired(gpd.read_parquet(kept).geometry)


def _ask(name: str) -> gpd.GeoDataFrame:
    import osmnx  # here, because it takes a second and only places need it

    try:
        return osmnx.geocode_to_gdf(name)[["geometry"]].assign(place=name)
    except (OSError, ValueError, TypeError) as problem:
        raise MappingError(
            f"the place {name!r} was not found ({problem}); wanted a name that Nominatim knows "
            "and a network, or a bbox or file instead"
        ) from problem


# -- in the grid's CRS ---------------------------------------------------------------------


def _moved(areas: gpd.GeoSeries, crs: str, near: Bounds) -> BaseGeometry:
    """The union of valid areas in another CRS; empty if none is near the bounds `near` of it."""
    window = _around(near, crs, areas.crs.to_wkt())
    cut = areas.intersection(window)
    cut = cut[~cut.is_empty]
    if cut.empty:
        return shapely.Polygon()
    left, bottom, right, top = window.bounds
    # Long sides bend in another CRS, so they get points to bend at.
    bent = cut.segmentize(max(right - left, top - bottom) / 64)
    joined: BaseGeometry = _repaired(bent.to_crs(crs)).union_all()
    return joined


def _around(bounds: Bounds, crs: str, other: str) -> BaseGeometry:
    """The bounds in another CRS, and as much again on each side."""
    left, bottom, right, top = transformer(crs, other).transform_bounds(*bounds)
    # Over the antimeridian, areas are told beyond 180 or below -180.
    turns = (0,) if left <= right else (0, -360)
    right += 360 if left > right else 0
    wide, high = right - left, top - bottom
    return shapely.union_all(
        [
            shapely.box(left - wide + turn, bottom - high, right + wide + turn, top + high)
            for turn in turns
        ]
    )


def _extent(bounds: Bounds, crs: str) -> str:
    degrees = transformer(crs, "EPSG:4326").transform_bounds(*bounds)
    return ", ".join(f"{number:.4f}" for number in degrees)
