"""Averaging by pairs: the optimum it reaches, what stays constant, and how fast it mixes."""

from typing import Any

import numpy as np
import pytest
from orthotrace.distributed.errors import DistributedError
from orthotrace.distributed.replica import Replica
from orthotrace.distributed.strategies.pairs import PairAveraging
from orthotrace.distributed.virtual.costs import Steps, Wire
from orthotrace.distributed.virtual.record import Record
from orthotrace.distributed.virtual.scenario import Scenario
from orthotrace.distributed.virtual.world import simulate

RATE = 0.01


def complete(size: int) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(j for j in range(size) if j != i) for i in range(size))


def bipartite(size: int) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(j for j in range(size) if (j - i) % 2) for i in range(size))


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
            link=Wire(0.3, slow={0: 3.0, 1: 3.0}),
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
    assert error(BOTH_ROLES) > 0.2


def test_one_learner_is_plain_sgd_to_the_bit() -> None:
    start = np.random.default_rng(3).normal(size=9).astype(np.float32)
    record = quiet(PairAveraging(((),)), [start], steps=30, gradient=lambda x, *_: np.sin(x))
    x = start.copy()
    for _ in range(30):
        x -= RATE * np.sin(x)
    assert np.array_equal(record.learners[0].vector, x)
    assert record.learners[0].staleness == {0: 30}


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
