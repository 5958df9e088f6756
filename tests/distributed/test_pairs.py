"""Averaging by pairs: the optimum it reaches, what stays constant, and how fast it mixes."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from orthotrace.distributed.effects import Exchange, Match, Program, Sleep
from orthotrace.distributed.errors import DistributedError
from orthotrace.distributed.randomness import generator
from orthotrace.distributed.replica import Programs, Replica, finite
from orthotrace.distributed.strategies.pairs import PairAveraging, passive, trainer
from orthotrace.distributed.virtual.costs import Steps, Wire
from orthotrace.distributed.virtual.matching import RandomThenFree, Standing
from orthotrace.distributed.virtual.record import Record
from orthotrace.distributed.virtual.scenario import Scenario
from orthotrace.distributed.virtual.world import simulate

RATE = 0.01


def complete(size: int) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(j for j in range(size) if j != i) for i in range(size))


def bipartite(size: int) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(j for j in range(size) if (j - i) % 2) for i in range(size))


def circle(size: int) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(sorted({(i - 1) % size, (i + 1) % size})) for i in range(size))


def couples(size: int) -> tuple[tuple[int, ...], ...]:
    return tuple((i ^ 1,) for i in range(size))


def quadratics(size: int) -> tuple[Any, Any, Any]:
    """Curvatures and centres by learner, and the optimum of the average objective."""
    random = np.random.default_rng(0)
    h, c = random.uniform(0.2, 1.8, (size, 1)), random.normal(size=(size, 4))
    return h, c, (h * c).sum(axis=0) / h.sum()


def error(strategy: PairAveraging, size: int = 8) -> float:
    """Of the mean model, from the optimum of the average objective."""
    h, c, optimum = quadratics(size)
    record = simulate(
        Scenario(
            strategy=strategy,
            starts=[np.zeros(4)] * size,
            gradient=lambda x, rank, *_: h[rank] * (x - c[rank]),
            rate=RATE,
            compute=Steps(1.0, jitter=0.3),
            link=Wire(0.3),
            steps=400,
        )
    )
    return float(np.linalg.norm(record.mean() - optimum))


BOTH_ROLES = PairAveraging(complete(8))
TWO_PARTS = PairAveraging(bipartite(8), passive=frozenset(range(0, 8, 2)))


@pytest.mark.parametrize("strategy", [BOTH_ROLES, TWO_PARTS], ids=["both roles", "two parts"])
def test_the_mean_model_reaches_the_optimum_of_the_average(strategy: PairAveraging) -> None:
    assert error(strategy) < 0.045


@pytest.mark.parametrize("neighbours", [((),) * 8, couples(8)], ids=["alone", "couples"])
def test_without_mixing_or_in_couples_it_does_not(neighbours: Any) -> None:
    assert error(PairAveraging(neighbours)) > 0.1


def test_nor_where_the_average_is_written_over_what_came_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def overwrite(own: Replica, mine: Any, theirs: Any) -> None:
        own.x[:] = (mine + theirs) / 2
        own.mixes += 1

    monkeypatch.setattr(Replica, "mix", overwrite)
    assert error(BOTH_ROLES) > 0.06


def test_one_learner_is_plain_sgd_to_the_bit() -> None:
    start = np.random.default_rng(3).normal(size=9).astype(np.float32)
    record = quiet(PairAveraging(((),)), [start], steps=30, gradient=lambda x, *_: np.sin(x))
    x = start.copy()
    for _ in range(30):
        x -= RATE * np.sin(x)
    assert np.array_equal(record.learners[0].vector, x)
    assert record.learners[0].staleness == {0: 30}


def test_a_vector_too_large_to_square_is_finite_and_one_with_a_hole_is_not() -> None:
    large = np.full(3, 1e30, np.float32)
    assert finite(large) and not finite(np.array([1.0, np.nan])) and not finite(large * np.inf)


def quiet(strategy: Any, starts: Any, **changed: Any) -> Record:
    given: dict[str, Any] = {
        "gradient": lambda x, *_: x * 0,
        "rate": RATE,
        "compute": Steps(1.0, jitter=0.3),
        "link": Wire(0.1),
    } | changed
    return simulate(Scenario(strategy=strategy, starts=starts, **given))


def test_ten_thousand_exchanges_keep_the_sum() -> None:
    starts = list(np.random.default_rng(1).normal(1, 1, (16, 8)).astype(np.float32))
    record = quiet(
        PairAveraging(complete(16), per_step=None), starts, seconds=240.0, compute=Steps(240.0)
    )
    assert len(record.swaps) > 10_000
    assert np.allclose(record.mean(), np.mean(starts, axis=0, dtype=float), rtol=1e-6, atol=0)
    assert record.consensus() < 1e-12


def test_gradients_that_land_during_an_exchange_are_kept_whole() -> None:
    """Each learner's gradients are ones: the sum moves by exactly their number."""
    starts = list(np.zeros((6, 2)))
    record = quiet(
        PairAveraging(complete(6)),
        starts,
        steps=40,
        rate=1.0,
        link=Wire(0.9),
        gradient=lambda x, *_: np.ones_like(x),
    )
    assert np.allclose(record.mean(), -40, rtol=1e-12)
    assert sum(k > 0 for a in record.learners for k in a.staleness) > 0


def test_the_same_seed_gives_the_same_bits_and_another_seed_others() -> None:
    def bits(seed: int) -> bytes:
        starts = list(np.random.default_rng(1).normal(size=(6, 5)).astype(np.float32))
        record = quiet(
            PairAveraging(complete(6)),
            starts,
            steps=15,
            seed=seed,
            gradient=lambda x, r, i, random: x + random.normal(size=5).astype(x.dtype),
        )
        return np.concatenate([a.vector for a in record.learners]).tobytes()

    assert bits(1) == bits(1) != bits(2)


def test_asking_is_limited_to_so_many_exchanges_a_step() -> None:
    starts = list(np.zeros((6, 2)))
    free, one, half = (
        len(
            quiet(
                PairAveraging(bipartite(6), frozenset({0, 2, 4}), k),
                starts,
                steps=10,
                link=Wire(0.05),
            ).swaps
        )
        for k in (None, 1.0, 0.5)
    )
    assert 3 * 9 <= one <= 3 * 11
    assert 3 * 4 <= half <= 3 * 6
    assert free > 10 * one


def test_the_log_tells_how_often_each_model_was_written_when_it_was_sent() -> None:
    record = quiet(PairAveraging(complete(4)), list(np.zeros((4, 2))), steps=20)
    for rank, told in enumerate(record.learners):
        mine = [s for s in record.swaps if rank in (s.asked, s.answered)]
        assert len(mine) == told.exchanges == sum(told.partners.values())
        side = [s.asked != rank for s in mine]
        sent = [s.versions[i] for s, i in zip(mine, side, strict=True)]
        written = [s.written[i] for s, i in zip(mine, side, strict=True)]
        assert all(a <= b for a, b in zip(sent, written, strict=True))
        assert all(b < a for a, b in zip(sent[1:], written, strict=False))  # one at a time


# ---- how fast it mixes


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
    others = [rank for rank in range(8) if rank != 2]
    assert min(uneven.learners[r].exchanges for r in others) > 0.5 * min(
        even.learners[r].exchanges for r in others
    )


# ---- stragglers


def straggled(factor: float, shared: bool) -> float:
    """Error of the mean model beside one learner that is so many times slow."""
    size = 8
    h, c, optimum = quadratics(size)

    def gradient(x: Any, rank: int, item: int, _: Any) -> Any:
        whose = item % size if shared else rank
        return h[whose] * (x - c[whose])

    record = simulate(
        Scenario(
            strategy=PairAveraging(complete(size)),
            starts=[np.zeros(4)] * size,
            gradient=gradient,
            rate=RATE,
            compute=Steps(1.0, {0: factor}, jitter=0.3),
            link=Wire(0.1),
            queue=4000 if shared else None,
            seconds=None if shared else 400.0,
        )
    )
    return float(np.linalg.norm(record.mean() - optimum))


def test_beside_a_straggler_own_shards_bias_the_answer_and_a_shared_queue_does_not() -> None:
    own = [straggled(factor, shared=False) for factor in (1.0, 10.0)]
    queue = [straggled(factor, shared=True) for factor in (1.0, 100.0)]
    assert own[1] > 4 * own[0] and own[1] > 0.15
    assert max(queue) < 0.05


@pytest.mark.parametrize("factor", [10.0, 100.0])
def test_a_straggler_costs_its_own_share_and_nothing_else(factor: float) -> None:
    strategy = PairAveraging(complete(8))
    record = quiet(strategy, list(np.zeros((8, 2))), seconds=100.0, compute=Steps(1.0, {3: factor}))
    assert [a.steps for a in record.learners] == [100] * 3 + [round(100 / factor)] + [100] * 4


# ---- bad input


def test_a_graph_that_is_not_in_two_parts_is_refused() -> None:
    with pytest.raises(DistributedError, match="0 and 2 are neighbours and both only answer"):
        PairAveraging(((1, 2), (0, 2), (0, 1)), passive=frozenset({0, 2}))


@pytest.mark.parametrize("neighbours", [((1,), ()), ((0,),), ((5,),)])
def test_a_neighbour_that_is_none_is_refused(neighbours: Any) -> None:
    with pytest.raises(ValueError, match="neighbour"):
        PairAveraging(neighbours)


def test_no_exchanges_at_all_is_refused() -> None:
    with pytest.raises(DistributedError, match="wanted is a number above 0"):
        PairAveraging(complete(2), per_step=0.0)
