"""Strategies in rounds, each against a plain loop over all learners at once."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from orthotrace.distributed.effects import AllReduce, Both, Compute, Program
from orthotrace.distributed.replica import Programs, Replica, Strategy
from orthotrace.distributed.strategies.groups import AllReduceSGD
from orthotrace.distributed.strategies.push import PushSum
from orthotrace.distributed.strategies.rounds import DecentralisedSGD, DelayByOne, Optimistic
from orthotrace.distributed.virtual.costs import Steps, Wire
from orthotrace.distributed.virtual.faults import Fault, Kind
from orthotrace.distributed.virtual.record import Record
from orthotrace.distributed.virtual.scenario import Scenario
from orthotrace.distributed.virtual.world import simulate

RATE = 0.1


@dataclass(frozen=True)
class Fixed:
    matrix: Any

    def weights(self, round: int) -> Any:
        return self.matrix


@dataclass(frozen=True)
class RandomRing:
    size: int

    def weights(self, round: int) -> Any:
        order = np.random.default_rng([5, round]).permutation(self.size)
        return ring(self.size)[np.ix_(order, order)]


def ring(size: int) -> Any:
    return sum(np.roll(np.eye(size), k, axis=1) for k in (-1, 0, 1)) / 3


def curved(size: int, seed: int = 0) -> Any:
    """Curvatures and centres of one quadratic for each learner."""
    random = np.random.default_rng(seed)
    return random.uniform(0.5, 1.5, (size, 1)), random.normal(size=(size, 3))


def run(
    strategy: Strategy,
    starts: Any,
    gradient: Any,
    steps: int,
    faults: tuple[Fault, ...] = (),
    rate: float = RATE,
    slow: dict[int, float] | None = None,
) -> Record:
    return simulate(
        Scenario(
            strategy=strategy,
            starts=list(starts),
            gradient=gradient,
            rate=rate,
            compute=Steps(1.0, slow or {}, jitter=0.3),
            link=Wire(0.1, 1e3),
            steps=steps,
            faults=faults,
        )
    )


@pytest.mark.parametrize("mixing", [Fixed(ring(5)), RandomRing(5)], ids=["ring", "random ring"])
def test_rounds_of_mixing_are_the_plain_loop_to_the_bit_and_the_matrix_form_nearly(
    mixing: Any,
) -> None:
    h, c = curved(5)
    starts = np.random.default_rng(1).normal(size=(5, 3))
    record = run(DecentralisedSGD(mixing), starts, lambda x, i, *_: h[i] * (x - c[i]), 12)
    models, product = [x.copy() for x in starts], starts.copy()
    for round in range(12):
        W = mixing.weights(round)
        gradients = [h[i] * (x - c[i]) for i, x in enumerate(models)]
        after = []
        for i in range(5):
            total = np.zeros(3)
            for j in np.flatnonzero(W[i]):
                total += float(W[i, j]) * models[j]
            after.append(total - RATE * gradients[i])
        models = after
        product = W @ product - RATE * h * (product - c)
    for i, learner in enumerate(record.learners):
        assert np.array_equal(learner.vector, models[i])
        assert learner.steps == 12
    assert np.abs([a.vector for a in record.learners] - product).max() < 1e-12


def test_summed_gradients_are_one_large_batch() -> None:
    random = np.random.default_rng(2)
    samples, targets = random.normal(size=(20, 4, 6, 3)), random.normal(size=(20, 4, 6))

    def gradient(x: Any, rank: int, item: int, _: Any) -> Any:
        return samples[item, rank].T @ (samples[item, rank] @ x - targets[item, rank]) / 6

    record = run(AllReduceSGD(4), np.zeros((4, 3)), gradient, 20)
    x = np.zeros(3)
    for batch, wanted in zip(samples.reshape(20, 24, 3), targets.reshape(20, 24), strict=True):
        x -= RATE * batch.T @ (batch @ x - wanted) / 24
    for learner in record.learners:
        assert np.abs(learner.vector - x).max() < 1e-12


@pytest.mark.parametrize(
    "strategy", [AllReduceSGD(1), DelayByOne(1), DecentralisedSGD(Fixed(np.eye(1)))]
)
def test_one_learner_is_plain_sgd_to_the_bit(strategy: Strategy) -> None:
    start = np.random.default_rng(3).normal(size=7).astype(np.float32)
    record = run(strategy, [start], lambda x, *_: np.sin(x), 25)
    x = start.copy()
    for _ in range(25):
        x -= RATE * np.sin(x)
    assert np.array_equal(record.learners[0].vector, x)


@pytest.mark.parametrize(("rate", "stable"), [(1.9, True), (2.1, False)])
def test_delay_by_one_is_stable_as_long_as_plain_sgd_is(rate: float, stable: bool) -> None:
    record = run(DelayByOne(4), np.ones((4, 3)), lambda x, *_: x, 60, rate=rate)
    size = np.abs(record.mean()).max()
    assert size < 0.02 if stable else size > 10


@pytest.mark.parametrize(("rate", "stable"), [(0.9, True), (1.1, False)])
def test_learners_that_differ_stay_apart_above_half_of_that(rate: float, stable: bool) -> None:
    starts = np.random.default_rng(4).normal(size=(4, 3))
    record = run(DelayByOne(4), starts, lambda x, *_: x, 60, rate=rate)
    assert record.consensus() < 1e-4 if stable else record.consensus() > 100


@dataclass(frozen=True)
class LateTwice:
    """The mistake: the mean and the gradient are both of the step before."""

    def programs(self, own: Replica) -> Programs:
        return Programs(self.train(own))

    def train(self, own: Replica) -> Program:
        before = own.snapshot()
        while True:
            gradient, mean = yield Both(Compute(before), AllReduce(own.snapshot(), (0, 1, 2, 3)))
            if gradient is None:
                return
            before = own.x
            own.replace(mean.copy())
            own.descend(gradient)


def test_with_the_gradient_late_too_it_is_stable_half_as_long() -> None:
    starts = np.ones((4, 3))
    late = [run(LateTwice(), starts, lambda x, *_: x, 120, rate=rate).mean() for rate in (0.9, 1.1)]
    assert np.abs(late[0]).max() < 0.05 and np.abs(late[1]).max() > 10


def test_delay_by_one_is_its_formula() -> None:
    h, c = curved(4)
    starts = np.random.default_rng(5).normal(size=(4, 3))
    record = run(DelayByOne(4), starts, lambda x, i, *_: h[i] * (x - c[i]), 15)
    X = starts
    for _ in range(15):
        X = X.mean(axis=0) - RATE * h * (X - c)
    assert np.abs([a.vector for a in record.learners] - X).max() < 1e-12


def test_delay_by_one_hides_the_sum_behind_the_gradient() -> None:
    quick = Scenario(
        strategy=DelayByOne(4),
        starts=[np.zeros(3)] * 4,
        gradient=lambda x, *_: x,
        rate=RATE,
        compute=Steps(1.0),
        link=Wire(0.15),
        steps=10,
    )
    assert simulate(quick).seconds == pytest.approx(10 + 0.9)  # the last sum has nothing beside it


def test_push_sum_agrees_on_the_exact_mean_of_a_directed_graph() -> None:
    size = 6
    sends = np.eye(size) + np.roll(np.eye(size), 1, axis=0)
    sends[3, 0] = sends[5, 0] = sends[2, 4] = (
        1  # some send to more than others: rows do not sum to 1
    )
    shares = sends / sends.sum(axis=0)
    assert np.ptp(shares.sum(axis=1)) > 0.5
    starts = np.random.default_rng(6).normal(size=(size, 3))
    record = run(PushSum(Fixed(shares)), starts, lambda x, *_: x * 0, 250)
    for learner in record.learners:
        assert np.abs(learner.vector - starts.mean(axis=0)).max() < 1e-12


def test_push_sum_reaches_the_optimum_of_the_average() -> None:
    h, c = curved(4)
    shares = (np.eye(4) + np.roll(np.eye(4), 1, axis=0)) / 2
    record = run(
        PushSum(Fixed(shares)), np.zeros((4, 3)), lambda x, i, *_: h[i] * (x - c[i]), 400, rate=0.02
    )
    assert np.abs(record.mean() - (h * c).sum(axis=0) / h.sum()).max() < 0.03


def bilinear(z: Any, *_: Any) -> Any:
    """min over x, max over y of x * y."""
    return np.array([z[1], -z[0]])


def test_optimistic_descent_ends_a_game_that_plain_descent_circles() -> None:
    starts = np.array([[1.0, 1.0], [1.2, 0.8], [0.8, 1.2], [1.0, 1.0]])
    optimistic = run(Optimistic(Fixed(ring(4)), rounds=2), starts, bilinear, 250, rate=0.3)
    plain = run(DecentralisedSGD(Fixed(ring(4))), starts, bilinear, 60, rate=0.3)
    assert np.linalg.norm(optimistic.mean()) < 1e-3
    assert np.linalg.norm(plain.mean()) > 1.4


def test_optimistic_descent_is_its_formula() -> None:
    starts = np.random.default_rng(8).normal(size=(4, 2))
    record = run(Optimistic(Fixed(ring(4)), rounds=2), starts, bilinear, 7)
    W = ring(4) @ ring(4)
    X, last = starts, np.zeros((4, 2))
    for _ in range(7):
        Z = W @ X - RATE * last
        last = np.stack([Z[:, 1], -Z[:, 0]], axis=1)
        X = W @ X - RATE * last
    assert np.abs([a.vector for a in record.learners] - W @ X).max() < 1e-12


BARRIERS = [AllReduceSGD(4), DecentralisedSGD(Fixed(ring(4))), DelayByOne(4)]


@pytest.mark.parametrize(
    "fault", [Fault(Kind.DIES, 2, 3.5), Fault(Kind.PAUSES, 2, 3.5, lasts=50.0)]
)
@pytest.mark.parametrize("strategy", BARRIERS, ids=lambda s: type(s).__name__)
def test_who_waits_for_all_ends_in_time_with_the_name_of_the_lost(
    strategy: Strategy, fault: Fault
) -> None:
    record = run(strategy, np.zeros((4, 3)), lambda x, *_: x + 1, 20, faults=(fault,))
    for rank in (0, 1, 3):
        told = record.learners[rank]
        assert told.ended.startswith("learner 2 was lost")
        assert 3.5 + 2.0 <= told.ended_at < 3.5 + 2.0 + 2.5  # the deadline, and the step under way


@pytest.mark.parametrize("strategy", BARRIERS, ids=lambda s: type(s).__name__)
def test_a_short_pause_only_takes_time(strategy: Strategy) -> None:
    fault = Fault(Kind.PAUSES, 2, 3.5, lasts=1.5)
    record, whole = (
        run(strategy, np.zeros((4, 3)), lambda x, *_: x + 1, 8, faults=faults)
        for faults in ((fault,), ())
    )
    assert np.array_equal(record.mean(), whole.mean())
    assert record.seconds > whole.seconds + 0.5


def test_a_barrier_goes_at_the_pace_of_the_slowest() -> None:
    even, uneven = (
        run(AllReduceSGD(4), np.zeros((4, 3)), lambda x, *_: x, 10, slow=slow).seconds
        for slow in ({}, {1: 10.0})
    )
    assert uneven > 5 * even
