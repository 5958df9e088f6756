"""Which bands of an image file hold which colour, and how to read them as they are meant."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import rasterio
from numpy.typing import NDArray
from rasterio.enums import ColorInterp
from rasterio.windows import Window as RasterWindow

Array = NDArray[Any]

SAMPLE_PX = 512
"""Side of the reduced image on which an alpha band is tried."""

_SURE = 0.98
"""Share of a real alpha band that is exactly clear or opaque: its soft edges are thin.

A NIR band is far below it, over water too, where it is dark but seldom exactly 0.
"""

_COLOURS = ("red", "green", "blue")


@dataclass(frozen=True, slots=True)
class Channels:
    """The colours of an image in the order in which they are read."""

    names: tuple[str, ...]
    """"red", "green", "blue", "nir", "gray" or "band5": each once."""

    indexes: tuple[int, ...]
    """The file's band of each name, from 1; a palette has one for its three names."""

    alpha: int | None = None
    """The band, from 1, that really tells what is transparent."""

    opaque_from: float = 0
    """The smallest value of the alpha band that counts as opaque: half of full."""

    palette: bool = False
    """Whether the one band holds indices into a table of colours."""

    def read(
        self,
        source: rasterio.DatasetReader,
        window: RasterWindow | None = None,
        shape: tuple[int, int] | None = None,
    ) -> Array:
        """The colours (CHW) in a window, or the whole reduced to `shape` by picking pixels."""
        count = len(self.indexes)
        data_CHW = source.read(
            list(self.indexes), window=window, out_shape=shape and (count, *shape)
        )
        return palette_table(source)[:, data_CHW[0]] if self.palette else data_CHW


def channels_of(source: rasterio.DatasetReader) -> Channels:
    """Name the bands of an open image by colour interpretation and description.

    Without an interpretation three bands count as red, green, blue and a fourth as NIR. A band
    marked as alpha that does not look like one is NIR if it is the fourth, else a plain band.
    """
    interpretations = source.colorinterp
    if interpretations == (ColorInterp.palette,):
        return Channels(_COLOURS, (1,), palette=True)
    alpha, opaque_from = _alpha(source)
    numbers = [number for number in source.indexes if number != alpha]
    names = _names(
        [interpretations[number - 1] for number in numbers],
        [source.descriptions[number - 1] or "" for number in numbers],
        numbers,
    )
    by_name = dict(zip(names, numbers, strict=True))
    colours = [name for name in _COLOURS if name in by_name]
    order = [*colours, *(name for name in names if name not in colours)]
    indexes = tuple(by_name[name] for name in order)
    return Channels(tuple(order), indexes, alpha, opaque_from)


def palette_table(source: rasterio.DatasetReader) -> Array:
    """Red, green and blue (3 x N) of every index that the band can hold; 0 for those not told."""
    table = np.zeros((3, np.iinfo(source.dtypes[0]).max + 1), np.uint8)
    for index, colour in source.colormap(1).items():
        table[:, index] = colour[:3]
    return table


def _alpha(source: rasterio.DatasetReader) -> tuple[int | None, float]:
    """The real alpha band and its smallest opaque value; None where what is marked is none."""
    marked = [n for n in source.indexes if source.colorinterp[n - 1] == ColorInterp.alpha]
    if not marked or source.count == 1:
        return None, 0
    shape = (min(source.height, SAMPLE_PX), min(source.width, SAMPLE_PX))
    sample_HW = source.read(marked[-1], out_shape=shape)
    full = 255.0  # Wider types often hold 0 and 255 all the same.
    if sample_HW.max() > full and sample_HW.dtype.kind in "iu":
        full = float(np.iinfo(sample_HW.dtype).max)
    elif sample_HW.dtype.kind == "f" and sample_HW.max() <= 1:
        full = 1.0
    clear, opaque = sample_HW == 0, sample_HW == full
    return (marked[-1], full / 2) if (clear | opaque).mean() >= _SURE else (None, 0)


def _names(
    interpretations: Sequence[ColorInterp], descriptions: Sequence[str], numbers: Sequence[int]
) -> list[str]:
    """A name for each band that is left when a real alpha is taken away."""
    names = [_name(*told) for told in zip(interpretations, descriptions, numbers, strict=True)]
    if not set(names) & set(_COLOURS) and "nir" not in names and len(names) >= 3:
        names[:3] = _COLOURS  # Nothing is told: the order that nearly all imagery has.
    if len(names) >= 4 and set(names[:3]) == set(_COLOURS) and names[3] == f"band{numbers[3]}":
        names[3] = "nir"
    # Of two bands with one name the first keeps it.
    return [
        name if name not in names[:at] else f"band{numbers[at]}" for at, name in enumerate(names)
    ]


def _name(interpretation: ColorInterp, description: str, number: int) -> str:
    told = description.strip().lower()
    if told in (*_COLOURS, "nir"):
        return told
    if told in ("near infrared", "near-infrared", "nearinfrared", "ir"):
        return "nir"
    marked = str(interpretation.name)
    return marked if marked in (*_COLOURS, "nir", "gray") else f"band{number}"
