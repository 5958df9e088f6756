"""Ground metres: features of any CRS in one local frame in which a metre is a metre."""

import math

from geopandas import GeoDataFrame
from pyproj import CRS, Transformer

from ...tiling.grid import short_crs
from ..errors import MappingError

Bounds = tuple[float, float, float, float]
"""West, south, east and north in degrees."""


def to_metric(*frames: GeoDataFrame) -> tuple[GeoDataFrame, ...]:
    """The frames in one local CRS, x east and y north, in metres on the ground.

    It is a transverse Mercator through the middle of where the frames overlap: its metres are
    true to 0.1 % within 280 km east and west of there, and to any distance north and south. The
    order of the frames does not matter. MappingError for a frame without a CRS.
    """
    known = [found for found in map(degrees, frames) if found is not None]
    if not known:
        return tuple(frame.to_crs("EPSG:3857") for frame in frames)  # empty: any metres will do
    west, south, east, north = common_bounds(known) or joint_bounds(known)
    crs = CRS.from_dict(
        {"proj": "tmerc", "lon_0": (west + east) / 2, "lat_0": (south + north) / 2, "units": "m"}
    )
    return tuple(frame.to_crs(crs) for frame in frames)


def degrees(frame: GeoDataFrame) -> Bounds | None:
    """Where the frame's features lie; None if it has none. MappingError without a CRS."""
    if frame.crs is None:
        raise MappingError(
            f"{len(frame)} features have no CRS; wanted features that say where they are"
        )
    bounds = frame.total_bounds
    if not all(map(math.isfinite, bounds)):
        return None
    to_degrees = Transformer.from_crs(frame.crs, "EPSG:4326", always_xy=True)
    found: Bounds = to_degrees.transform_bounds(*bounds)
    if not all(map(math.isfinite, found)):
        crs = short_crs(frame.crs.to_wkt())
        raise MappingError(
            f"features at {bounds.tolist()} lie outside what their CRS {crs} can map; "
            "wanted coordinates of that CRS"
        )
    return found


def common_bounds(known: list[Bounds]) -> Bounds | None:
    """The rectangle that all share; None if there is none."""
    wests, souths, easts, norths = zip(*known, strict=True)
    west, south, east, north = max(wests), max(souths), min(easts), min(norths)
    return (west, south, east, north) if west <= east and south <= north else None


def joint_bounds(known: list[Bounds]) -> Bounds:
    """The rectangle that holds all."""
    wests, souths, easts, norths = zip(*known, strict=True)
    return min(wests), min(souths), max(easts), max(norths)
