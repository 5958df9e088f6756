"""What learners do when one of them dies, stands still, comes late or talks nonsense."""

from typing import Any

import numpy as np
import pytest
from orthotrace.distributed.errors import DistributedError
from orthotrace.distributed.strategies.groups import AllReduceSGD, Hybrid, SuperLearners
from orthotrace.distributed.strategies.pairs import PairAveraging
from orthotrace.distributed.strategies.server import SoftSync
from orthotrace.distributed.virtual.costs import Steps, Wire
from orthotrace.distributed.virtual.faults import Fault, Kind
from orthotrace.distributed.virtual.record import Record
from orthotrace.distributed.virtual.scenario import Scenario
from orthotrace.distributed.virtual.world import simulate

SIZE = 6
STARTS = list(np.random.default_rng(1).normal(size=(SIZE, 3)))
PARTS = tuple(tuple(j for j in range(SIZE) if (j - i) % 2) for i in range(SIZE))
ALL = tuple(tuple(j for j in range(SIZE) if j != i) for i in range(SIZE))
LASTING = {Kind.PAUSES, Kind.RETURNS}
DEADLY = {Kind.DIES, Kind.CLAIMED, Kind.SENDING, Kind.SENT}


def run(strategy: Any, *faults: Fault, **changed: Any) -> Record:
    given: dict[str, Any] = {
        "gradient": lambda x, *_: x * 0,
        "rate": 0.1,
        "compute": Steps(1.0, jitter=0.3),
        "link": Wire(0.4),
        "steps": 30,
    } | changed
    return simulate(Scenario(strategy=strategy, starts=STARTS, faults=faults, **given))


def fault(kind: Kind, rank: int, at: float = 8.0, lasts: float = 6.0) -> Fault:
    return Fault(kind, rank, at, lasts if kind in LASTING else 0.0)


@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize("rank", [0, 1], ids=["answers", "asks"])
@pytest.mark.parametrize("roles", ["two parts", "both roles"])
def test_survivors_go_on_and_the_sum_is_accounted_for(kind: Kind, rank: int, roles: str) -> None:
    two = PairAveraging(PARTS, passive=frozenset({0, 2, 4}))
    record = run(two if roles == "two parts" else PairAveraging(ALL), fault(kind, rank))
    others = [a for r, a in enumerate(record.learners) if r != rank]
    assert all(a.alive and a.steps == 30 and not a.ended for a in others)
    assert record.seconds < 45
    late = [s for s in record.swaps if s.time > 20 and rank not in (s.asked, s.answered)]
    assert len(late) > 15  # the others still mix
    assert record.learners[rank].alive == (kind not in DEADLY)
    assert sum(a.halves for a in record.learners) == (kind in (Kind.SENT, Kind.HALVED))
    assert sum(a.refused for a in record.learners) == (kind is Kind.NAN)
    living = np.sum([a.vector for a in record.learners if a.alive], axis=0)
    missing = STARTS[rank] if kind is Kind.JOINS else np.zeros(3)
    booked = np.sum([b.moved for b in record.booked] + [np.zeros(3)], axis=0)
    assert np.allclose(np.sum(STARTS, axis=0) - missing + booked, living, atol=1e-12)


def test_who_dies_is_told_in_one_sentence_and_the_moment_is_kept() -> None:
    record = run(PairAveraging(ALL), fault(Kind.DIES, 2))
    assert record.learners[2].ended == "learner 2 dies before match"
    assert 8.0 <= record.learners[2].ended_at < 9.0
    assert [b.rank for b in record.booked] == [2]


def test_who_comes_back_has_the_model_of_the_others() -> None:
    record = run(PairAveraging(ALL), fault(Kind.RETURNS, 2))
    assert [b.why for b in record.booked] == ["learner 2 dies before match", "joins"]
    assert record.learners[2].alive and record.learners[2].ended == ""
    assert record.consensus() < 1e-6


def test_a_model_that_is_not_finite_goes_no_further() -> None:
    record = run(PairAveraging(ALL), *(fault(Kind.NAN, rank, at=float(rank)) for rank in range(4)))
    assert all(np.isfinite(a.vector).all() for a in record.learners)
    assert sum(a.refused for a in record.learners) == 4


def test_a_gradient_that_is_not_finite_is_left_out() -> None:
    def gradient(x: Any, rank: int, item: int, _: Any) -> Any:
        return np.full(3, np.nan) if (rank, item) == (1, 5) else x * 0

    record = run(PairAveraging(ALL), gradient=gradient)
    assert record.learners[1].refused == 1 and np.isfinite(record.mean()).all()


def test_all_faults_at_once_leave_somebody_who_goes_on() -> None:
    script = [
        fault(kind, rank, at=3.0 + rank)
        for rank, kind in enumerate(
            (Kind.DIES, Kind.CLAIMED, Kind.SENDING, Kind.PAUSES, Kind.RETURNS)
        )
    ]
    record = run(PairAveraging(ALL), *script)
    assert [a.steps for a in record.learners[3:]] == [30, 30, 30]


def test_a_group_ends_with_its_member_and_the_others_go_on() -> None:
    strategy = SuperLearners(((0, 1), (2, 3), (4, 5)), PairAveraging(((1, 2), (0, 2), (0, 1))))
    record = run(strategy, fault(Kind.DIES, 3))
    assert record.learners[2].ended.startswith("learner 3 was lost")
    assert [record.learners[r].steps for r in (0, 1, 4, 5)] == [30] * 4
    after = [s for s in record.swaps if s.time > 15]
    assert after and all({s.asked, s.answered} == {0, 4} for s in after)


def test_a_hybrid_that_loses_a_learner_goes_on_by_pairs() -> None:
    record = run(Hybrid(PairAveraging(ALL)), fault(Kind.DIES, 3))
    assert [a.steps for r, a in enumerate(record.learners) if r != 3] == [29] * 5  # one was lost
    assert record.swaps and min(s.time for s in record.swaps) > 8.0


def test_a_server_does_without_a_learner_but_learners_not_without_the_server() -> None:
    worker, server = (run(SoftSync(SIZE, n=5), fault(Kind.DIES, rank)) for rank in (3, 0))
    assert [worker.learners[r].steps for r in (1, 2, 4, 5)] == [30] * 4
    assert all(a.ended.startswith("learner 0 was lost") for a in server.learners[1:])


def test_who_waits_is_told_at_the_deadline_however_long_others_go_on() -> None:
    class Apart:
        def programs(self, own: Any) -> Any:
            return (AllReduceSGD(5) if own.rank < 5 else PairAveraging(((),) * 6)).programs(own)

    record = run(Apart(), fault(Kind.DIES, 2))
    assert all(10.0 <= record.learners[r].ended_at < 12.5 for r in (0, 1, 3, 4))
    assert record.learners[5].steps == 30 and record.seconds > 20


def test_learners_that_wait_for_one_that_has_finished_are_told() -> None:
    class Uneven:
        def programs(self, own: Any) -> Any:
            return (AllReduceSGD(SIZE) if own.rank else PairAveraging(((),))).programs(own)

    record = run(Uneven())
    assert record.learners[0].steps == 30
    assert all(a.ended.startswith("learner 0 was lost") for a in record.learners[1:])


def test_a_fault_of_nobody_and_a_run_without_end_are_refused() -> None:
    with pytest.raises(DistributedError, match="a fault of learner 9 was scripted, among 6"):
        run(PairAveraging(ALL), Fault(Kind.DIES, 9, 1.0))
    with pytest.raises(DistributedError, match="needs an end"):
        run(PairAveraging(ALL), steps=None)
    with pytest.raises(ValueError, match="lasts a while"):
        Fault(Kind.PAUSES, 1, 1.0)
