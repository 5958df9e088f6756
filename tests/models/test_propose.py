"""Thresholds from positive and unlabelled pixels are those that the full truth would give."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from orthotrace.models.errors import ModelError
from orthotrace.models.propose import Tally, Thresholds, choose_thresholds
from orthotrace.tiling.scores import LEVELS, NODATA

SHAPE = (400, 400)


def made_up(seed: int) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Scores of a fair model, and the truth that it is judged by."""
    random = np.random.default_rng(seed)
    truth = random.random(SHAPE) < 0.1
    scores = np.where(truth, random.normal(170, 40, SHAPE), random.normal(60, 35, SHAPE))
    return scores.clip(0, LEVELS).astype(np.uint8), truth


def f_measure(found: NDArray[np.bool_], truth: NDArray[np.bool_]) -> float:
    return float(2 * (found & truth).sum() / (found.sum() + truth.sum()))


@given(st.integers(0, 50))
def test_the_threshold_is_near_the_best_that_the_truth_knows(seed: int) -> None:
    scores, truth = made_up(seed)
    hidden = truth & (np.random.default_rng(seed + 1).random(SHAPE) < 0.15)
    chosen = choose_thresholds(Tally.of(scores, hidden))
    assert chosen is not None
    best = max(f_measure(scores >= level, truth) for level in range(1, 255))
    assert f_measure(scores >= chosen.sure * LEVELS, truth) > best - 0.03
    assert chosen.unsure <= chosen.sure and 0.5 < chosen.recall < 1


def test_a_tally_is_the_sum_of_its_parts_and_leaves_nodata_out() -> None:
    scores, truth = made_up(0)
    scores[:50] = NODATA
    whole = Tally.of(scores, truth)
    parts = Tally.of(scores[:170], truth[:170]) + Tally.of(scores[170:], truth[170:])
    assert whole.to_dict() == parts.to_dict()
    assert whole.everywhere.sum() == 350 * 400
    assert Tally.from_dict(whole.to_dict()).to_dict() == whole.to_dict()


def test_nothing_hidden_is_no_threshold() -> None:
    scores, truth = made_up(0)
    assert choose_thresholds(Tally.of(scores, np.zeros_like(truth))) is None


def test_a_model_that_sees_nothing_adds_nothing_by_zero() -> None:
    scores = np.zeros(SHAPE, np.uint8)
    hidden = np.zeros(SHAPE, bool)
    hidden[:10] = True
    chosen = choose_thresholds(Tally.of(scores, hidden))
    assert chosen is not None and chosen.unsure > 0


def test_crossed_thresholds_are_refused() -> None:
    with pytest.raises(ModelError, match="unsure <= sure"):
        Thresholds(0.3, 0.5, 1.0)
