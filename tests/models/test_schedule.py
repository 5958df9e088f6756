"""Minutes become steps once; the rate rises, falls, and does not know the steps while it rises."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from orthotrace.models.schedule import budget_of_steps, learning_rate, steps_for


@given(st.integers(1, 50), st.integers(0, 500))
def test_the_rate_rises_to_its_highest_and_falls_to_almost_nothing(warmup: int, more: int) -> None:
    steps = warmup + more
    rates = [learning_rate(step, steps, warmup, 2.0) for step in range(steps)]
    assert rates[:warmup] == sorted(rates[:warmup]) and rates[warmup - 1] == 2.0
    assert rates[warmup:] == sorted(rates[warmup:], reverse=True)
    assert all(0 < rate <= 2 for rate in rates)
    if more > 100:
        assert rates[-1] < 0.05


@given(st.integers(1, 30), st.integers(1, 1000), st.integers(1, 1000))
def test_the_rise_is_the_same_for_every_length(warmup: int, one: int, other: int) -> None:
    for step in range(warmup):
        assert learning_rate(step, one, warmup, 1.0) == learning_rate(step, other, warmup, 1.0)


@given(st.integers(1, 500), st.integers(1, 9), st.integers(1, 50))
def test_figures_end_with_the_last_step_and_wait_for_the_rise(
    steps: int, evaluations: int, warmup: int
) -> None:
    budget = budget_of_steps(steps, evaluations, warmup)
    assert budget.steps == budget.figures[-1] == steps
    assert len(budget.figures) <= evaluations
    assert all(mark > warmup for mark in budget.figures[:-1])


def test_steps_fill_the_time_that_is_left() -> None:
    assert steps_for(60, [2.0, 2.0, 2.0], done=20) == 50
    assert steps_for(-5, [2.0], done=7) == 7


def test_one_slow_step_is_not_believed() -> None:
    assert steps_for(100, [1.0] * 9 + [50.0], done=0) == int(100 / 1.2)


def test_steps_that_truly_vary_count_by_their_mean() -> None:
    assert steps_for(100, [1.0, 2.0, 3.0, 2.0], done=0) == pytest.approx(50)
