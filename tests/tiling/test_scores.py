"""Probabilities as bytes."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from orthotrace.tiling.scores import LEVELS, NODATA, threshold_byte, to_bytes

PROBABILITY = st.floats(0, 1, width=32)


@given(st.lists(PROBABILITY, min_size=1))
def test_the_round_trip_is_within_half_a_level(probabilities: list[float]) -> None:
    told = np.array(probabilities, np.float32)
    assert np.abs(to_bytes(told) / np.float32(LEVELS) - told).max() <= 0.5 / LEVELS + 1e-6


def test_every_byte_is_kept() -> None:
    stored = np.arange(256, dtype=np.uint8)
    told = np.where(stored == NODATA, np.float32(np.nan), stored / np.float32(LEVELS))
    assert np.array_equal(to_bytes(told), stored)


@given(PROBABILITY)
def test_the_threshold_is_the_smallest_byte_that_means_as_much(probability: float) -> None:
    byte = threshold_byte(probability)
    assert byte / LEVELS >= probability - 1e-8
    assert byte == 0 or (byte - 1) / LEVELS < probability
    assert byte < NODATA
