"""The county's imagery: two quads of two flights, as they would be delivered."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import rasterio
import shapely
from numpy.typing import NDArray
from rasterio.enums import ColorInterp
from rasterio.features import geometry_mask
from rasterio.transform import Affine
from shapely import Polygon

from ...tiling.files import written_beside
from ...tiling.grid import transformer
from .light import Light, developed, exposed, lit
from .paint import paint
from .plan import Plan

_OVERLAP_M = 140
_MARGIN_M = 16
"""Painted around a quad, so that its edge is lit and blurred as its middle is."""


def seam_m(width_m: int) -> int:
    """How far east of the county's edge the zones meet.

    The larger quad is the eastern one, so that its lattice is the grid that imagery suggests.
    """
    return round(0.44 * width_m)


@dataclass(frozen=True, slots=True)
class Flight:
    """One quad: its name, zone, share of the county and light."""

    name: str
    crs: str
    is_west: bool
    light: Light

    def bounds(self, size_m: tuple[int, int]) -> tuple[int, int, int, int]:
        """Left, bottom, right and top of what it covers, in the county's metres."""
        width, height = size_m
        seam = seam_m(width)
        if self.is_west:
            return 0, 0, seam + _OVERLAP_M // 2, height
        return seam - _OVERLAP_M // 2, 0, width, height


FLIGHTS = (
    Flight(
        "m_3607824_se_17_1_20201004",
        "EPSG:26917",
        is_west=True,
        light=Light(
            season="autumn",
            sun_azimuth_deg=214,
            sun_elevation_deg=42,
            gain=(1.11, 1.08, 1.04, 1.05),
        ),
    ),
    Flight(
        "m_3607717_sw_18_1_20220620",
        "EPSG:26918",
        is_west=False,
        light=Light(
            season="summer",
            sun_azimuth_deg=118,
            sun_elevation_deg=60,
            gain=(1.05, 1.07, 1.10, 1.08),
        ),
    ),
)


def write_quad(
    folder: Path,
    flight: Flight,
    plan: Plan,
    crs: str,
    origin: tuple[float, float],
    rng: np.random.Generator,
) -> Path:
    """Paint, light and photograph one quad; outside of what was flown its pixels are 0."""
    left, bottom, right, top = flight.bounds(plan.size_m)
    around = (left - _MARGIN_M, bottom - _MARGIN_M, right + _MARGIN_M, top + _MARGIN_M)
    painting = paint(plan, around, flight.light.season, rng)
    flown = shapely.transform(shapely.box(left, bottom, right, top), lambda xy: xy + origin)
    outline, transform, shape = _lattice(flown, crs, flight.crs)
    at = painting.transform
    source = Affine(at.a, 0.0, at.c + origin[0], 0.0, at.e, at.f + origin[1])
    radiance_CHW = developed(
        lit(painting, flight.light), (source, crs), (transform, flight.crs), shape
    )
    bytes_CHW = exposed(radiance_CHW, flight.light, rng)
    bytes_CHW[:, geometry_mask([outline], shape, transform)] = 0
    path = folder / f"{flight.name}.tif"
    with written_beside(path) as part:
        _write_geotiff(part, bytes_CHW, flight.crs, transform)
    return path


def _lattice(flown: Polygon, crs: str, quad_crs: str) -> tuple[Polygon, Affine, tuple[int, int]]:
    """The flown area in a quad's CRS, and the raster of whole metres around it."""
    dense = shapely.segmentize(flown, 50.0)
    to_quad = transformer(crs, quad_crs)
    outline = shapely.transform(
        dense, lambda xy: np.stack(to_quad.transform(xy[:, 0], xy[:, 1]), axis=1)
    )
    left, bottom = np.floor(np.round(outline.bounds[:2], 3))
    right, top = np.ceil(np.round(outline.bounds[2:], 3))
    transform = Affine(1.0, 0.0, float(left), 0.0, -1.0, float(top))
    return outline, transform, (int(top - bottom), int(right - left))


def _write_geotiff(path: Path, bytes_CHW: NDArray[np.uint8], crs: str, transform: Affine) -> None:
    """As NAIP is delivered: no nodata tag, and no colour interpretation of the infrared."""
    profile = {
        "driver": "GTiff",
        "count": 4,
        "height": bytes_CHW.shape[1],
        "width": bytes_CHW.shape[2],
        "dtype": "uint8",
        "crs": crs,
        "transform": transform,
        "tiled": True,
        "blockxsize": 256,
        "blockysize": 256,
        "compress": "deflate",
        "predictor": 2,
        "interleave": "pixel",
        "photometric": "RGB",
        "alpha": "unspecified",
    }
    with rasterio.open(path, "w", **profile) as quad:
        quad.write(bytes_CHW)
        quad.colorinterp = (
            ColorInterp.red,
            ColorInterp.green,
            ColorInterp.blue,
            ColorInterp.undefined,
        )
