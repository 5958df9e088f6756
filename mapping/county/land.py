"""The land that a county is built on: what stands somewhere leaves no room for another."""

from dataclasses import dataclass

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely import Polygon
from skimage.draw import polygon as pixels_of_polygon

from .plan import Floats, Frame


@dataclass(frozen=True, slots=True)
class Land:
    """Which square metres are taken: what is placed later asks here first."""

    taken_HW: NDArray[np.bool_]
    """One pixel a metre, row 0 in the south. The one thing here that changes."""

    @property
    def county(self) -> Polygon:
        """All of it."""
        height, width = self.taken_HW.shape
        return shapely.box(0, 0, width, height)

    def is_free(self, area: Polygon) -> bool:
        """Whether an area lies inside the county and on nothing taken."""
        left, bottom, right, top = area.bounds
        height, width = self.taken_HW.shape
        if left < 1 or bottom < 1 or right > width - 1 or top > height - 1:
            return False
        # The corners answer most questions, at a tenth of the cost.
        if self.is_taken(*np.asarray(area.exterior.coords).T).any():
            return False
        return not bool(self.taken_HW[self._pixels(area)].any())

    def has_room(self, frame: Frame, box: tuple[float, float, float, float]) -> bool:
        """Whether a few points of a box (s0, t0, s1, t1) are free: quick, and not the last word."""
        s0, t0, s1, t1 = box
        points = [frame.at(s, t) for s in (s0, (s0 + s1) / 2, s1) for t in (t0, (t0 + t1) / 2, t1)]
        return not self.is_taken(*np.array(points).T).any()

    def take(self, area: Polygon) -> None:
        self.taken_HW[self._pixels(area)] = True

    def is_taken(self, x: Floats, y: Floats) -> NDArray[np.bool_]:
        """For points: whether the square metre that holds each is taken or outside."""
        height, width = self.taken_HW.shape
        col, row = np.floor(x).astype(int), np.floor(y).astype(int)
        inside = (col >= 0) & (row >= 0) & (col < width) & (row < height)
        found = self.taken_HW[row.clip(0, height - 1), col.clip(0, width - 1)]
        return np.asarray(found | ~inside)

    def _pixels(self, area: Polygon) -> tuple[NDArray[np.int_], NDArray[np.int_]]:
        x, y = np.asarray(area.exterior.coords).T
        # scikit-image has no types here.
        # scikit-image tells no types.
        rows, cols = pixels_of_polygon(  # type: ignore[no-untyped-call]
            y - 0.5, x - 0.5, self.taken_HW.shape
        )
        return rows, cols
