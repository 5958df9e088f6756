"""A layer made small and given colours: for the page and the picture.

It is read block by block: memory depends on the size of the thumbnail and not on the layer's.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from affine import Affine
from numpy.typing import NDArray

from ...tiling import scores
from ...tiling.grid import Window
from ...tiling.layer import Layer, Pixels
from ..errors import MappingError
from .palette import UNKNOWN, class_colours, rgb

Kind: TypeAlias = Literal["imagery", "labels", "scores"]
Floats: TypeAlias = NDArray[np.float32]

_BLOCK = 1024
"""Side of what is read at once, in pixels of the layer (one thumbnail pixel if that is more)."""

_HATCH = 8
"""Period of the hatching in pixels of the thumbnail."""

_FAINT = 0.04
"""Scores below it are not drawn at all: a veil of near-zeros would hide the imagery."""


@dataclass(frozen=True, slots=True)
class Thumbnail:
    """A small image with its place."""

    rgba_HWC: NDArray[np.uint8]
    """Red, green, blue, alpha; alpha is 0 where there is no data or nothing to show."""

    transform: Affine
    """From (column, row) to (x, y) in `crs`."""

    crs: str

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """Left, bottom, right and top in `crs`."""
        height, width = self.rgba_HWC.shape[:2]
        at = self.transform
        return at.c, at.f + at.e * height, at.c + at.a * width, at.f


def thumbnail(layer: Layer, window: Window, kind: Kind, max_side: int = 2048) -> Thumbnail:
    """The window of a layer in colours, reduced by a whole factor until no side is over `max_side`.

    Imagery is averaged over its valid pixels. A label pixel is "yes" if any pixel in it is, so that
    roads stay whole, and otherwise what most of it is. Scores are averaged over what was looked at.
    Imagery other than uint8 is stretched between its 2nd and 98th percentile.
    """
    if max_side < 1:
        raise MappingError(f"a thumbnail's side is at least one pixel, got {max_side}")
    step = -(-max(window.shape) // max_side)
    bands = _visible_bands(layer.bands) if kind == "imagery" else tuple(range(len(layer.bands)))
    shape = -(-window.height // step), -(-window.width // step)
    small_CHW = np.full((len(bands), *shape), np.nan, np.float32)
    for block in _blocks(window, step * max(1, _BLOCK // step)):
        part_CHW = _reduced(layer.read(block), bands, kind, step)
        top, left = (block.top - window.top) // step, (block.left - window.left) // step
        height, width = part_CHW.shape[1:]
        small_CHW[:, top : top + height, left : left + width] = part_CHW
    if kind == "imagery":
        rgba_HWC = _paint_imagery(small_CHW, stretched=layer.dtype != "uint8")
    elif kind == "labels":
        rgba_HWC = _paint_labels(small_CHW, layer.bands)
    else:
        rgba_HWC = _paint_scores(small_CHW, layer.bands)
    at = layer.grid.transform(window)
    larger = Affine(at.a * step, 0.0, at.c, 0.0, at.e * step, at.f)
    return Thumbnail(rgba_HWC, larger, layer.grid.crs)


# -- making small ------------------------------------------------------------------------------


def _visible_bands(bands: tuple[str, ...]) -> tuple[int, int, int]:
    """Which bands are shown as red, green and blue."""
    if {"red", "green", "blue"} <= set(bands):
        return bands.index("red"), bands.index("green"), bands.index("blue")
    return (0, 1, 2) if len(bands) >= 3 else (0, 0, 0)


def _blocks(window: Window, side: int) -> Iterator[Window]:
    """The window cut into squares of `side` pixels from its own corner."""
    for top in range(window.top, window.bottom, side):
        for left in range(window.left, window.right, side):
            yield Window(top, left, min(top + side, window.bottom), min(left + side, window.right))


def _reduced(pixels: Pixels, bands: tuple[int, ...], kind: Kind, step: int) -> Floats:
    """The bands with `step` x `step` pixels made one; NaN where there is no value."""
    full_CHW = pixels.data_CHW[list(bands)]
    if kind == "imagery":
        known_CHW = np.broadcast_to(pixels.valid_HW, full_CHW.shape) & np.isfinite(full_CHW)
    else:
        known_CHW = full_CHW != scores.NODATA
    known_share = _sums(known_CHW, step) / _sums(np.ones_like(known_CHW), step)
    sums = _sums(np.where(known_CHW, full_CHW, 0), step)
    if kind == "labels":
        return np.where(sums > 0, 1, np.where(known_share < 0.5, np.nan, 0)).astype(np.float32)
    counts = np.maximum(_sums(known_CHW, step), 1)
    return np.where(known_share < 0.5, np.nan, sums / counts).astype(np.float32)


def _sums(values_CHW: NDArray[np.generic], step: int) -> NDArray[np.float64]:
    """Sums over squares of `step` pixels; the last ones in a row or column may be cut."""
    rows = np.add.reduceat(
        values_CHW, np.arange(0, values_CHW.shape[1], step), axis=1, dtype=np.float64
    )
    both: NDArray[np.float64] = np.add.reduceat(
        rows, np.arange(0, values_CHW.shape[2], step), axis=2
    )
    return both


# -- giving colours ----------------------------------------------------------------------------


def _paint_imagery(small_CHW: Floats, *, stretched: bool) -> NDArray[np.uint8]:
    valid_HW = np.isfinite(small_CHW).all(axis=0)
    colour_CHW = small_CHW
    if stretched and valid_HW.any():
        low, high = np.percentile(small_CHW[:, valid_HW], (2, 98), axis=1)[..., None, None]
        colour_CHW = (small_CHW - low) / np.maximum(high - low, 1e-9) * 255
    rgba_HWC = np.zeros((*valid_HW.shape, 4), np.uint8)
    rgba_HWC[..., :3] = np.moveaxis(np.where(valid_HW, colour_CHW, 0), 0, 2).clip(0, 255).round()
    rgba_HWC[..., 3] = np.where(valid_HW, 255, 0)
    return rgba_HWC


def _paint_labels(small_CHW: Floats, classes: tuple[str, ...]) -> NDArray[np.uint8]:
    """Yes in the class's colour; unknown hatched, each second class the other way."""
    height, width = small_CHW.shape[1:]
    row, col = np.ogrid[:height, :width]
    rgba_HWC = np.zeros((height, width, 4), np.uint8)
    for number, values_HW in enumerate(small_CHW):
        slant = row + col if number % 2 == 0 else row - col
        rgba_HWC[np.isnan(values_HW) & (slant % _HATCH < 1)] = (*rgb(UNKNOWN), 170)
    for colour, values_HW in zip(class_colours(classes), small_CHW, strict=True):
        rgba_HWC[values_HW == 1] = (*rgb(colour), 235)
    return rgba_HWC


def _paint_scores(small_CHW: Floats, classes: tuple[str, ...]) -> NDArray[np.uint8]:
    """The colour of the likeliest class, the denser the likelier."""
    known_CHW = np.nan_to_num(small_CHW / scores.LEVELS, nan=0.0)
    best_HW, likely_HW = known_CHW.argmax(axis=0), known_CHW.max(axis=0)
    colours = np.array([rgb(colour) for colour in class_colours(classes)], np.uint8)
    alpha_HW = np.where(likely_HW < _FAINT, 0, likely_HW * 245)
    return np.dstack([colours[best_HW], alpha_HW.round().astype(np.uint8)])
