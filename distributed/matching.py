"""Who exchanges with whom next: a learner's own choice, its time an argument, no network in it.

A random partner is drawn, and waited for about as long as a transfer takes; then anybody will do
who is free. Waiting for ever would tie all to the slowest link. Taking the first two that are free
would be worse: learners of one speed come free in the same pairs again and again, and models that
only ever meet each other never agree with the rest.
"""

from collections.abc import Callable, Collection
from math import log, sqrt

import numpy as np

from .randomness import generator

DOUBT = 1e-9
"""Chance of a false alarm of `Partners.locked_in`, each time it is asked."""


class Matcher:
    """Whom one learner asks for an exchange: a target at random, after `patience` anybody free.

    Ask `choose` whenever the learner wants a partner, when a neighbour comes free, and at
    `until`; tell `met` of each exchange it had, those that it was asked for too. Everything it
    draws is of (seed, rank, "matching"), so equal questions have equal answers.
    """

    def __init__(self, rank: int, neighbours: Collection[int], seed: int, patience: float) -> None:
        """`neighbours` as of a topology; `patience` in seconds, about one transfer.

        Far less is as bad as none: who came free together would find only each other. ValueError
        if it is not above 0, or `rank` is among its neighbours.
        """
        if rank in neighbours:
            raise ValueError(f"learner {rank} is no neighbour of its own")
        if not patience > 0:
            raise ValueError(f"patience is more than 0 seconds, got {patience}")
        self._neighbours = tuple(sorted(set(neighbours)))
        self._rng = generator(seed, rank, "matching")
        self._patience = patience
        self._target: int | None = None
        self._since: float | None = None
        self._last: int | None = None

    @property
    def target(self) -> int | None:
        """Whom it would rather have now; None before the first `choose` of a new search."""
        return self._target

    @property
    def until(self) -> float | None:
        """When its patience with the target ends, in seconds; None while it looks for nobody."""
        return None if self._since is None else self._since + self._patience

    def choose(
        self, now: float, is_free: Callable[[int], bool], suspects: Collection[int] = ()
    ) -> int | None:
        """Whom to claim at `now`; None if there is nobody to claim yet.

        Until patience ends only the target is looked at, then neighbours in random order, the last
        partner after all others. A suspect is never chosen; a target that becomes one is drawn
        again, within the same patience. A choice stands until `met`: if the claim fails, ask again.
        """
        trusted = self._neighbours
        if suspects:
            trusted = tuple(other for other in trusted if other not in suspects)
        if not trusted:
            return None
        if self._since is None:
            self._since = now
        if self._target is None or self._target in suspects:
            self._target = trusted[int(self._rng.integers(len(trusted)))]
        if is_free(self._target):
            return self._target
        if now < self._since + self._patience:
            return None
        return self._anybody(trusted, is_free)

    def _anybody(self, trusted: tuple[int, ...], is_free: Callable[[int], bool]) -> int | None:
        order = [trusted[int(place)] for place in self._rng.permutation(len(trusted))]
        order.sort(key=lambda other: other == self._last)  # stable: only the last partner moves
        return next((other for other in order if is_free(other)), None)

    def met(self, partner: int) -> None:
        """An exchange with `partner` is over, or was given up: the next search begins anew."""
        self._last, self._target, self._since = partner, None, None


class Partners:
    """With whom one learner exchanged since the last `reset`, and whether two have locked in."""

    def __init__(self, size: int, neighbours: Collection[int]) -> None:
        """For one of `size` learners and its `neighbours` as of the topology."""
        self.neighbours = tuple(sorted(set(neighbours)))
        self.counts_N = np.zeros(size, np.int64)
        """Exchanges with each learner: a row of the partner matrix, to be read only."""
        self._last: int | None = None
        self.reset()

    def reset(self) -> None:
        """Begin to count anew; who was met last is still known."""
        self.counts_N[:] = 0
        self.repeats = 0
        self.chances = 0

    def met(self, partner: int) -> None:
        """Count an exchange; ValueError with a learner that is no neighbour."""
        if partner not in self.neighbours:
            raise ValueError(f"an exchange with {partner}, no neighbour ({self.neighbours})")
        self.counts_N[partner] += 1
        if self._last is not None:
            self.chances += 1
            self.repeats += partner == self._last
        self._last = partner

    @property
    def repeated(self) -> float:
        """Share of exchanges with the same partner as the one before, in [0, 1]."""
        return self.repeats / self.chances if self.chances else 0.0

    def locked_in(self) -> bool:
        """Whether so many exchanges repeat the one before that more than half of all is in vain.

        A uniform draw of d neighbours repeats with chance 1/d, and a repeat brings little that is
        new; at a chance of (1 + 1/d) / 2 half of what uniform draws bring is lost. True if such a
        chance or a smaller one would give the share that was seen with probability below `DOUBT`
        (the tail of a binomial by Hoeffding 1963). Never with one neighbour; with
        two it takes 166 repeats in a row, with 15 it takes 48.
        """
        if self.chances == 0:
            return False
        half_lost = (1 + 1 / len(self.neighbours)) / 2
        return self.repeated - half_lost > sqrt(-log(DOUBT) / (2 * self.chances))
