"""From scores to a mask of one class: what is found, with its small holes filled."""

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from ...tiling.grid import Grid, Window
from ...tiling.scores import NODATA, threshold_byte
from .ground import ground_area, ground_pixel_at

Mask = NDArray[np.bool_]

EIGHT = np.ones((3, 3), bool)
"""Neighbours over edges and corners: the background's, where the found pixels' are over edges."""


def found(scores_HW: NDArray[np.uint8], threshold: float) -> Mask:
    """The pixels of at least `threshold` (probability); nodata never is."""
    mask_HW: Mask = (scores_HW >= threshold_byte(threshold)) & (scores_HW != NODATA)
    return mask_HW


def hole_pixels(grid: Grid, core: Window, hole_m2: float) -> int:
    """No hole of less than `hole_m2` near `core` has more pixels than this (nor is it longer)."""
    width, height = ground_pixel_at(grid, core.top, core.left)
    return int(1.1 * hole_m2 / (width * height)) + 1


def fill_holes(mask_HW: Mask, known_HW: Mask, grid: Grid, view: Window, hole_m2: float) -> Mask:
    """The mask with holes of less than `hole_m2` ground metres filled, save those with nodata.

    What a hole becomes depends on nothing but the hole, if the view holds all of it; one that
    the view's edge cuts may come out wrong, so keep a margin of `hole_pixels`.
    """
    labels_HW, count = ndimage.label(~mask_HW, structure=EIGHT)
    sizes = np.bincount(labels_HW.ravel(), minlength=count + 1)
    small = sizes < hole_pixels(grid, view, hole_m2)
    small[0] = False
    small[labels_HW[~known_HW]] = False
    if not small.any():
        return mask_HW
    rows, cols = np.nonzero(small[labels_HW])
    holes, first = np.unique(labels_HW[rows, cols], return_index=True)
    areas = sizes[holes] * ground_area(grid, rows[first] + view.top, cols[first] + view.left)
    small[holes[areas >= hole_m2]] = False
    filled_HW: Mask = mask_HW | small[labels_HW]
    return filled_HW
