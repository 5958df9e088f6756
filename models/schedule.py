"""How long a training is and how fast it learns: minutes to steps, steps to learning rates."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median


@dataclass(frozen=True, slots=True)
class Budget:
    """A training's length, found once and then kept: the same steps are the same model."""

    steps: int
    figures: tuple[int, ...]
    """After which steps figures are made on held-back tiles; the last is `steps`."""


def learning_rate(step: int, steps: int, warmup: int, highest: float) -> float:
    """The rate of step 0 .. steps - 1: a straight rise over `warmup`, then half a cosine to 1 %.

    The rise does not depend on `steps`, so that they can be measured while it lasts.
    """
    if step < warmup:
        return highest * (step + 1) / warmup
    along = (step - warmup) / max(steps - warmup, 1)
    return highest * (0.01 + 0.99 * (1 + math.cos(math.pi * along)) / 2)


def budget_of_steps(steps: int, evaluations: int, warmup: int) -> Budget:
    """A budget of so many steps, its figures evenly spread but none before the rate is up.

    >>> budget_of_steps(10, 3, warmup=4)
    Budget(steps=10, figures=(7, 10))
    """
    marks = {round(steps * part / evaluations) for part in range(1, evaluations + 1)}
    return Budget(steps, tuple(sorted({mark for mark in marks if mark > warmup} | {steps})))


def steps_for(seconds_left: float, step_seconds: Sequence[float], done: int) -> int:
    """How many steps in all fit the time left, `done` of them behind us; at least those.

    `step_seconds` are those of the last steps. Their mean is what a long run sees; a single one
    that is far slower than the others (another program's start) is not believed.
    """
    usual = median(step_seconds)
    each = fmean(min(seconds, 3 * usual) for seconds in step_seconds)
    return done + max(0, int(seconds_left / each))
