"""Imagery on a grid: one scene, read by any window.

A scene that stands on the grid's lattice is copied as it is; any other is resampled. What is read
for a pixel depends on the scene and the grid alone, never on the window.
"""

import math
from collections import OrderedDict
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import rasterio
from affine import Affine
from pyproj import CRS
from rasterio.windows import Window as RasterWindow

from .errors import TilingError
from .files import file_identity
from .grid import Grid, Window
from .layer import Pixels
from .scene import Scene, open_scene, readable
from .validity import Blank, find_blanks, read_valid
from .warp import block_side, coarsening, pixels_under, warp

__all__ = ["Scene", "SceneReader", "footprint", "open_scene", "scene_grid"]

_SQUARE = 0.02
"""How far from square a pixel may be on the ground, and from a wanted size, to stay as it is."""

_KEPT_BYTES = 64 << 20
"""Resampled blocks that a reader keeps for the windows that come next."""


def scene_grid(
    scene: Scene, *, pixel_m: float | None = None, cell: int = 4096, tile: int = 512
) -> Grid:
    """The grid on whose lattice a scene stands, or the one onto which it is to be resampled.

    A north-up scene (south-up too: its rows are only turned) whose pixels are square on the ground,
    and of `pixel_m` metres if that is given, keeps its own lattice. Any other gets square pixels
    of `pixel_m` (of its own finer side if not given) in its CRS, on the lattice through the origin.
    """
    width_m, height_m = scene.ground_px_m
    wanted_m = min(width_m, height_m) if pixel_m is None else pixel_m
    if not 0 < wanted_m < math.inf:
        raise TilingError(f"{scene.path}: a pixel has a positive size in metres, got {wanted_m}")
    north_up = not scene.gcps and not scene.transform.b and not scene.transform.d
    if north_up and max(abs(width_m / wanted_m - 1), abs(height_m / wanted_m - 1)) <= _SQUARE:
        return Grid.of_raster(scene.crs, _upright(scene), cell, tile)
    return Grid(scene.crs, _square_pixel(scene, pixel_m), cell=cell, tile=tile)


class SceneReader:
    """One scene's pixels on a grid, by an open file: a context manager for one thread."""

    def __init__(self, scene: Scene, grid: Grid, bands: Sequence[str] | None = None) -> None:
        """Open the scene; `bands` chooses and orders (default all). TilingError if it lacks one."""
        self.scene = scene
        self.grid = grid
        self.bands = tuple(bands or scene.bands)
        self.dtype = scene.dtype
        self._order = [band_index(scene, name) for name in self.bands]
        self._blanks = _blanks(scene, _identity(scene.path))
        self.window = footprint(scene, grid)
        self._copies = _on_lattice(scene, grid)
        self._coarse = 1.0 if self._copies else coarsening(scene, grid)
        self._blocks: OrderedDict[Window, Pixels] = OrderedDict()
        with readable(scene.path):
            self._source = rasterio.open(scene.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._source.close()

    def read(self, window: Window) -> Pixels:
        """The pixels of a window of the grid; invalid, and 0, where the scene has no data.

        TilingError if the file cannot be read.
        """
        with readable(self.scene.path):
            return self._copied(window) if self._copies else self._warped(window)

    def _copied(self, window: Window) -> Pixels:
        pixels = self._empty(window)
        part = window.overlap(self.window)
        if part is not None:
            rows, cols = part.slices(self.window)
            found = self._own(Window(rows.start, cols.start, rows.stop, cols.stop))
            _put(found, part, pixels, window)
        return pixels

    def _warped(self, window: Window) -> Pixels:
        pixels = self._empty(window)
        touched = window.overlap(self.window)
        if touched is None:
            return pixels
        # Blocks stand on the grid's lattice, so that rounding is the same in any window.
        for block in touched.lattice(block_side(self._coarse)):
            part = block.overlap(window)
            if part is not None:
                at = part.slices(block)
                found = self._block(block)
                _put(Pixels(found.data_CHW[:, *at], found.valid_HW[at]), part, pixels, window)
        return pixels

    def _block(self, block: Window) -> Pixels:
        """A resampled block, made now or kept from before."""
        if block in self._blocks:
            self._blocks.move_to_end(block)
            return self._blocks[block]
        seen = pixels_under(self.scene, self.grid, block, self._coarse)
        if seen is None:
            return self._empty(block)
        own = self._own(seen)
        made = warp(self.scene, self.grid, own, seen, block, self._coarse)
        self._blocks[block] = made
        if len(self._blocks) * (made.data_CHW.nbytes + made.valid_HW.nbytes) > _KEPT_BYTES:
            self._blocks.popitem(last=False)
        return made

    def _own(self, window: Window) -> Pixels:
        """The scene's pixels in a window of its own rows and columns."""
        at = RasterWindow(window.left, window.top, window.width, window.height)
        scene = self.scene
        data_CHW = scene.channels.read(self._source, at)
        valid_HW = read_valid(
            self._source, scene.channels, scene.validity, self._blanks, at, data_CHW
        )
        if self.bands != scene.bands:
            data_CHW = data_CHW[self._order]
        data_CHW = data_CHW.astype(self.dtype, copy=False)
        if not valid_HW.all():
            data_CHW[:, ~valid_HW] = 0
        return Pixels(data_CHW, valid_HW)

    def _empty(self, window: Window) -> Pixels:
        shape = (len(self.bands), *window.shape)
        return Pixels(np.zeros(shape, self.dtype), np.zeros(window.shape, bool))


def footprint(scene: Scene, grid: Grid) -> Window:
    """The smallest window of the grid that holds the scene."""
    if not _on_lattice(scene, grid):
        return grid.covering(scene.bounds_in(grid.crs))
    top = round(grid.anchor[1] - scene.transform.f / grid.pixel[1])
    left = round(scene.transform.c / grid.pixel[0] - grid.anchor[0])
    return Window(top, left, top + scene.height, left + scene.width)


def band_index(scene: Scene, name: str) -> int:
    """Where among the scene's bands `name` is; TilingError if it has none of that name."""
    if name not in scene.bands:
        raise TilingError(f"{scene.path} has {', '.join(scene.bands)}; wanted a band {name}")
    return scene.bands.index(name)


def _on_lattice(scene: Scene, grid: Grid) -> bool:
    return not scene.gcps and grid.stands_on(scene.crs, scene.transform)


def _put(found: Pixels, part: Window, into: Pixels, window: Window) -> None:
    at = part.slices(window)
    into.data_CHW[:, *at] = found.data_CHW
    into.valid_HW[at] = found.valid_HW


def _identity(path: Path) -> str:
    try:
        return file_identity(path)
    except OSError as problem:
        raise TilingError(
            f"{path} cannot be found ({problem.strerror}); wanted the image that was there before"
        ) from problem


@lru_cache(maxsize=16)
def _blanks(scene: Scene, identity: str) -> tuple[Blank, ...]:
    """The blanks of a scene, found once for all its cells; `identity` is its file's."""
    if not scene.validity.fills:
        return ()
    with readable(scene.path), rasterio.open(scene.path) as source:
        return find_blanks(source, scene.channels, scene.validity.fills)


def _upright(scene: Scene) -> Affine:
    """The transform of a scene whose rows and columns grow southwards and eastwards."""
    at = scene.transform
    left, top = min(at.c, at.c + at.a * scene.width), max(at.f, at.f + at.e * scene.height)
    return Affine(abs(at.a), 0.0, left, 0.0, -abs(at.e), top)


def _square_pixel(scene: Scene, pixel_m: float | None) -> tuple[float, float]:
    """Width and height, in units of the CRS, of a pixel that is square on the ground of the scene.

    A map whose metre is the ground's to within 2 % (UTM, a state's plane) is taken at its word.
    """
    across_m, down_m = _ground_scales_m(scene)
    crs, at = CRS(scene.crs), scene.transform
    if crs.is_projected and abs(across_m / down_m - 1) <= _SQUARE:
        if pixel_m is None:
            side = min(math.hypot(at.a, at.d), math.hypot(at.b, at.e))
            return side, side
        unit_m = crs.axis_info[0].unit_conversion_factor
        if abs(across_m / unit_m - 1) <= _SQUARE:
            across_m = down_m = unit_m
    side_m = min(scene.ground_px_m) if pixel_m is None else pixel_m
    return side_m / across_m, side_m / down_m


def _ground_scales_m(scene: Scene) -> tuple[float, float]:
    """Metres on the ground of one unit of the CRS, eastwards and southwards, where the scene is."""
    left, bottom, right, top = scene.bounds_in(scene.crs)
    step = max(right - left, top - bottom) * 1e-3
    probe = Grid(scene.crs, (step, step))
    x, y = (left + right) / 2, (bottom + top) / 2
    across_m, down_m = probe.ground_pixel(probe.covering((x, y, x, y)))
    return across_m / step, down_m / step
