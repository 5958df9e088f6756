"""Where a region was looked at: what is not found there is missing, elsewhere it is unknown."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely.geometry.base import BaseGeometry

from ..tiling.grid import Cell
from ..tiling.layer import Layer
from .site import Site

SIDE = 8
"""Side in pixels of the squares that are told apart: it divides each tile, so each cell."""


def looked_at(site: Site) -> BaseGeometry:
    """Where the region's cells have imagery inside the boundary, in the grid's CRS."""
    return seen_area(site.imagery, site.cells).intersection(site.boundary)


def seen_area(layer: Layer, cells: Iterable[Cell]) -> BaseGeometry:
    """Where the cells of a layer hold data, in the grid's CRS.

    Squares of SIDE pixels count that are valid throughout, so it never holds a place without
    data. The cells are read one by one; only the outlines of each stay in memory.
    """
    return _to_crs(_united([_seen_in(layer, cell) for cell in cells]), layer)


def _seen_in(layer: Layer, cell: Cell) -> BaseGeometry:
    """The same of one cell, in squares of the grid: x the column, y the row, exact integers."""
    window = layer.grid.window(cell)
    squares = layer.read(window).valid_HW.reshape(window.height // SIDE, SIDE, -1, SIDE)
    whole_HW = np.asarray(squares.all(axis=(1, 3)), bool)
    top, left = window.top // SIDE, window.left // SIDE
    return _united(
        [
            shapely.box(left + start, top + row, left + stop, top + row + 1)
            for row, start, stop in _runs(whole_HW)
        ]
    )


def _runs(seen_HW: NDArray[np.bool_]) -> Iterator[tuple[int, int, int]]:
    """What is True, as runs along the rows: row, first column, one past the last."""
    edges_HW = np.diff(seen_HW.astype(np.int8), axis=1, prepend=0, append=0)
    rows, starts = np.nonzero(edges_HW == 1)
    _, stops = np.nonzero(edges_HW == -1)
    yield from zip(rows.tolist(), starts.tolist(), stops.tolist(), strict=True)


def _united(parts: Sequence[BaseGeometry]) -> BaseGeometry:
    """The union, with vertices at corners alone (a ring in normal form starts at one)."""
    united: BaseGeometry = shapely.simplify(shapely.normalize(shapely.union_all(parts)), 0)
    return united


def _to_crs(area: BaseGeometry, layer: Layer) -> BaseGeometry:
    (width, height), (x, y) = layer.grid.pixel, layer.grid.anchor
    scale, origin = np.array([SIDE * width, -SIDE * height]), np.array([x * width, y * height])
    moved: BaseGeometry = shapely.transform(area, lambda xy: xy * scale + origin)
    return moved
