"""A scores GeoTIFF of any size, written in one pass: windows go in, whole rows of blocks go out."""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
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
    """Takes stored scores window by window; what no window covers is nodata.

    The blocks stand on the file's own corner and the windows on the grid's lattice, so rows of
    blocks are held until the windows have passed them: two more than a window is high, at most.
    """

    def __init__(self, target: rasterio.io.DatasetWriter, area: Window) -> None:
        self._target, self._area = target, area
        self._held: dict[int, Bytes] = {}
        """Rows of blocks KHW by their number, those that a window has touched."""
        self._written = 0
        """How many rows of blocks are in the file."""
        self.checksums: list[tuple[RasterWindow, int]] = []

    def put(self, window: Window, scores_KHW: Bytes) -> None:
        """Take a window inside the area, its top no higher than that of the one before."""
        first = (window.top - self._area.top) // BLOCK_px
        self._write_before(first)
        for number in range(first, -(-(window.bottom - self._area.top) // BLOCK_px)):
            row = self._row(number)
            part = window.overlap(row)
            if part is not None:  # They always overlap; this tells the type checker.
                if number not in self._held:
                    self._held[number] = self._empty(row)
                self._held[number][:, *part.slices(row)] = scores_KHW[:, *part.slices(window)]

    def finish(self) -> None:
        """Write what is still held, and nodata down to the last row."""
        self._write_before(-(-self._area.height // BLOCK_px))

    def _write_before(self, number: int) -> None:
        while self._written < number:
            row = self._row(self._written)
            scores_KHW = self._held.pop(self._written, None)
            if scores_KHW is None:
                scores_KHW = self._empty(row)
            at = RasterWindow.from_slices(*row.slices(self._area))
            self._target.write(scores_KHW, window=at)
            self.checksums.append((at, zlib.crc32(scores_KHW.data)))
            self._written += 1

    def _row(self, number: int) -> Window:
        """A row of blocks, as a window of the grid."""
        area, top = self._area, self._area.top + number * BLOCK_px
        return Window(top, area.left, min(top + BLOCK_px, area.bottom), area.right)

    def _empty(self, row: Window) -> Bytes:
        return np.full((self._target.count, *row.shape), NODATA, np.uint8)


@contextmanager
def scores_file(
    path: Path, grid: Grid, area: Window, classes: Sequence[str], tags: Mapping[str, str]
) -> Iterator[ScoresFile]:
    """A scores GeoTIFF over `area` of the grid, written beside `path`, compared and renamed.

    MappingError if it does not read back as it was written.
    """
    checksums: list[tuple[RasterWindow, int]] = []

    def check(part: Path) -> None:
        with rasterio.open(part) as found:
            for at, wanted in checksums:
                if zlib.crc32(found.read(window=at)) != wanted:
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
            file = ScoresFile(target, area)
            yield file
            file.finish()
        checksums.extend(file.checksums)
