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

    Each pixel is read once. Memory grows with the width of `area` alone, by the 2 x `margin` rows
    that two rows of windows both see.
    """
    reader = _Reader(source, margin)
    for square in area.lattice(side):
        kept = square.overlap(area)
        if kept is None:  # The lattice gives none without; this tells the type checker.
            continue
        seen = reader.read(square)
        valid_HW = seen.valid_HW[kept.slices(square.grown(margin))]
        yield View(square, kept, valid_HW, seen if valid_HW.any() else None)


class _Reader:
    """Reads windows with their margins, row by row, and takes from memory what it has read."""

    def __init__(self, source: Source, margin: int) -> None:
        self._source, self._margin = source, margin
        self._row = 0
        self._left: Pixels | None = None
        """What the next window of this row sees too: the last columns of the one before."""
        self._above: dict[int, Pixels] = {}
        """By a window's left edge, the last rows of the columns that it read itself."""

    def read(self, square: Window) -> Pixels:
        """The window and its margin; the one before stood to its left, or ended the row above."""
        whole, shared = square.grown(self._margin), 2 * self._margin
        if square.top != self._row:
            self._row, self._left = square.top, None
        left, above = self._left, self._above.pop(square.left, None)
        own = self._source.read(
            Window(
                whole.top + (0 if above is None else shared),
                whole.left + (0 if left is None else shared),
                whole.bottom,
                whole.right,
            )
        )
        own = own if above is None else _joined(above, own, axis=-2)
        seen = own if left is None else _joined(left, own, axis=-1)
        if shared:
            # A copy, since a part would keep the whole in memory until the next row.
            foot = np.s_[..., -shared:, :]
            self._above[square.left] = Pixels(own.data_CHW[foot].copy(), own.valid_HW[foot].copy())
            side = np.s_[..., -shared:]
            self._left = Pixels(seen.data_CHW[side], seen.valid_HW[side])
        return seen


def _joined(one: Pixels, other: Pixels, axis: int) -> Pixels:
    """Two pieces, one below the other (axis -2) or to its right (-1)."""
    data_CHW = np.concatenate([one.data_CHW, other.data_CHW], axis)
    return Pixels(data_CHW, np.concatenate([one.valid_HW, other.valid_HW], axis))
