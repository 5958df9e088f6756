"""What a run in virtual time leaves behind."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..effects import Vector


@dataclass(frozen=True, slots=True)
class Swap:
    """One whole exchange."""

    time: float
    """Seconds from the start, when both sides had the other's model."""

    asked: int
    answered: int
    versions: tuple[int, int]
    """How often each of the two models had been written when it was sent."""

    written: tuple[int, int]
    """How often each had been written when the other's was mixed in."""


@dataclass(frozen=True, slots=True)
class Booking:
    """What moved the sum of the living learners' models beside their own gradients."""

    time: float
    rank: int
    why: str
    moved: Vector
    """What was added to the sum."""


@dataclass(frozen=True, slots=True)
class Glance:
    """One look at all living learners."""

    time: float
    consensus: float
    """Mean squared distance of a model from the mean model."""

    measured: float
    """What the scenario's `measure` says of the mean model; NaN if it has none."""


@dataclass(frozen=True, slots=True)
class Account:
    """What became of one learner."""

    vector: Vector
    """Its model at the end, or when it died."""

    alive: bool
    ended: str
    """One sentence on why it ended before its work was done; empty if it did not."""

    ended_at: float
    """Seconds from the start, when its trainer ended or it died; NaN if it has no trainer."""

    steps: int
    exchanges: int
    halves: int
    """Exchanges of which this side was applied and the other was not."""

    refused: int
    """Gradients and messages of others that were not finite, and so were not applied."""

    staleness: Mapping[int, int]
    """Gradients by how many mixes they were late."""

    partners: Mapping[int, int]
    """Whole exchanges by the other's rank."""


@dataclass(frozen=True, slots=True)
class Record:
    """A run in virtual time, the same to the bit for the same scenario."""

    seconds: float
    """When the last trainer ended."""

    learners: tuple[Account, ...]
    swaps: tuple[Swap, ...]
    booked: tuple[Booking, ...]
    glances: tuple[Glance, ...]

    @property
    def steps(self) -> int:
        """Steps of all learners."""
        return sum(learner.steps for learner in self.learners)

    def mean(self) -> Vector:
        """The mean of the living learners' models, shape (parameters,), float64."""
        living = np.stack([a.vector for a in self.learners if a.alive], dtype=np.float64)
        mean: Vector = living.mean(axis=0)
        return mean

    def consensus(self) -> float:
        """Mean squared distance of the living learners' models from their mean."""
        living = np.stack([a.vector for a in self.learners if a.alive], dtype=np.float64)
        return float(np.mean(np.sum((living - living.mean(axis=0)) ** 2, axis=1)))
