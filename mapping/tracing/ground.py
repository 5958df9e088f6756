"""Metres on the ground, measured at places that do not depend on how a grid is cut into cells."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ...tiling.grid import Grid, Window

PLACE = 512
"""Side in pixels of the absolute squares over which a pixel's ground size counts as one."""


@lru_cache(maxsize=4096)
def ground_pixel_at(grid: Grid, row: int, col: int) -> tuple[float, float]:
    """Width and height in ground metres of a pixel in the square of PLACE that holds (row, col)."""
    top, left = row // PLACE * PLACE, col // PLACE * PLACE
    return grid.ground_pixel(Window(top, left, top + PLACE, left + PLACE))


def ground_area(
    grid: Grid, rows: NDArray[np.integer], cols: NDArray[np.integer]
) -> NDArray[np.float64]:
    """Ground square metres of each of the pixels (row, col)."""
    squares = np.column_stack([rows // PLACE, cols // PLACE]) * PLACE
    if not len(squares):
        return np.empty(0)
    places, which = np.unique(squares, axis=0, return_inverse=True)
    areas = [np.prod(ground_pixel_at(grid, int(row), int(col))) for row, col in places]
    return np.array(areas)[which]
