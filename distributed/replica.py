"""One learner's model as its trainer and its mixer share it, and what a strategy is."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from .effects import Program, Vector


class Replica:
    """The mixing copy of one learner's model. Not for threads: there, a lock goes around it.

    `x` is written in place by `apply` and `mix`. Both add an increment, never overwrite, so they
    commute: a gradient that lands while an exchange is under way is not halved by it.
    """

    __slots__ = (
        "_increment",
        "_seen",
        "mixes",
        "rank",
        "rate",
        "refused",
        "staleness",
        "steps",
        "x",
    )

    def __init__(self, rank: int, start: Vector, rate: float) -> None:
        if start.ndim != 1 or start.dtype.kind != "f":
            raise ValueError(f"a model is one vector of floats, not {start.dtype} {start.shape}")
        self.rank = rank
        self.x: Vector = start.copy()
        self.rate = rate
        """Learning rate: what a gradient is multiplied with."""

        self.steps = 0
        self.mixes = 0
        self.refused = 0
        """Gradients that were not finite, and so were not applied."""

        self.staleness: dict[int, int] = {}
        """How many gradients were applied so many mixes after their model was read."""

        self._seen = 0
        self._increment = np.empty_like(self.x)

    @property
    def version(self) -> int:
        """How often `x` was written."""
        return self.steps + self.mixes

    def read(self) -> Vector:
        """A copy of the model to compute a gradient at."""
        self._seen = self.mixes
        return self.x.copy()

    def apply(self, gradient: Vector) -> None:
        """Descend, and count how many mixes the gradient is late."""
        stale = self.mixes - self._seen
        self.staleness[stale] = self.staleness.get(stale, 0) + 1
        self.descend(gradient)

    def descend(self, gradient: Vector) -> None:
        """x -= rate * gradient. One that is not finite is counted and left out."""
        self.steps += 1
        if finite(gradient):
            self.x -= self.rate * gradient
        else:
            self.refused += 1

    def snapshot(self) -> Vector:
        """A copy of the model to send."""
        return self.x.copy()

    def mix(self, mine: Vector, theirs: Vector) -> None:
        """x += (theirs - mine) / 2, where `mine` is this learner's own message as it was sent.

        The two increments of a pair are the same but for their sign, bit for bit, so the sum of
        the two models stays (Lian et al. 2018, in the form that needs no lock during transfer).
        """
        increment = self._increment
        np.subtract(theirs, mine, out=increment)
        increment *= 0.5
        self.x += increment
        self.mixes += 1

    def replace(self, x: Vector) -> None:
        """Take `x`, the result of a round of mixing, for the model, from now on its own."""
        self.x = x
        self.mixes += 1


def finite(vector: Vector) -> bool:
    """Whether no element is infinite or NaN."""
    return bool(np.isfinite(vector).all())


@dataclass(frozen=True, slots=True)
class Programs:
    """What one learner runs."""

    trainer: Program | None
    """Ends when there is no more work; a server that only serves has none."""

    others: tuple[Program, ...] = ()
    """Run beside it, until every trainer has ended."""


class Strategy(Protocol):
    """An algorithm: what each learner runs."""

    def programs(self, own: Replica) -> Programs:
        """The programs of the learner `own.rank`, from where its model stands."""
