"""Resampling a scene onto another lattice, with its validity apart from its colours.

Whether a pixel is data is decided by the nearest pixel of the scene, so none is invented; its
colours are weighted over pixels that are data only, so none is darkened by what is not.
"""

import math
from typing import Any

import numpy as np
from affine import Affine
from rasterio.transform import GCPTransformer
from rasterio.warp import Resampling, reproject

from .grid import Grid, Window, transformer
from .layer import Pixels
from .scene import Floats, Scene, coordinates

AVERAGE_FROM = 2.0
"""From this many pixels of the scene to one of the grid its pixels are averaged."""

BLOCK_PX = 256
"""Side of what is resampled in one go."""

_SPARE_PX = 4
"""Beyond the kernel, for where one library's projection differs from the other's."""

_LIKE = 0.05
"""How much coarser a grid may be for a scene's pixels to be interpolated without smoothing."""

_OPAQUE = 255


def coarsening(scene: Scene, grid: Grid) -> float:
    """How many pixels of the scene stand, on one side, on a pixel of the grid."""
    own = scene.ground_px_m
    wanted = grid.ground_pixel(grid.covering(scene.bounds_in(grid.crs)))
    return max(wanted[0] / own[0], wanted[1] / own[1])


def block_side(coarse: float) -> int:
    """The side of a block, in the grid's pixels: smaller where many of the scene's stand on one."""
    side = BLOCK_PX
    while side > 16 and side * coarse > 8 * BLOCK_PX:
        side //= 2
    return side


def pixels_under(scene: Scene, grid: Grid, block: Window, coarse: float) -> Window | None:
    """The scene's own pixels that `block` of the grid is made of; None if there are none."""
    along = np.linspace(0, 1, 9)
    cols, rows = (side.ravel() for side in np.meshgrid(along * block.width, along * block.height))
    xs, ys = coordinates(grid.transform(block), cols, rows)
    xs, ys = transformer(grid.crs, scene.crs).transform(xs, ys)
    there = np.isfinite(xs) & np.isfinite(ys)
    if not there.any():
        return None
    cols, rows = _pixels_at(scene, xs[there], ys[there])
    margin = math.ceil(2 * max(1.0, coarse)) + _SPARE_PX
    seen = Window(
        math.floor(rows.min()),
        math.floor(cols.min()),
        math.ceil(rows.max()) + 1,
        math.ceil(cols.max()) + 1,
    )
    return seen.grown(margin).overlap(Window(0, 0, scene.height, scene.width))


def warp(
    scene: Scene, grid: Grid, pixels: Pixels, seen: Window, block: Window, coarse: float
) -> Pixels:
    """The pixels of `block` of the grid, from the scene's own in its window `seen`."""
    dtype = pixels.data_CHW.dtype
    opaque_1HW = (pixels.valid_HW[None] * _OPAQUE).astype(dtype)
    data_CHW = np.zeros((len(pixels.data_CHW) + 1, *block.shape), dtype)
    place = _place(scene, seen) | {
        "src_crs": scene.crs,
        "dst_crs": grid.crs,
        "dst_transform": grid.transform(block),
    }
    # GDAL would guess the kernel's width from the block, and blur what is only turned.
    scale = str(1.0 if coarse <= 1 + _LIKE else 1 / coarse)
    reproject(
        np.concatenate([pixels.data_CHW, opaque_1HW]),
        data_CHW,
        resampling=Resampling.average if coarse >= AVERAGE_FROM else Resampling.bilinear,
        src_alpha=len(data_CHW),
        dst_alpha=len(data_CHW),
        SRC_ALPHA_MAX=str(_OPAQUE),
        DST_ALPHA_MAX=str(_OPAQUE),
        XSCALE=scale,
        YSCALE=scale,
        **place,
    )
    nearest_HW = np.zeros(block.shape, np.uint8)
    reproject(pixels.valid_HW.astype(np.uint8), nearest_HW, resampling=Resampling.nearest, **place)
    valid_HW = (nearest_HW > 0) & (data_CHW[-1] > 0)
    return Pixels(data_CHW[:-1] * valid_HW, valid_HW)


def _place(scene: Scene, seen: Window) -> dict[str, Any]:
    """Where the scene's window `seen` stands in its CRS, as rasterio takes it."""
    if scene.gcps:
        return {"gcps": scene.control(seen.top, seen.left)}
    at = scene.transform
    left, top = at.a * seen.left + at.b * seen.top, at.d * seen.left + at.e * seen.top
    return {"src_transform": Affine(at.a, at.b, at.c + left, at.d, at.e, at.f + top)}


def _pixels_at(scene: Scene, xs: Floats, ys: Floats) -> tuple[Floats, Floats]:
    """Columns and rows of the scene at coordinates of its CRS, unrounded."""
    if not scene.gcps:
        return coordinates(~scene.transform, xs, ys)
    with GCPTransformer(scene.control()) as at:
        rows, cols = at.rowcol(xs, ys, op=lambda number: number)
    return np.asarray(cols), np.asarray(rows)
