"""Flips and turns move labels exactly with images; light keeps what a place is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from orthotrace.models.augment import dihedral, light

MEAN, STD = np.array([100, 50], np.float32), np.array([20, 10], np.float32)


@given(st.integers(0, 7))
def test_every_pixel_keeps_its_label(view: int) -> None:
    image = np.arange(2 * 6 * 6).reshape(2, 6, 6)
    labels = (image[:1] * 7) % 3
    assert np.array_equal((dihedral(image, view)[:1] * 7) % 3, dihedral(labels, view))


def test_the_eight_views_are_different_and_form_the_group_of_the_square() -> None:
    square = np.arange(9).reshape(3, 3)
    views = {dihedral(square, view).tobytes() for view in range(8)}
    assert len(views) == 8
    again = {dihedral(dihedral(square, a), b).tobytes() for a in range(8) for b in range(8)}
    assert again == views


def test_there_is_no_ninth_view() -> None:
    with pytest.raises(ValueError, match="0 to 7, got 8"):
        dihedral(np.zeros((2, 2)), 8)


def test_light_of_no_strength_changes_nothing() -> None:
    image = np.random.default_rng(0).integers(0, 255, (2, 4, 4)).astype(np.uint8)
    lit = light(image, MEAN, STD, 0.0, np.random.default_rng(1))
    assert lit.dtype == np.float32
    np.testing.assert_allclose(lit, image, atol=1e-4)


@given(st.integers(0, 100))
def test_light_is_a_rising_straight_line_in_each_band(seed: int) -> None:
    ramp = np.tile(np.arange(256, dtype=np.uint8)[None, None], (2, 1, 1))
    lit = light(ramp, MEAN, STD, 0.3, np.random.default_rng(seed))
    steps = np.diff(lit, axis=2)
    assert (steps > 0.5).all() and np.ptp(steps, axis=2).max() < 1e-3
    # The mean itself moves by at most a strength and its third, in deviations.
    moved = np.abs([lit[0, 0, 100] - 100, lit[1, 0, 50] - 50]) / STD
    assert (moved <= 0.3 * 4 / 3 + 1e-5).all()
