"""Masks with their small holes filled, and the ground's metres."""

import numpy as np
import pytest
from orthotrace.mapping.tracing.ground import ground_area, ground_pixel_at
from orthotrace.mapping.tracing.masks import fill_holes, found, hole_pixels
from orthotrace.tiling.grid import Grid, Window

GRID = Grid("EPSG:26986", (1.0, 1.0), cell=64, tile=16)
VIEW = Window(-900032, 230016, -900000, 230048)


def test_nodata_is_never_found() -> None:
    scores = np.array([[0, 126, 127, 254, 255]], np.uint8)
    assert found(scores, 0.5).tolist() == [[False, False, True, True, False]]


@pytest.mark.parametrize(("hole_m2", "filled"), [(4.5, 0), (5.5, 5), (100, 5), (0, 0)])
def test_holes_hang_together_over_corners(hole_m2: float, filled: int) -> None:
    mask_HW = np.ones(VIEW.shape, bool)
    mask_HW[[10, 11, 12, 13, 14], [10, 11, 12, 13, 14]] = False
    known_HW = np.ones(VIEW.shape, bool)
    out_HW = fill_holes(mask_HW, known_HW, GRID, VIEW, hole_m2)
    assert out_HW.sum() - mask_HW.sum() == filled
    known_HW[12, 12] = False
    assert np.array_equal(fill_holes(mask_HW, known_HW, GRID, VIEW, hole_m2), mask_HW)


def test_hole_pixels_is_a_bound_that_holds() -> None:
    assert hole_pixels(GRID, VIEW, 5) >= 5
    quarter = Grid("EPSG:26986", (0.5, 0.5), cell=64, tile=16)
    assert hole_pixels(quarter, Window(-1800064, 460032, -1800000, 460096), 5) >= 20


def test_the_ground_is_the_same_whatever_the_cell() -> None:
    other = Grid("EPSG:3857", (1.0, 1.0), cell=512, tile=16)
    small = Grid("EPSG:3857", (1.0, 1.0), cell=64, tile=16)
    width, height = ground_pixel_at(other, -8399737, 3)
    assert ground_pixel_at(small, -8399737, 3) == (width, height)
    assert (width, height) == pytest.approx((0.5, 0.5), rel=0.01)
    areas = ground_area(small, np.array([-8399737, -8399737]), np.array([3, 10**6]))
    assert areas == pytest.approx(width * height)
    assert not len(ground_area(small, np.empty(0, int), np.empty(0, int)))
