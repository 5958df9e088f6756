"""ESGD: a population of learners that train, breed and are selected (Cui et al. 2018)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..effects import AllReduce, Compute, Evaluate, Program, Receive, Send, Vector
from ..errors import DistributedError
from ..randomness import generator
from ..replica import Programs, Replica


@dataclass(frozen=True, slots=True)
class Population:
    """Evolutionary SGD: each learner is one individual; fitness is the loss on one fixed set.

    In a generation each individual trains with a rate drawn at random and takes a stretch back
    that made it worse; each learner breeds one child, the mean of some parents and noise; the best
    stay, and some others by chance. So the best loss never rises. All start from one ancestor:
    the mean of models that were never related means nothing.
    """

    size: int
    """Learners, 1 or more."""

    generations: int
    elites: int
    """The best so many of parents and children always stay, from 1 to `size`."""

    parents: int = 2
    """Whose mean a child is, from 1 to `size`."""

    stretches: int = 2
    """Stretches of training in a generation, each taken back if it made things worse."""

    steps: int = 10
    """Steps in a stretch."""

    noise: float = 0.01
    """Standard deviation of what is added to a child, in the first generation; / k in the k-th."""

    factors: tuple[float, ...] = (0.3, 1.0, 3.0)
    """What the learning rate is multiplied with, one drawn for each individual and generation."""

    seed: int = 0

    def __post_init__(self) -> None:
        if not (1 <= self.elites <= self.size and 1 <= self.parents <= self.size):
            raise DistributedError(
                f"{self.elites} elites and {self.parents} parents were asked for in a population "
                f"of {self.size}; wanted is 1 to {self.size} of each"
            )

    def programs(self, own: Replica) -> Programs:
        """All of it is one trainer."""
        return Programs(_live(own, self))


def _live(own: Replica, plan: Population) -> Program:
    # Drawn alike by everybody, so that nobody need be told who breeds and who stays.
    common = generator(plan.seed, 0, "selection")
    chance = generator(plan.seed, own.rank, "population")
    loss = yield Evaluate(own.x)
    for generation in range(1, plan.generations + 1):
        loss = yield from _train(own, plan, float(chance.choice(plan.factors)), loss)
        child = yield from _breed(own, plan, generation, common)
        child += plan.noise / generation * chance.standard_normal(child.size).astype(child.dtype)
        losses = yield from _told(own, plan, loss, (yield Evaluate(child)))
        homes = assigned(kept(losses, plan, common), plan.size)
        loss = float(losses[homes[own.rank]])
        own.replace((yield from _move(own, child, homes, 2 * generation + 1)))


def _train(own: Replica, plan: Population, factor: float, loss: float) -> Any:
    """Train by stretches; each that makes the loss worse is taken back. Returns the loss."""
    for _ in range(plan.stretches):
        before = own.snapshot()
        for _ in range(plan.steps):
            gradient = yield Compute(own.read())
            if gradient is not None:
                own.apply(factor * gradient)
        now = yield Evaluate(own.x)
        if now <= loss:
            loss = now
        else:  # worse, or NaN
            own.replace(before)
    return loss


def _breed(own: Replica, plan: Population, generation: int, common: np.random.Generator) -> Any:
    """The mean of this learner's parents, added by rank."""
    drawn = [common.choice(plan.size, plan.parents, replace=False) for _ in range(plan.size)]
    x = own.snapshot()
    for to, parents in enumerate(drawn):
        if to != own.rank and own.rank in parents:
            yield Send(to, x, 2 * generation)
    total = np.zeros_like(x)
    for parent in sorted(drawn[own.rank].tolist()):
        total += x if parent == own.rank else (yield Receive(parent, 2 * generation)).vector
    return total / plan.parents


def _told(own: Replica, plan: Population, loss: float, child: float) -> Any:
    """Everybody's loss and then everybody's child's, shape (2 size,); one that is NaN is last."""
    told = np.zeros(2 * plan.size)
    told[own.rank], told[plan.size + own.rank] = (
        value if np.isfinite(value) else WORST for value in (loss, child)
    )
    mean = yield AllReduce(told, tuple(range(plan.size)))
    return mean * plan.size


WORST = 1e300
"""The loss of what has none."""


def kept(
    losses: NDArray[np.float64], plan: Population, common: np.random.Generator
) -> NDArray[np.int64]:
    """Which of the 2 size individuals stay: the elites, and by chance as many as are missing."""
    order = np.argsort(losses, kind="stable")
    lucky = common.choice(order[plan.elites :], plan.size - plan.elites, replace=False)
    return np.concatenate([order[: plan.elites], lucky])


def assigned(kept: NDArray[np.int64], size: int) -> list[int]:
    """Which individual each learner has from now on; who can stay at home does.

    Individual i is at home at learner i % size.

    >>> assigned(np.array([3, 0, 1]), 3)
    [3, 1, 0]
    """
    homes: dict[int, int] = {}
    moving = []
    for individual in kept.tolist():
        if individual % size in homes:
            moving.append(individual)
        else:
            homes[individual % size] = individual
    return [homes[rank] if rank in homes else moving.pop(0) for rank in range(size)]


def _move(own: Replica, child: Vector, homes: list[int], tag: int) -> Any:
    """Send this learner's individuals to where they live from now on; the one that lives here."""
    size = len(homes)
    mine = {own.rank: own.snapshot(), size + own.rank: child}
    for to, individual in enumerate(homes):
        if to != own.rank and individual in mine:
            yield Send(to, mine[individual], tag)
    wanted = homes[own.rank]
    if wanted in mine:
        return mine[wanted]
    return (yield Receive(wanted % size, tag)).vector
