"""How long a step and a transfer take, for runs in virtual time."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..randomness import generator


class ComputeCost(Protocol):
    """Seconds that the learner `rank` computes on its step number `step`, from 0."""

    def __call__(self, rank: int, step: int) -> float: ...


class LinkCost(Protocol):
    """Seconds that `size` bytes need from `sender` to `receiver`."""

    def __call__(self, sender: int, receiver: int, size: int) -> float: ...


@dataclass(frozen=True, slots=True)
class Steps:
    """Steps of the same length, but for slow learners and jitter."""

    seconds: float
    slow: Mapping[int, float] = field(default_factory=dict)
    """How many times longer a learner needs, by rank."""

    jitter: float = 0.0
    """Each step is drawn evenly from seconds * (1 - jitter) to seconds * (1 + jitter)."""

    seed: int = 0
    _drawn: NDArray[np.float64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if (
            not self.seconds > 0
            or not 0 <= self.jitter < 1
            or min(self.slow.values(), default=1) <= 0
        ):
            raise ValueError(
                f"steps need seconds above 0, jitter in [0, 1) and factors above 0, not {self}"
            )
        drawn = generator(self.seed, 0, "jitter").uniform(-1, 1, DRAWS)
        object.__setattr__(self, "_drawn", 1 + self.jitter * drawn)

    def __call__(self, rank: int, step: int) -> float:
        """See ComputeCost."""
        seconds = self.seconds * self.slow.get(rank, 1.0)
        # The two primes keep learners, and the laps of one learner, out of step.
        return seconds * float(self._drawn[(rank * 7919 + step * 104729) % DRAWS])


DRAWS = 8191
"""How many jitters are drawn once and used in turn: a generator for each step costs ten times."""


@dataclass(frozen=True, slots=True)
class Wire:
    """A latency and a rate, but for slow links."""

    latency: float = 0.0
    """Seconds before the first byte."""

    rate: float = float("inf")
    """Bytes per second in each direction."""

    slow: Mapping[int, float] = field(default_factory=dict)
    """How many times longer each transfer of a learner takes, by rank; the slower end counts."""

    def __post_init__(self) -> None:
        if not self.latency >= 0 or not self.rate > 0:
            raise ValueError(f"a wire needs latency of 0 or more and a rate above 0, not {self}")

    def __call__(self, sender: int, receiver: int, size: int) -> float:
        """See LinkCost."""
        slow = max(self.slow.get(sender, 1.0), self.slow.get(receiver, 1.0)) if self.slow else 1.0
        return (self.latency + size / self.rate) * slow


def ring_all_reduce(link: LinkCost, group: tuple[int, ...], size: int) -> float:
    """Seconds of an all-reduce of `size` bytes around a ring: 2 (n - 1) hops of size / n.

    Every hop waits for the slowest wire of the ring.
    """
    if len(group) == 1:
        return 0.0
    part = -(-size // len(group))
    pairs = zip(group, (*group[1:], group[0]), strict=True)
    return 2 * (len(group) - 1) * max(link(a, b, part) for a, b in pairs)
