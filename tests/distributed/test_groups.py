"""A parameter server, groups in two tiers, and a population, each by what it promises."""

from typing import Any

import numpy as np
import pytest
from orthotrace.distributed.errors import DistributedError
from orthotrace.distributed.replica import Strategy
from orthotrace.distributed.strategies.groups import AllReduceSGD, Hybrid, SuperLearners
from orthotrace.distributed.strategies.pairs import PairAveraging
from orthotrace.distributed.strategies.population import Population
from orthotrace.distributed.strategies.server import SoftSync, batch_for
from orthotrace.distributed.virtual.costs import Steps, Wire
from orthotrace.distributed.virtual.record import Record
from orthotrace.distributed.virtual.scenario import Scenario
from orthotrace.distributed.virtual.world import simulate

RANDOM = np.random.default_rng(0)
H, C = RANDOM.uniform(0.2, 1.8, (8, 1)), RANDOM.normal(size=(8, 4))
OPTIMUM = (H * C).sum(axis=0) / H.sum()
ALL = tuple(tuple(j for j in range(8) if j != i) for i in range(8))
FOUR = tuple(tuple(j for j in range(4) if j != i) for i in range(4))


def gradient(x: Any, rank: int, *_: Any) -> Any:
    return H[rank % 8] * (x - C[rank % 8])


def run(strategy: Strategy, size: int = 8, **changed: Any) -> Record:
    given: dict[str, Any] = {
        "gradient": gradient,
        "rate": 0.02,
        "compute": Steps(1.0, jitter=0.3),
        "link": Wire(0.05),
        "steps": 300,
    } | changed
    return simulate(Scenario(strategy=strategy, starts=[np.zeros(4)] * size, **given))


# ---- the server


@pytest.mark.parametrize("n", [1, 5, 30])
def test_staleness_is_about_n_and_at_most_twice_n(n: int) -> None:
    record = run(SoftSync(31, n), size=31, steps=40, rate=0.0)
    told = record.learners[0].staleness
    counts = np.array(list(told.values()))
    assert min(told) >= 0 and max(told) <= 2 * n
    assert np.average(list(told), weights=counts) == pytest.approx(n, rel=0.25)


def test_a_late_gradient_counts_less_by_its_staleness() -> None:
    """One that is tau versions late counts 1 / tau."""
    steps = {
        modulated: run(
            SoftSync(31, 30, modulated), size=31, steps=10, gradient=lambda x, *_: np.ones_like(x)
        ).learners[0]
        for modulated in (True, False)
    }
    counts = steps[True].staleness
    whole = sum(counts.values())
    assert np.allclose(steps[False].vector, -0.02 * whole)
    assert np.allclose(steps[True].vector, -0.02 * sum(k / max(1, t) for t, k in counts.items()))


def test_many_late_gradients_need_the_smaller_rate() -> None:
    errors = [
        np.abs(
            run(
                SoftSync(31, 30, modulated),
                size=31,
                steps=40,
                rate=0.3,
                gradient=lambda x, *_: x - 1,
            )
            .learners[0]
            .vector
            - 1
        ).max()
        for modulated in (True, False)
    ]
    assert errors[0] < 0.3 and not errors[1] < 3


def test_one_server_and_one_learner_are_plain_sgd() -> None:
    record = run(SoftSync(2, 1), size=2, steps=20)
    x = np.zeros(4)
    for _ in range(20):
        x -= 0.02 * gradient(x, 1)
    assert np.array_equal(record.learners[0].vector, x)


def test_batch_times_learners_is_kept() -> None:
    assert [batch_for(k, single=128) for k in (1, 4, 30, 500)] == [128, 32, 4, 1]


def test_softsync_of_more_than_there_are_is_refused() -> None:
    with pytest.raises(DistributedError, match="9-softsync was asked for with 3 learners"):
        SoftSync(4, 9)


# ---- two tiers

GROUPS = ((0, 1), (2, 3), (4, 5), (6, 7))


def test_super_learners_reach_the_optimum_of_the_average() -> None:
    record = run(SuperLearners(GROUPS, PairAveraging(FOUR)), steps=500, rate=0.01)
    leaders = np.mean([record.learners[g[0]].vector for g in GROUPS], axis=0)
    assert np.linalg.norm(leaders - OPTIMUM) < 0.045
    assert {rank for s in record.swaps for rank in (s.asked, s.answered)} == {0, 2, 4, 6}


def test_one_super_learner_is_all_reduce() -> None:
    one = SuperLearners((tuple(range(8)),), PairAveraging(((),)))
    sync = run(AllReduceSGD(8), steps=30)
    assert np.allclose(run(one, steps=30).learners[0].vector, sync.learners[0].vector, rtol=1e-12)


@pytest.mark.parametrize("strategy", [AllReduceSGD(8), SuperLearners(GROUPS, PairAveraging(FOUR))])
def test_a_queue_that_runs_dry_in_the_middle_of_a_round_is_worked_off(strategy: Strategy) -> None:
    seen = []
    record = run(strategy, steps=None, queue=83, gradient=lambda x, r, i, _: seen.append(i) or x)
    assert sorted(seen) == list(range(83)) and all(not a.ended for a in record.learners)


def test_who_has_no_work_does_not_thin_the_mean() -> None:
    record = run(AllReduceSGD(8), steps=None, queue=3, gradient=lambda x, *_: np.ones(4), rate=1.0)
    assert all(np.array_equal(a.vector, -np.ones(4)) for a in record.learners)


@pytest.mark.parametrize(("slow", "straggling"), [({}, None), ({2: 20.0}, 5.0)])
def test_a_hybrid_is_all_reduce_and_then_pairs(slow: Any, straggling: float | None) -> None:
    strategy = Hybrid(PairAveraging(ALL), until=None if slow else 20, straggling=straggling)
    record = run(strategy, steps=60, compute=Steps(1.0, slow, jitter=0.3))
    fast = record.learners[0]
    switched = 20 if not slow else 1
    assert fast.staleness[0] >= switched
    began = min(s.time for s in record.swaps)
    assert began > (20 if not slow else 13)  # one slow step was waited for, and no more
    assert fast.ended_at < began + 60 * 1.4
    assert sum(a.exchanges for a in record.learners) > 8 * (60 - switched)


def test_a_hybrid_is_bitwise_all_reduce_until_it_switches() -> None:
    short = run(AllReduceSGD(8), steps=20)
    same = run(Hybrid(PairAveraging(ALL), until=20), steps=20)
    assert np.allclose(short.learners[0].vector, same.learners[0].vector, rtol=1e-12)


# ---- a population


def rugged(x: Any) -> float:
    return float(np.sum(x**2 + 3 * np.sin(3 * x) ** 2) + 1)


def slope(x: Any, rank: int, item: int, random: np.random.Generator) -> Any:
    return 2 * x + 9 * np.sin(6 * x) + 3 * random.normal(size=x.size)


def test_the_best_of_a_population_never_gets_worse() -> None:
    best = []
    for generations in range(6):
        record = run(
            Population(6, generations, elites=2, noise=0.3),
            size=6,
            steps=10**6,
            gradient=lambda x, *told: slope(x + 2, *told),
            evaluate=lambda x: rugged(x + 2),
            rate=0.05,
        )
        best.append(min(rugged(a.vector + 2) for a in record.learners))
    assert all(b <= a for a, b in zip(best, best[1:], strict=False))
    assert best[-1] < best[0] - 1


def test_a_stretch_that_made_it_worse_is_taken_back() -> None:
    record = run(
        Population(3, 2, elites=3, noise=0.0),
        size=3,
        steps=10**6,
        gradient=lambda x, *_: -np.ones(4),
        evaluate=lambda x: float(np.sum(x**2)),
    )
    assert all(np.array_equal(a.vector, np.zeros(4)) for a in record.learners)


def test_more_elites_than_learners_are_refused() -> None:
    with pytest.raises(DistributedError, match="9 elites"):
        Population(4, 1, elites=9)
