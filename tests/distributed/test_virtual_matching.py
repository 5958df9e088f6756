"""Who averages with whom in virtual time, and how fast that mixes."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from orthotrace.distributed.effects import Exchange, Match, Program, Sleep
from orthotrace.distributed.randomness import generator
from orthotrace.distributed.replica import Programs, Replica
from orthotrace.distributed.strategies.pairs import PairAveraging, passive, trainer
from orthotrace.distributed.virtual.costs import Steps, Wire
from orthotrace.distributed.virtual.matching import RandomThenFree, Standing
from orthotrace.distributed.virtual.record import Record
from orthotrace.distributed.virtual.scenario import Scenario
from orthotrace.distributed.virtual.world import simulate


def complete(size: int) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(j for j in range(size) if j != i) for i in range(size))


def bipartite(size: int) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(j for j in range(size) if (j - i) % 2) for i in range(size))


def circle(size: int) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(sorted({(i - 1) % size, (i + 1) % size})) for i in range(size))


def quiet(strategy: Any, starts: Any, **changed: Any) -> Record:
    given: dict[str, Any] = {
        "gradient": lambda x, *_: x * 0,
        "rate": 0.01,
        "compute": Steps(1.0, jitter=0.3),
        "link": Wire(0.1),
    } | changed
    return simulate(Scenario(strategy=strategy, starts=starts, **given))


@dataclass(frozen=True)
class AtRandomTimes:
    """Each learner asks a uniform neighbour at the clicks of its own Poisson clock."""

    neighbours: tuple[tuple[int, ...], ...]

    def programs(self, own: Replica) -> Programs:
        return Programs(trainer(own), (self.ask(own), passive(own)))

    def ask(self, own: Replica) -> Program:
        random = generator(9, own.rank, "clicks")
        while True:
            yield Sleep(random.exponential())
            peer = yield Match(self.neighbours[own.rank])
            mine = own.snapshot()
            theirs = yield Exchange(peer, mine)
            own.mix(mine, theirs)


def expected(neighbours: Any, start: Any, exchanges: int) -> float:
    """Squared consensus distance after uniform pair events, by the second moments."""
    size = len(neighbours)
    edges = [(i, j, 1 / size / len(peers)) for i, peers in enumerate(neighbours) for j in peers]
    centred = start - start.mean(axis=0)
    M = centred @ centred.T
    for _ in range(exchanges):
        after = np.zeros_like(M)
        for i, j, chance in edges:
            W = np.eye(size)
            W[np.ix_((i, j), (i, j))] = 0.5
            after += chance * W @ M @ W
        M = after
    return float(np.trace(M))


def replayed(record: Record, start: Any, exchanges: int) -> float:
    """The same in the mean over stretches of the run's own pairs."""
    left = []
    for first in range(0, len(record.swaps) - exchanges, exchanges):
        x = start - start.mean(axis=0)
        for swap in record.swaps[first : first + exchanges]:
            pair = [swap.asked, swap.answered]
            x[pair] = x[pair].mean(axis=0)
        left.append(np.sum(x**2))
    return float(np.mean(left))


def compared(record: Record, neighbours: Any, exchanges: int) -> float:
    """Measured over computed rate at which the squared consensus distance falls."""
    start = np.random.default_rng(2).normal(size=(len(neighbours), 50))
    whole = np.sum((start - start.mean(axis=0)) ** 2)
    rates = (replayed(record, start, exchanges), expected(neighbours, start, exchanges))
    return float(np.log(rates[0] / whole) / np.log(rates[1] / whole))


@pytest.mark.parametrize(("graph", "exchanges"), [(complete, 16), (circle, 32), (bipartite, 16)])
def test_uniform_matching_mixes_at_the_computed_rate(graph: Any, exchanges: int) -> None:
    neighbours = graph(8)
    record = quiet(
        AtRandomTimes(neighbours), list(np.eye(8)), seconds=600.0, link=Wire(), compute=Steps(600.0)
    )
    assert len(record.swaps) > 4000
    assert compared(record, neighbours, exchanges) == pytest.approx(1, abs=0.05)


def test_the_default_matcher_mixes_nearly_at_the_uniform_rate() -> None:
    neighbours = bipartite(8)
    strategy = PairAveraging(neighbours, passive=frozenset(range(0, 8, 2)))
    record = quiet(
        strategy, list(np.eye(8)), steps=600, link=Wire(0.2), compute=Steps(1.0, jitter=0.3)
    )
    assert compared(record, neighbours, 16) > 0.8


class FirstComeFirstPaired:
    """The known bad policy: whoever is free is paired with whoever has waited longest."""

    def __init__(self, size: int, seed: int) -> None:
        self.asking: dict[int, tuple[int, ...]] = {}

    def ask(self, rank: int, among: tuple[int, ...], now: Standing) -> int | None:
        self.asking[rank] = among
        return next((peer for peer in among if now.free(peer)), None)

    def tire(self, rank: int, now: Standing) -> int | None:
        return None

    def serve(self, rank: int, now: Standing) -> int | None:
        return next((s for s in self.asking if rank in self.asking[s] and now.idle(s)), None)

    def done(self, rank: int) -> None:
        self.asking.pop(rank, None)

    def met(self, asked: int, answered: int) -> None:
        pass


@pytest.mark.parametrize(
    ("policy", "locked"), [(RandomThenFree, False), (FirstComeFirstPaired, True)]
)
def test_pairing_in_the_order_of_coming_locks_two_in_and_the_default_does_not(
    policy: Any, locked: bool
) -> None:
    strategy = PairAveraging(bipartite(8), frozenset(range(0, 8, 2)), per_step=None)
    record = quiet(
        strategy, list(np.eye(8)), seconds=30.0, link=Wire(0.1), compute=Steps(50.0), matcher=policy
    )
    repeats = [max(a.partners.values()) / a.exchanges for a in record.learners]
    assert (min(repeats) > 0.9 and record.consensus() > 0.01) if locked else max(repeats) < 0.45


def test_one_slow_link_does_not_take_everybodys_time() -> None:
    strategy = PairAveraging(bipartite(8), frozenset(range(0, 8, 2)), per_step=None)
    even, uneven = (
        quiet(
            strategy, list(np.eye(8)), seconds=60.0, link=Wire(0.3, slow=slow), compute=Steps(99.0)
        )
        for slow in ({}, {2: 100.0})
    )
    others = [rank for rank in range(8) if rank != 2]  # of whom one is always kept by learner 2
    counts = [sum(run.learners[rank].exchanges for rank in others) for run in (even, uneven)]
    assert counts[1] > 0.6 * counts[0]
