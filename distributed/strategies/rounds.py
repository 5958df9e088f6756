"""Strategies that mix models in rounds: every learner waits for its neighbours, or for all.

They are the fastest where machines are equal, and end when one is lost.
"""

from dataclasses import dataclass
from itertools import count
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..effects import AllReduce, Both, Compute, Program, Receive, Send, Vector
from ..errors import DistributedError
from ..replica import Programs, Replica


class Mixing(Protocol):
    """Who averages with whom in each round."""

    def weights(self, round: int) -> NDArray[np.float64]:
        """Shape (learners, learners): row i has what i gives to its own model and to others'.

        Rows and columns sum to 1.
        """


@dataclass(frozen=True, slots=True)
class DecentralisedSGD:
    """D-PSGD (Lian et al. 2017): average with the neighbours of the round while computing.

    The gradient is taken at the model *before* the averaging: X <- W X - rate * G. With weights
    that change by round it is the randomised ring (Zhang et al. 2020) or a one-peer graph.
    """

    mixing: Mixing

    def programs(self, own: Replica) -> Programs:
        """A trainer that sends first, computes meanwhile, and then mixes and descends."""
        return Programs(_decentralised(own, self.mixing))


def _decentralised(own: Replica, mixing: Mixing) -> Program:
    for round in count():
        x, weights = own.x, mixing.weights(round)
        # Sent before the gradient is begun, so that the transfer costs nothing beside it. Nothing
        # writes to `x` meanwhile: `replace` puts a new vector in its place.
        yield from _offer(own.rank, x, weights, round)
        gradient = yield Compute(x)
        if gradient is None:
            return
        own.replace((yield from _gather(own.rank, x, weights, round)))
        own.descend(gradient)


def _offer(rank: int, x: Vector, weights: NDArray[np.float64], round: int) -> Program:
    """Send `x` to all who give it a weight."""
    for to in np.flatnonzero(weights[:, rank]).tolist():
        if to != rank:
            yield Send(to, x, round)


def _gather(rank: int, x: Vector, weights: NDArray[np.float64], round: int) -> Any:
    """The sum of weights[rank, j] x_j, added in the order of ranks."""
    total = np.zeros_like(x)
    for sender in np.flatnonzero(weights[rank]).tolist():
        theirs = x if sender == rank else (yield Receive(sender, round)).vector
        total += float(weights[rank, sender]) * theirs
    return total


@dataclass(frozen=True, slots=True)
class DelayByOne:
    """The mean of all current models is taken beside the gradient at the same local model.

    w <- mean(w) - rate * gradient(w) (Zhang et al. 2021): the own gradient is fresh, those of the
    others arrive one step later. For a curvature h, what the models have in common is stable while
    rate * h < 2, as in plain SGD; what sets them apart turns over as -rate * h, so it dies out only
    while rate * h < 1, and noise feeds it.
    """

    size: int
    """Learners, 1 or more."""

    def programs(self, own: Replica) -> Programs:
        """A trainer that does both at once."""
        return Programs(_delayed(own, tuple(range(self.size))))


def _delayed(own: Replica, group: tuple[int, ...]) -> Program:
    while True:
        x = own.read()
        gradient, mean = yield Both(Compute(x), AllReduce(x, group))
        if gradient is None:
            return
        own.replace(mean.copy())
        own.descend(gradient)


@dataclass(frozen=True, slots=True)
class Optimistic:
    """DPOSG (Liu et al. 2020): for games, such as a generator against its discriminator.

    The model is both players' parameters in one vector, and the gradient is the descent of the one
    and minus the ascent of the other. Both move at the same time, from a point foreseen with the
    last gradient: z = mix(x) - rate * last; x <- mix(x) - rate * gradient(z).
    """

    mixing: Mixing
    rounds: int = 1
    """Rounds of mixing in each step: more on a graph that mixes slowly."""

    def __post_init__(self) -> None:
        if self.rounds < 1:
            raise DistributedError(f"{self.rounds} rounds of mixing a step; wanted is 1 or more")

    def programs(self, own: Replica) -> Programs:
        """A trainer that mixes, foresees, computes and descends."""
        return Programs(_optimistic(own, self.mixing, self.rounds))


def _optimistic(own: Replica, mixing: Mixing, rounds: int) -> Program:
    last = np.zeros_like(own.x)
    tags = count()
    while True:
        # The step that finds no work left has mixed already, as everybody has: the mean stays.
        for _ in range(rounds):
            tag = next(tags)
            x, weights = own.x, mixing.weights(tag)
            yield from _offer(own.rank, x, weights, tag)
            own.replace((yield from _gather(own.rank, x, weights, tag)))
        gradient = yield Compute(own.x - own.rate * last)
        if gradient is None:
            return
        own.descend(gradient)
        last = gradient
