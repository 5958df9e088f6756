"""A mosaic: many scenes on one grid, of which each pixel is of the best that has data there."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import shapely
from shapely import STRtree

from .errors import TilingError
from .grid import Grid, Window
from .imagery import SceneReader, band_index, footprint
from .layer import Pixels
from .scene import Scene


@dataclass(frozen=True)  # without slots, so that it can keep its tree
class Mosaic:
    """Many scenes on one grid."""

    scenes: tuple[Scene, ...]
    """The best first: each pixel is of the first that has data there, all its bands together."""

    grid: Grid

    bands: tuple[str, ...]
    """What is read; each scene has them."""

    dtype: str
    """The type of all scenes."""

    def __post_init__(self) -> None:
        for scene in self.scenes:
            for name in self.bands:
                band_index(scene, name)
            if scene.dtype != self.dtype:
                raise TilingError(
                    f"{scene.path} holds {scene.dtype}; wanted {self.dtype}, as the other imagery"
                )

    def within(self, window: Window) -> "Mosaic":
        """The mosaic of the scenes that may have pixels in `window`: what a cell's job is given."""
        # Inset by half a pixel: scenes and a window that only touch share no pixel.
        near = sorted(self._tree.query(_box(window, 0.5)).tolist())
        return replace(self, scenes=tuple(self.scenes[number] for number in near))

    @cached_property
    def _tree(self) -> STRtree:
        """The scenes' footprints, by their numbers."""
        return STRtree([_box(footprint(scene, self.grid), 0.0) for scene in self.scenes])

    @property
    def left_out(self) -> dict[str, tuple[Scene, ...]]:
        """What is not read though at least half of the scenes have it, with those that lack it."""
        total = len(self.scenes)
        count = Counter(name for scene in self.scenes for name in scene.bands)
        return {
            name: tuple(scene for scene in self.scenes if name not in scene.bands)
            for name, number in count.items()
            if name not in self.bands and total <= 2 * number < 2 * total
        }


def make_mosaic(scenes: Sequence[Scene], grid: Grid, bands: Sequence[str] | None = None) -> Mosaic:
    """The mosaic of scenes in their order, of `bands` or of all that they have in common.

    TilingError if there are no scenes, no common bands, or several types.
    """
    if not scenes:
        raise TilingError("there is no imagery to make a mosaic of; wanted at least one scene")
    first = scenes[0]
    common = first.bands
    for scene in scenes:
        left = tuple(name for name in common if name in scene.bands)
        if not left:
            raise TilingError(
                f"{scene.path} has {', '.join(scene.bands)} and the imagery before it has "
                f"{', '.join(common)} in common; wanted a band that all have"
            )
        common = left
    return Mosaic(tuple(scenes), grid, tuple(bands or common), first.dtype)


def read_mosaic(mosaic: Mosaic, window: Window) -> tuple[Pixels, tuple[Scene, ...]]:
    """The pixels of any window and the scenes that gave them, the best first.

    Invalid, and 0, where no scene has data. TilingError names a scene that cannot be read.
    """
    data_CHW = np.zeros((len(mosaic.bands), *window.shape), mosaic.dtype)
    valid_HW = np.zeros(window.shape, bool)
    used = []
    for scene in mosaic.within(window).scenes:
        if valid_HW.all():
            break
        with SceneReader(scene, mosaic.grid, mosaic.bands) as reader:
            found = reader.read(window)
        new_HW = found.valid_HW & ~valid_HW
        if new_HW.any():
            used.append(scene)
            np.copyto(data_CHW, found.data_CHW, where=new_HW)
            valid_HW |= new_HW
    return Pixels(data_CHW, valid_HW), tuple(used)


def _box(window: Window, inset: float) -> Any:
    """The window as a rectangle of rows and columns, made smaller by `inset` pixels a side."""
    left, top = window.left + inset, window.top + inset
    return shapely.box(left, top, window.right - inset, window.bottom - inset)
