"""Cuts a raster into the windows that a model decides one by one, each seen with its margin.

Windows stand on the grid's own lattice of the model's window size, whatever the cells or the
corner of a scene, so that the scores of a pixel depend on the imagery and the model alone.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ...tiling.grid import Window
from ...tiling.layer import Pixels

_PIECE_px = 1024
"""Columns that are read at once, so that no read grows with the raster's width."""


class Source(Protocol):
    """What prediction reads: a layer, or a scene on a grid."""

    @property
    def bands(self) -> tuple[str, ...]: ...

    @property
    def dtype(self) -> str: ...

    def read(self, window: Window) -> Pixels:
        """The pixels of any window of the grid, invalid where there is no data."""
        ...


@dataclass(frozen=True, slots=True)
class View:
    """One window with what the model sees of it."""

    window: Window
    """A whole square of the lattice; it may reach beyond the area that was asked for."""

    kept: Window
    """The part of it inside the area."""

    valid_HW: NDArray[np.bool_]
    """Where `kept` holds data."""

    seen: Pixels | None
    """The window and its margin on each side; None where `kept` holds no data."""


def count_windows(area: Window, side: int) -> int:
    """How many squares of the lattice of `side` pixels share a pixel with `area`.

    >>> count_windows(Window(-1, 0, 1, 9), 4)
    6
    """
    rows = -(-area.bottom // side) - area.top // side
    return rows * (-(-area.right // side) - area.left // side)


def all_seen(area: Window, side: int, margin: int) -> Window:
    """All that the views over `area` hold, their margins included.

    >>> all_seen(Window(5, 0, 8, 4), 4, 1)
    Window(top=3, left=-1, bottom=9, right=5)
    """
    top, left = area.top // side * side, area.left // side * side
    bottom, right = -(-area.bottom // side) * side, -(-area.right // side) * side
    return Window(top, left, bottom, right).grown(margin)


def views(source: Source, area: Window, side: int, margin: int) -> Generator[View]:
    """The windows of `side` pixels over `area`, row by row, each seen with `margin` pixels more.

    Each pixel is read once. Memory grows with the width of `area` alone, by `side` + 2 x `margin`
    pixels a column.
    """
    strip = _Strip(source, area, side, margin)
    for square in area.lattice(side):
        kept = square.overlap(area)
        if kept is not None:  # The lattice gives none without; this tells the type checker.
            yield strip.view(square, kept)


class _Strip:
    """The rows that one row of windows sees; those that the next row sees too are kept."""

    def __init__(self, source: Source, area: Window, side: int, margin: int) -> None:
        self._source, self._margin = source, margin
        top, left = area.top // side * side, area.left // side * side
        right = -(-area.right // side) * side
        # It stands one row of windows too high, so that the first move reads all but the margin.
        self._at = Window(top - side, left, top, right).grown(margin)
        self._data_CHW = np.zeros((len(source.bands), *self._at.shape), source.dtype)
        self._valid_HW = np.zeros(self._at.shape, bool)
        self._read(top - margin, top + margin)

    def view(self, square: Window, kept: Window) -> View:
        """The view of a window in this row of windows or the next one down."""
        if square.bottom + self._margin > self._at.bottom:
            self._move_down(square.height)
        valid_HW = self._valid_HW[kept.slices(self._at)].copy()
        if not valid_HW.any():
            return View(square, kept, valid_HW, None)
        rows, cols = square.grown(self._margin).slices(self._at)
        # Copied, since the strip's memory holds the next row later.
        seen = Pixels(self._data_CHW[:, rows, cols].copy(), self._valid_HW[rows, cols].copy())
        return View(square, kept, valid_HW, seen)

    def _move_down(self, rows: int) -> None:
        old, shared = self._at, 2 * self._margin
        self._at = Window(old.top + rows, old.left, old.bottom + rows, old.right)
        self._data_CHW[:, :shared] = self._data_CHW[:, rows : rows + shared]
        self._valid_HW[:shared] = self._valid_HW[rows : rows + shared]
        self._read(old.bottom, self._at.bottom)

    def _read(self, top: int, bottom: int) -> None:
        """Read these rows of the strip from the source, piece by piece."""
        if top == bottom:  # without a margin nothing is shared
            return
        for left in range(self._at.left, self._at.right, _PIECE_px):
            piece = Window(top, left, bottom, min(left + _PIECE_px, self._at.right))
            rows, cols = piece.slices(self._at)
            found = self._source.read(piece)
            self._data_CHW[:, rows, cols] = found.data_CHW
            self._valid_HW[rows, cols] = found.valid_HW
