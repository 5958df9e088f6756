"""A scores GeoTIFF of any size, written in one pass: windows go in, whole blocks go out."""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import rasterio
from numpy.typing import NDArray
from rasterio.windows import Window as RasterWindow

from ...tiling.files import written_beside
from ...tiling.grid import Grid, Window
from ...tiling.layer import colours
from ...tiling.scores import NODATA
from ..errors import MappingError

BLOCK_px = 256
"""Side of the file's blocks."""

Bytes = NDArray[np.uint8]


class ScoresFile:
    """Takes stored scores window by window, until windows have covered it.

    The blocks stand on the file's own corner and the windows on the grid's lattice, so a block is
    held until it is covered: while windows come row by row, that is one row of blocks.
    """

    def __init__(self, target: rasterio.io.DatasetWriter, area: Window) -> None:
        self._target, self._area = target, area
        # Seen from the file's corner, blocks are a lattice of their own.
        self._file = Window(0, 0, *area.shape)
        self._held: dict[Window, _Block] = {}
        self._missing = area.height * area.width
        """How many pixels no window has covered yet."""
        self.checksum = 0
        """Of all blocks that were written, in whatever order."""

    def put(self, window: Window, scores_KHW: Bytes) -> None:
        """Take a window inside the area, which shares no pixel with those before."""
        top, left = self._area.top, self._area.left
        here = Window(
            window.top - top, window.left - left, window.bottom - top, window.right - left
        )
        for square in here.lattice(BLOCK_px):
            block = self._held.get(square) or self._hold(square)
            part = here.overlap(block.window)
            if part is None:  # The lattice gives none without; this tells the type checker.
                continue
            block.scores_KHW[:, *part.slices(block.window)] = scores_KHW[:, *part.slices(here)]
            block.missing -= part.height * part.width
            self._missing -= part.height * part.width
            if not block.missing:
                self._write(square)

    def finish(self) -> None:
        """ValueError unless all was put."""
        if self._missing:
            raise ValueError(f"windows cover the whole file, got {self._missing} pixels without")

    def _hold(self, square: Window) -> "_Block":
        window = square.overlap(self._file)
        if window is None:
            raise ValueError(f"a window is inside {self._area}")
        empty_KHW = np.full((self._target.count, *window.shape), NODATA, np.uint8)
        self._held[square] = _Block(window, empty_KHW, window.height * window.width)
        return self._held[square]

    def _write(self, square: Window) -> None:
        block = self._held.pop(square)
        self._target.write(block.scores_KHW, window=_raster_window(block.window))
        self.checksum += _checksum(block.window, block.scores_KHW)


@dataclass(slots=True)
class _Block:
    """A block of the file in the making."""

    window: Window
    """Seen from the file's corner; cut off at the file's edges."""

    scores_KHW: Bytes

    missing: int
    """How many of its pixels no window has covered yet."""


def _checksum(block: Window, scores_KHW: Bytes) -> int:
    """What changes with a block's bytes and its place, to be added up."""
    return zlib.crc32(scores_KHW.tobytes(), hash((block.top, block.left)) & 0xFFFFFFFF)


def _raster_window(window: Window) -> RasterWindow:
    return RasterWindow.from_slices((window.top, window.bottom), (window.left, window.right))


@contextmanager
def scores_file(
    path: Path, grid: Grid, area: Window, classes: Sequence[str], tags: Mapping[str, str]
) -> Iterator[ScoresFile]:
    """A scores GeoTIFF over `area` of the grid, written beside `path`, compared and renamed.

    MappingError if it does not read back as it was written.
    """
    written: list[ScoresFile] = []

    def check(part: Path) -> None:
        with rasterio.open(part) as found:
            whole = Window(0, 0, *found.shape)
            blocks = (square.overlap(whole) for square in whole.lattice(BLOCK_px))
            read = sum(
                _checksum(block, found.read(window=_raster_window(block)))
                for block in blocks
                if block is not None
            )
        if read != written[0].checksum:
            raise MappingError(f"{path} does not read back as it was written; is the disk whole?")

    profile = {
        "driver": "GTiff",
        "width": area.width,
        "height": area.height,
        "count": len(classes),
        "dtype": "uint8",
        "nodata": NODATA,
        "crs": grid.crs,
        "transform": grid.transform(area),
        "tiled": True,
        "blockxsize": BLOCK_px,
        "blockysize": BLOCK_px,
        "interleave": "pixel",
        "compress": "deflate",
        "bigtiff": "if_safer",
    }
    with written_beside(path, check) as part:
        with rasterio.open(part, "w", **profile) as target:
            target.descriptions = tuple(classes)
            target.colorinterp = colours(classes)
            target.update_tags(**tags)
            file = ScoresFile(target, area)
            yield file
            file.finish()
        written.append(file)
