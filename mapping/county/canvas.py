"""The painter's canvas: half metres of the county, what covers them, and their unevenness."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse
import shapely
from numpy.typing import NDArray
from rasterio.features import rasterize
from rasterio.transform import Affine
from scipy.ndimage import gaussian_filter
from shapely.geometry.base import BaseGeometry

Pixels = NDArray[np.float32]

STEP_M = 0.5
"""Side of a painted pixel."""


@dataclass(frozen=True, slots=True)
class Canvas:
    """Where the painted rectangle is."""

    left: float
    top: float
    shape: tuple[int, int]

    @classmethod
    def of_bounds(cls, bounds: tuple[int, int, int, int]) -> "Canvas":
        left, bottom, right, top = bounds
        return cls(left, top, (round((top - bottom) / STEP_M), round((right - left) / STEP_M)))

    @property
    def transform(self) -> Affine:
        return Affine(STEP_M, 0.0, self.left, 0.0, -STEP_M, self.top)

    def burn(self, areas: Sequence[BaseGeometry]) -> NDArray[np.int32]:
        """The number of the last area that covers each pixel's middle, from 1; 0 for none."""
        left, bottom, right, top = shapely.bounds(np.array(areas, object)).reshape(-1, 4).T
        height, width = (length * STEP_M for length in self.shape)
        seen = (left < self.left + width) & (right > self.left)
        seen &= (bottom < self.top) & (top > self.top - height)
        shapes = [(areas[index], index + 1) for index in np.flatnonzero(seen).tolist()]
        if not shapes:
            return np.zeros(self.shape, np.int32)
        burnt = rasterize(shapes, self.shape, transform=self.transform, dtype="int32")
        return np.asarray(burnt)

    def part(self, bounds: tuple[float, ...]) -> tuple[slice, slice] | None:
        """Rows and columns that hold a rectangle; None if it lies outside."""
        left, bottom, right, top = bounds
        rows = (self.top - top) / STEP_M, (self.top - bottom) / STEP_M
        cols = (left - self.left) / STEP_M, (right - self.left) / STEP_M
        row0, row1 = max(math.floor(rows[0]), 0), min(math.ceil(rows[1]), self.shape[0])
        col0, col1 = max(math.floor(cols[0]), 0), min(math.ceil(cols[1]), self.shape[1])
        return (slice(row0, row1), slice(col0, col1)) if row0 < row1 and col0 < col1 else None

    def metres(self, part: tuple[slice, slice]) -> tuple[Pixels, Pixels]:
        """x of each column, as a row, and y of each row, as a column, at pixels' middles."""
        rows, cols = part
        x = self.left + (np.arange(cols.start, cols.stop) + 0.5) * STEP_M
        y = self.top - (np.arange(rows.start, rows.stop) + 0.5) * STEP_M
        return x[None, :].astype(np.float32), y[:, None].astype(np.float32)


@dataclass(frozen=True, slots=True)
class Texture:
    """Unevenness at four sizes, each with mean 0 and standard deviation about 1."""

    grain: Pixels
    clump: Pixels
    patch: Pixels
    broad: Pixels

    @classmethod
    def random(cls, shape: tuple[int, int], rng: np.random.Generator) -> "Texture":
        grain = gaussian_filter(rng.standard_normal(shape, np.float32), 0.7) * np.float32(2.4)
        clump = 0.7 * smooth_noise(shape, 5, rng) + 0.7 * smooth_noise(shape, 13, rng)
        patch = 0.8 * smooth_noise(shape, 45, rng) + 0.6 * smooth_noise(shape, 18, rng)
        broad = 0.8 * smooth_noise(shape, 260, rng) + 0.6 * smooth_noise(shape, 110, rng)
        return cls(grain, clump, patch, broad)


def smooth_noise(shape: tuple[int, int], spacing_px: int, rng: np.random.Generator) -> Pixels:
    """A random surface without corners: cubic B-splines over a lattice of normal numbers.

    Mean 0, standard deviation about 1.
    """
    rows, cols = (_spline(length, spacing_px) for length in shape)
    knots = rng.standard_normal((rows.shape[1], cols.shape[1]), np.float32)
    # Squares of the spline's weights sum to 151/315 on average, along each axis.
    surface = (cols @ (rows @ knots).T).T * np.float32(315 / 151)
    return np.ascontiguousarray(surface)


def _spline(length: int, spacing_px: int) -> scipy.sparse.csr_array:
    """Weights of knots (columns) at pixels (rows): the uniform cubic B-spline."""
    at = np.arange(length) / spacing_px
    first = np.floor(at).astype(int)
    f = at - first
    first_second_last = (1 - f) ** 3, 3 * f**3 - 6 * f**2 + 4, f**3
    third = 6 - sum(first_second_last)
    weights = np.stack([*first_second_last[:2], third, first_second_last[2]])
    pixel = np.repeat(np.arange(length), 4)
    knot = (first[:, None] + np.arange(4)).ravel()
    values = (weights.T.ravel() / 6).astype(np.float32)
    return scipy.sparse.csr_array((values, (pixel, knot)), shape=(length, int(first[-1]) + 4))
