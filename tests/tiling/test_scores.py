"""Probabilities as bytes."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from orthotrace.tiling.scores import LEVELS, NODATA, from_bytes, threshold_byte, to_bytes

PROBABILITY = st.floats(0, 1, width=32)


@given(st.lists(PROBABILITY, min_size=1))
def test_the_round_trip_is_within_half_a_level(probabilities: list[float]) -> None:
    told = np.array(probabilities, np.float32)
    assert np.abs(from_bytes(to_bytes(told)) - told).max() <= 0.5 / LEVELS + 1e-6


def test_every_byte_is_kept() -> None:
    stored = np.arange(256, dtype=np.uint8)
    assert np.array_equal(to_bytes(from_bytes(stored)), stored)
    assert np.isnan(from_bytes(stored)[NODATA])
    assert from_bytes(stored).dtype == np.float32


@given(PROBABILITY)
def test_the_threshold_is_the_smallest_byte_that_means_as_much(probability: float) -> None:
    byte = threshold_byte(probability)
    assert byte / LEVELS >= probability - 1e-8
    assert byte == 0 or (byte - 1) / LEVELS < probability
    assert byte < NODATA
