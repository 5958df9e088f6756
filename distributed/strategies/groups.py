"""Strategies in two tiers: groups that sum their gradients, and pairs that average models."""

from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from ..effects import (
    AfterStep,
    AllReduce,
    Compute,
    LearnerLost,
    Now,
    Program,
    Receive,
    Send,
    Vector,
)
from ..errors import DistributedError
from ..replica import Programs, Replica
from .pairs import PairAveraging, active, passive, trainer


def all_reduced(gradient: Vector | None, like: Vector, group: tuple[int, ...]) -> Any:
    """The mean gradient of those of the group who have work; None if nobody has.

    A program to `yield from`. One without work takes part with a zero, so that a shared queue may
    run dry at some learners before it does at others. LearnerLost.
    """
    told = np.zeros(like.size + 1, like.dtype)
    if gradient is not None:
        told[:-1], told[-1] = gradient, 1
    mean = yield AllReduce(told, group)
    return mean[:-1] / mean[-1] if mean[-1] else None


@dataclass(frozen=True, slots=True)
class AllReduceSGD:
    """Synchronous SGD: one step with the mean of all gradients, the same everywhere.

    One step is the step of a single learner with a batch `size` times as large.
    """

    size: int
    """Learners, 1 or more."""

    def programs(self, own: Replica) -> Programs:
        """A trainer that averages its gradient with all others'."""
        return Programs(_synchronous(own, tuple(range(self.size))))


def _synchronous(own: Replica, group: tuple[int, ...]) -> Program:
    while True:
        gradient = yield Compute(own.read())
        mean = yield from all_reduced(gradient, own.x, group)
        if mean is None:
            return
        own.apply(mean)


@dataclass(frozen=True, slots=True)
class SuperLearners:
    """H-ADPSGD (Zhang et al. 2019): groups sum their gradients, their leaders average by pairs.

    A group whose member is lost ends; the others go on.
    """

    groups: tuple[tuple[int, ...], ...]
    """Ranks by group; the first of each leads. For a fair mean, groups are of one size."""

    between: PairAveraging
    """Who averages with whom: its ranks are the places in `groups`."""

    def __post_init__(self) -> None:
        ranks = sorted(rank for group in self.groups for rank in group)
        if ranks != list(range(len(ranks))) or not all(self.groups):
            raise ValueError(f"groups hold every rank once, and none is empty: {self.groups}")
        if len(self.between.neighbours) != len(self.groups):
            raise DistributedError(
                f"{len(self.groups)} groups were given a graph of {len(self.between.neighbours)}"
            )

    def programs(self, own: Replica) -> Programs:
        """A leader trains and averages; a member computes at the leader's model."""
        place = next(p for p, group in enumerate(self.groups) if own.rank in group)
        group = self.groups[place]
        if own.rank != group[0]:
            return Programs(_follow(own, group))
        others = tuple(self.groups[p][0] for p in self.between.neighbours[place])
        mixers: list[Program] = []
        if others and place not in self.between.passive:
            mixers.append(active(own, others, self.between.per_step))
        if others and (not self.between.passive or place in self.between.passive):
            mixers.append(passive(own))
        return Programs(_lead(own, group), tuple(mixers))


def _lead(own: Replica, group: tuple[int, ...]) -> Program:
    for round in count():
        x = own.read()
        for member in group[1:]:
            yield Send(member, x, round)
        gradient = yield Compute(x)
        mean = yield from all_reduced(gradient, x, group)
        if mean is None:
            return
        own.apply(mean)


def _follow(own: Replica, group: tuple[int, ...]) -> Program:
    for round in count():
        letter = yield Receive(group[0], round)
        own.replace(letter.vector)
        gradient = yield Compute(letter.vector)
        mean = yield from all_reduced(gradient, letter.vector, group)
        if mean is None:
            return
        own.steps += 1


@dataclass(frozen=True, slots=True)
class Hybrid:
    """Synchronous at first, then by pairs (Zhang et al. 2019): by schedule, or when it pays.

    While synchronous, every learner knows how long each other's step took, so all switch after the
    same step, from the same model. A learner that is lost is the slowest of all: the others switch.
    """

    pairs: PairAveraging
    until: int | None = None
    """Synchronous steps after which to switch; None: as many as `straggling` allows."""

    straggling: float | None = None
    """Switch when the slowest step takes more than so many times the median; None: never."""

    def __post_init__(self) -> None:
        if self.straggling is not None and not self.straggling > 1:
            raise DistributedError(f"straggling begins above 1, not at {self.straggling}")
        if self.until is not None and self.until < 0:
            raise DistributedError(f"a switch after {self.until} steps; wanted is 0 or more")

    def programs(self, own: Replica) -> Programs:
        """A trainer that switches, and the averaging, which waits for it."""
        switched: list[int] = []
        later = tuple(_later(own, switched, one) for one in self.pairs.programs(own).others)
        return Programs(self._train(own, switched), later)

    def _train(self, own: Replica, switched: list[int]) -> Program:
        group = tuple(range(len(self.pairs.neighbours)))
        try:
            yield from self._together(own, group)
        except LearnerLost:
            pass  # what averaging by pairs is for
        switched.append(own.steps)
        yield from trainer(own)

    def _together(self, own: Replica, group: tuple[int, ...]) -> Program:
        while self.until is None or own.steps < self.until:
            began = yield Now()
            gradient = yield Compute(own.read())
            took = np.zeros(len(group), own.x.dtype)
            if gradient is not None:
                took[own.rank] = (yield Now()) - began
            told = np.concatenate([np.zeros_like(own.x) if gradient is None else gradient, took])
            mean = yield AllReduce(told, group)
            times = mean[-len(group) :] * len(group)
            if not times.all():
                return  # the work is over, for one at least
            own.apply(mean[: -len(group)])
            if self.straggling is not None and times.max() > self.straggling * np.median(times):
                return


def _later(own: Replica, switched: list[int], program: Program) -> Program:
    """`program`, from the step on after which the trainer has switched."""
    while not switched:
        if not (yield AfterStep(own.steps + 1)):
            return
    yield from program
