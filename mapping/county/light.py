"""Photographs a painting: sun, shadows, air, lens and sensor of one flight."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rasterio.transform import Affine
from rasterio.warp import Resampling, reproject
from scipy.ndimage import gaussian_filter

from .canvas import STEP_M, Pixels, smooth_noise
from .paint import Painting

_HIGHEST_M = 26.0
"""Nothing in the county is higher, so no shadow is longer than this one's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Light:
    """The light of one flight."""

    season: str
    """summer or autumn."""

    sun_azimuth_deg: float
    """Clockwise from north."""

    sun_elevation_deg: float
    gain: tuple[float, float, float, float]
    """Exposure by band: the colour cast of the day and of the film."""

    sky: tuple[float, float, float, float] = (0.36, 0.41, 0.49, 0.34)
    """Share of the light that comes from the sky, which shadows keep; bluer than the sun's."""

    haze: tuple[float, float, float, float] = (0.000, 0.002, 0.006, -0.004)
    """What the air adds, less what the laboratory takes off: deep water comes out as 0."""

    noise: float = 0.011
    """Standard deviation of the sensor's noise."""


def lit(painting: Painting, light: Light) -> Pixels:
    """Radiances of the painting under sun and sky, by band; 1 is about white in full sun."""
    direct_HW = _facing(painting.height_HW, light) * _sunlit(painting.height_HW, light)
    out_CHW = np.empty_like(painting.colour_CHW)
    for band in range(len(out_CHW)):
        sky = np.float32(light.sky[band])
        light_HW = sky + (1 - sky) * direct_HW
        out_CHW[band] = painting.colour_CHW[band] * light_HW * np.float32(light.gain[band])
        out_CHW[band] += np.float32(light.haze[band])
    return out_CHW


def exposed(radiance_CHW: Pixels, light: Light, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Bytes of a photograph with the sensor's noise and the lens's falling-off."""
    shape = radiance_CHW.shape[1:]
    falling_HW = 1 + np.float32(0.018) * smooth_noise(shape, 700, rng)
    out_CHW = np.empty(radiance_CHW.shape, np.uint8)
    shared_HW = rng.standard_normal(shape, np.float32)
    for band, radiance_HW in enumerate(radiance_CHW):
        own_HW = rng.standard_normal(shape, np.float32)
        noise_HW = np.float32(light.noise) * (0.6 * shared_HW + 0.8 * own_HW)
        value_HW = 255 * (radiance_HW * falling_HW + noise_HW * (0.5 + radiance_HW))
        out_CHW[band] = np.clip(np.round(_shoulder(value_HW)), 0, 255)
    return out_CHW


def developed(
    radiance_CHW: Pixels,
    source: tuple[Affine, str],
    target: tuple[Affine, str],
    shape: tuple[int, int],
) -> Pixels:
    """Radiances on the lattice of a photograph in another CRS: transform and CRS of both.

    The lens: GDAL's bilinear kernel is as wide as the target's pixel on both sides, about what an
    aerial camera blurs.
    """
    out_CHW = np.zeros((len(radiance_CHW), *shape), np.float32)
    reproject(
        radiance_CHW,
        out_CHW,
        src_transform=source[0],
        src_crs=source[1],
        dst_transform=target[0],
        dst_crs=target[1],
        resampling=Resampling.bilinear,
        num_threads=1,
    )
    return out_CHW


def _facing(height_HW: Pixels, light: Light) -> Pixels:
    """How squarely each spot faces the sun, 1 for level ground."""
    azimuth, elevation = math.radians(light.sun_azimuth_deg), math.radians(light.sun_elevation_deg)
    down, right = np.gradient(height_HW, STEP_M)
    # A wall is a cliff between two pixels; clipped, it shows as a bright or dark edge.
    east, north = np.clip(right, -1.6, 1.6), np.clip(-down, -1.6, 1.6)
    level = math.sin(elevation)
    towards = math.cos(elevation) * (east * math.sin(azimuth) + north * math.cos(azimuth))
    facing_HW = (level - towards) / np.sqrt(1 + east**2 + north**2) / level
    return np.asarray(np.clip(facing_HW, 0.12, 1.45), np.float32)


def _sunlit(height_HW: Pixels, light: Light) -> Pixels:
    """1 in the sun, 0 in the shadow of something, with a narrow edge between.

    The height that a spot needs to be in the sun is found in steps towards the sun, each twice as
    long as the one before: what shades the spot n steps on shades this one too, n steps lower.
    """
    azimuth, elevation = math.radians(light.sun_azimuth_deg), math.radians(light.sun_elevation_deg)
    needed_HW = height_HW.copy()
    step = 1
    while step * STEP_M * math.tan(elevation) < _HIGHEST_M:
        rows, cols = round(-step * math.cos(azimuth)), round(step * math.sin(azimuth))
        lower = np.float32(step * STEP_M * math.tan(elevation))
        here, there = _shifted(needed_HW.shape, rows, cols)
        needed_HW[here] = np.maximum(needed_HW[here], needed_HW[there] - lower)
        step *= 2
    under_HW = np.clip((needed_HW - height_HW) / np.float32(0.9), 0, 1)
    return np.asarray(1 - gaussian_filter(under_HW, 0.5))


def _shifted(
    shape: tuple[int, ...], rows: int, cols: int
) -> tuple[tuple[slice, slice], tuple[slice, slice]]:
    """The pixels with a partner `rows` further down and `cols` further right; the partners."""
    height, width = shape
    here = (
        slice(max(0, -rows), height - max(0, rows)),
        slice(max(0, -cols), width - max(0, cols)),
    )
    there = (
        slice(max(0, rows), height - max(0, -rows)),
        slice(max(0, cols), width - max(0, -cols)),
    )
    return here, there


def _shoulder(value_HW: Pixels) -> Pixels:
    """Bright values pressed together below 255, as film and sensors' curves do."""
    above = np.clip(value_HW - 200, 0, None)
    return np.asarray(np.minimum(value_HW, 200) + 55 * np.tanh(above / 75))
