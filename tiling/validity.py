"""Where an image file holds data: the ways in which files tell it, and the collar that none tells.

A mask band, a real alpha band and a nodata tag are taken at their word, with one exception: black
and white (0 and 255 of a byte) are also colours of water and of roofs. A pixel of that value in
all its bands is empty only in a patch that is joined to the image's edge or is too large for a
roof. An image that tells nothing is searched for such patches of black or white at its edge.

Such blanks are found once for a whole image, on the image itself or, if it is large, on a reduced
one; each pixel of the full image is then tried. So no answer depends on the window that is read.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import rasterio
from numpy.typing import NDArray
from rasterio.enums import MaskFlags
from rasterio.windows import Window as RasterWindow
from skimage.measure import label

from .channels import Channels, palette_table

Array = NDArray[Any]
Mask = NDArray[np.bool_]

REDUCED_PX = 2000
"""Longest side of the image on which blanks are found."""

COLLAR_PX = 1024
"""Fewest pixels of a collar that no tag tells: a smaller patch at the edge is data."""

CORNER_PX = 64
"""The same where the patch has a corner of the image, as the wedges of a turned image do."""

HOLE_PX = 4096
"""Fewest pixels of a patch away from the edge that a nodata tag of black or white makes empty."""

_LOOK_PX = 512


@dataclass(frozen=True, slots=True)
class Fill:
    """A colour that fills what is empty, but that data may have too."""

    values: tuple[float | None, ...]
    """One for each colour band; None for a band that may hold anything."""

    told: bool
    """Whether a nodata tag names it; otherwise it is a collar that was found."""


@dataclass(frozen=True, slots=True)
class Validity:
    """How an image tells where it holds data. Values that are not finite are never data."""

    mask: bool = False
    """By a mask band, inside the file or beside it."""

    nodata: tuple[float | None, ...] | None = None
    """By these values, wherever all bands have theirs (None: this band has none)."""

    fills: tuple[Fill, ...] = ()
    """By blanks of these colours."""


@dataclass(frozen=True, slots=True)
class Blank:
    """Where pixels of one colour are empty: coarse blocks of a whole image."""

    fill: Fill

    blocks_HW: Mask
    """True for a block in which pixels of the colour are empty; 1 x 1 px if the image is small."""

    height: int
    """Rows of the image."""

    width: int

    def over(self, data_CHW: Array, top: int, left: int) -> Mask:
        """The empty pixels among those read from (top, left)."""
        rows = np.arange(top, top + data_CHW.shape[1]) * self.blocks_HW.shape[0] // self.height
        cols = np.arange(left, left + data_CHW.shape[2]) * self.blocks_HW.shape[1] // self.width
        near = self.blocks_HW[rows[0] : rows[-1] + 1, cols[0] : cols[-1] + 1]
        if not near.any():  # Most windows: their pixels need not be tried.
            return np.zeros(data_CHW.shape[1:], bool)
        empty_HW: Mask = self.blocks_HW[np.ix_(rows, cols)] & _holds(data_CHW, self.fill.values)
        return empty_HW


def find_validity(
    source: rasterio.DatasetReader, channels: Channels
) -> tuple[Validity, tuple[Blank, ...]]:
    """How an open image tells where it holds data, and its blanks."""
    mask = _has_mask(source)
    nodata = _nodata(source, channels)
    if nodata is not None and not channels.palette and _is_colour(source, nodata):
        fills, nodata = [Fill(nodata, told=True)], None
    elif mask or nodata is not None or channels.alpha is not None:
        fills = []
    else:
        count = len(channels.names)
        fills = [Fill((value,) * count, told=False) for value in _collar_values(source)]
    blanks = find_blanks(source, channels, fills)
    return Validity(mask, nodata, tuple(blank.fill for blank in blanks)), blanks


def find_blanks(
    source: rasterio.DatasetReader, channels: Channels, fills: Sequence[Fill]
) -> tuple[Blank, ...]:
    """The blanks of an image, for each fill that has one.

    The edges of the image are looked at in full; the rest, if it is large, reduced.
    """
    if not fills:
        return ()
    lines = [channels.read(source, window) for window in _edge_windows(*source.shape)]
    held = [(fill, [_holds(line_CHW, fill.values) for line_CHW in lines]) for fill in fills]
    held = [(fill, edges) for fill, edges in held if fill.told or any(map(np.any, edges))]
    if not held:
        return ()
    step = -(-max(source.shape) // REDUCED_PX)
    shape = (-(-source.height // step), -(-source.width // step))
    reduced_CHW = channels.read(source, shape=shape)
    found = (_blank(reduced_CHW, fill, edges, source.shape) for fill, edges in held)
    return tuple(blank for blank in found if blank is not None)


def _blank(
    reduced_CHW: Array, fill: Fill, edges: Sequence[Mask], full: tuple[int, int]
) -> Blank | None:
    """The blank of one colour, from the reduced image and its full `edges`, if there is one.

    Parts join by sides, not by corners. On a reduced image the blank is grown by one block, so
    that its ragged edge is in it.
    """
    blocks_HW = _holds(reduced_CHW, fill.values)
    for line_HW, edge_HW in zip(_sides(blocks_HW), edges, strict=True):
        line_HW |= _reduced(edge_HW, line_HW.shape)
    # scikit-image tells no types.
    numbers_HW: NDArray[np.intp] = label(blocks_HW, connectivity=1)  # type: ignore[no-untyped-call]
    sizes_px = np.bincount(numbers_HW.ravel()) * (full[0] * full[1] / blocks_HW.size)
    at_edge, at_corner = np.zeros((2, len(sizes_px)), bool)
    at_edge[np.concatenate([line_HW.ravel() for line_HW in _sides(numbers_HW)])] = True
    at_corner[numbers_HW[[0, 0, -1, -1], [0, -1, 0, -1]]] = True
    if fill.told:
        keep = at_edge | (sizes_px >= HOLE_PX)
    else:
        keep = at_edge & (sizes_px >= np.where(at_corner, CORNER_PX, COLLAR_PX))
    keep[0] = False  # What is not of the colour.
    blank_HW = keep[numbers_HW]
    if not blank_HW.any():
        return None
    return Blank(fill, blank_HW if blocks_HW.shape == full else _grown(blank_HW), *full)


def read_valid(
    source: rasterio.DatasetReader,
    channels: Channels,
    validity: Validity,
    blanks: tuple[Blank, ...],
    window: RasterWindow,
    data_CHW: Array,
) -> Mask:
    """Where the colours read from `window` of an image are data."""
    valid_HW = np.ones(data_CHW.shape[1:], bool)
    if validity.mask:
        valid_HW &= source.read_masks(channels.indexes[0], window=window) > 0
    if channels.alpha is not None:
        valid_HW &= source.read(channels.alpha, window=window) >= channels.opaque_from
    if validity.nodata is not None:
        valid_HW &= ~_holds(data_CHW, validity.nodata)
    if data_CHW.dtype.kind == "f":
        valid_HW &= np.isfinite(data_CHW).all(axis=0)
    for blank in blanks:
        valid_HW &= ~blank.over(data_CHW, int(window.row_off), int(window.col_off))
    return valid_HW


def any_valid(
    source: rasterio.DatasetReader,
    channels: Channels,
    validity: Validity,
    blanks: tuple[Blank, ...],
) -> bool:
    """Whether an image holds data at all: sought from the middle outwards, to the first pixel."""
    for window in _from_the_middle(*source.shape):
        data_CHW = channels.read(source, window)
        if read_valid(source, channels, validity, blanks, window, data_CHW).any():
            return True
    return False


def _has_mask(source: rasterio.DatasetReader) -> bool:
    """Whether a mask band is in the file or beside it (an alpha band or a nodata tag is none)."""
    flags = set(source.mask_flag_enums[0])
    return not flags & {MaskFlags.all_valid, MaskFlags.alpha, MaskFlags.nodata}


def _nodata(source: rasterio.DatasetReader, channels: Channels) -> tuple[float | None, ...] | None:
    """The values of the nodata tag that the bands can hold; None if there is none."""
    told = [source.nodatavals[index - 1] for index in channels.indexes]
    kept = [value if value is None or _fits(value, source.dtypes[0]) else None for value in told]
    if all(value is None for value in kept):
        return None
    if channels.palette and kept[0] is not None:
        return tuple(float(value) for value in palette_table(source)[:, int(kept[0])])
    return tuple(kept)


def _fits(value: float, dtype: str) -> bool:
    kind = np.dtype(dtype)
    if kind.kind == "f":
        return bool(np.isfinite(value))
    return float(value).is_integer() and np.iinfo(kind).min <= value <= np.iinfo(kind).max


def _is_colour(source: rasterio.DatasetReader, nodata: tuple[float | None, ...]) -> bool:
    """Whether a nodata value is one that data may have too: black or white of bytes."""
    return source.dtypes[0] == "uint8" and all(value in (None, 0, 255) for value in nodata)


def _collar_values(source: rasterio.DatasetReader) -> tuple[float, ...]:
    kind = np.dtype(source.dtypes[0])
    return (0.0, float(np.iinfo(kind).max)) if kind.kind == "u" else (0.0,)


def _holds(data_CHW: Array, values: tuple[float | None, ...]) -> Mask:
    """Where every band that has a value holds it."""
    holds_HW = np.ones(data_CHW.shape[1:], bool)
    for band_HW, value in zip(data_CHW, values, strict=True):
        if value is not None:
            # In the band's own type: a tag of float32's lowest number is not exact in text.
            holds_HW &= band_HW == np.asarray(value).astype(data_CHW.dtype)
    return holds_HW


def _sides(array_HW: Array) -> tuple[Array, Array, Array, Array]:
    """Top, bottom, left and right line, as views."""
    return array_HW[:1], array_HW[-1:], array_HW[:, :1], array_HW[:, -1:]


def _edge_windows(height: int, width: int) -> tuple[RasterWindow, ...]:
    """The lines of pixels that `_sides` gives, as windows of a file."""
    return (
        RasterWindow(0, 0, width, 1),
        RasterWindow(0, height - 1, width, 1),
        RasterWindow(0, 0, 1, height),
        RasterWindow(width - 1, 0, 1, height),
    )


def _reduced(line_HW: Mask, shape: tuple[int, int]) -> Mask:
    """A line by blocks, cut as `Blank.over` cuts them: whether a pixel of each is True."""
    axis = 1 if line_HW.shape[0] == 1 else 0
    pixels, blocks = line_HW.shape[axis], shape[axis]
    starts = -(-np.arange(blocks) * pixels // blocks)
    reduced_HW: Mask = np.logical_or.reduceat(line_HW, starts, axis=axis)
    return reduced_HW


def _grown(mask_HW: Mask) -> Mask:
    """The mask and the eight neighbours of all that is in it."""
    wide = np.pad(mask_HW, 1)
    height, width = mask_HW.shape
    shifts = [wide[r : r + height, c : c + width] for r in range(3) for c in range(3)]
    grown_HW: Mask = np.any(shifts, axis=0)
    return grown_HW


def _from_the_middle(height: int, width: int) -> Iterator[RasterWindow]:
    corners = [
        (top, left) for top in range(0, height, _LOOK_PX) for left in range(0, width, _LOOK_PX)
    ]
    half = _LOOK_PX / 2
    corners.sort(key=lambda at: abs(at[0] + half - height / 2) + abs(at[1] + half - width / 2))
    for top, left in corners:
        yield RasterWindow(left, top, min(_LOOK_PX, width - left), min(_LOOK_PX, height - top))
