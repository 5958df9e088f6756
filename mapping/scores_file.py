"""A scores GeoTIFF of any size, written in one pass: windows go in, whole rows of blocks go out."""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import rasterio
from numpy.typing import NDArray
from rasterio.windows import Window as RasterWindow

from ..tiling.files import written_beside
from ..tiling.grid import Grid, Window
from ..tiling.layer import colours
from ..tiling.scores import NODATA
from .errors import MappingError

BLOCK_px = 256
"""Side of the file's blocks."""

Bytes = NDArray[np.uint8]


class ScoresFile:
    """Takes stored scores window by window; what no window covers is nodata.

    The blocks stand on the file's own corner and the windows on the grid's lattice, so rows are
    held until a row of blocks is whole: `side` + BLOCK_px bytes for each column and class.
    """

    def __init__(self, target: rasterio.io.DatasetWriter, area: Window, side: int) -> None:
        self._target, self._area = target, area
        self._top = 0
        """Row of the file that is held first."""
        held = (target.count, side + BLOCK_px, area.width)
        self._rows_KHW = np.full(held, NODATA, np.uint8)
        self.checksums: list[tuple[RasterWindow, int]] = []

    def put(self, window: Window, scores_KHW: Bytes) -> None:
        """Take a window inside the area, no higher than the one before."""
        rows, cols = window.slices(self._area)
        self._write_above(rows.start - rows.start % BLOCK_px)
        rows = slice(rows.start - self._top, rows.stop - self._top)
        self._rows_KHW[:, rows, cols] = scores_KHW

    def finish(self) -> None:
        """Write what is still held, and nodata down to the last row."""
        self._write_above(self._area.height)

    def _write_above(self, row: int) -> None:
        while self._top < row:
            height = min(BLOCK_px, self._area.height - self._top)
            at = RasterWindow(0, self._top, self._area.width, height)
            whole_KHW = self._rows_KHW[:, :height]
            self._target.write(whole_KHW, window=at)
            self.checksums.append((at, zlib.crc32(whole_KHW.tobytes())))
            self._rows_KHW[:, :-BLOCK_px] = self._rows_KHW[:, BLOCK_px:]
            self._rows_KHW[:, -BLOCK_px:] = NODATA
            self._top += BLOCK_px


@contextmanager
def scores_file(
    path: Path, grid: Grid, area: Window, side: int, classes: Sequence[str], tags: Mapping[str, str]
) -> Iterator[ScoresFile]:
    """A scores GeoTIFF over `area` of the grid, written beside `path`, compared and renamed.

    It takes windows of up to `side` pixels. MappingError if it does not read back as written.
    """
    checksums: list[tuple[RasterWindow, int]] = []

    def check(part: Path) -> None:
        with rasterio.open(part) as found:
            for at, wanted in checksums:
                if zlib.crc32(found.read(window=at).tobytes()) != wanted:
                    raise MappingError(
                        f"{path} does not read back as it was written; is the disk whole?"
                    )

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
            file = ScoresFile(target, area, side)
            yield file
            file.finish()
        checksums.extend(file.checksums)
