"""AD-PSGD: each learner trains on, and averages with one other at a time (Lian et al. 2018)."""

from dataclasses import dataclass
from itertools import count
from math import ceil

from ..effects import Accept, AfterStep, Compute, Exchange, Match, Program, Reply
from ..errors import DistributedError
from ..replica import Programs, Replica


@dataclass(frozen=True, slots=True)
class PairAveraging:
    """Asynchronous decentralised parallel SGD.

    A trainer that never waits, and beside it the averaging with one peer at a time. Claims are
    never held while waiting for another, so every learner may both ask and answer, on any graph.
    """

    neighbours: tuple[tuple[int, ...], ...]
    """neighbours[rank] are the learners that rank may average with; both ways."""

    passive: frozenset[int] = frozenset()
    """Learners that only answer; the others then only ask, and every edge must join the two."""

    per_step: float | None = 1.0
    """Exchanges that a learner asks for in each of its steps, in the mean; None: no limit."""

    def __post_init__(self) -> None:
        for rank, others in enumerate(self.neighbours):
            for other in others:
                self._check(rank, other)
        if self.per_step is not None and not self.per_step > 0:
            raise DistributedError(
                f"{self.per_step} exchanges a step were asked for; wanted is a number above 0"
            )

    def _check(self, rank: int, other: int) -> None:
        if not 0 <= other < len(self.neighbours) or rank not in self.neighbours[other]:
            raise ValueError(f"{rank} lists {other} as a neighbour, but not the other way round")
        if other == rank:
            raise ValueError(f"learner {rank} cannot be its own neighbour")
        if self.passive and (rank in self.passive) == (other in self.passive):
            raise DistributedError(
                f"learners {rank} and {other} are neighbours and both "
                f"{'only answer' if rank in self.passive else 'only ask'}; "
                "wanted is a graph in two parts"
            )

    def programs(self, own: Replica) -> Programs:
        """A trainer, and what asks, what answers, or both."""
        neighbours = self.neighbours[own.rank]
        others: list[Program] = []
        if neighbours and own.rank not in self.passive:
            others.append(active(own, neighbours, self.per_step))
        if neighbours and (not self.passive or own.rank in self.passive):
            others.append(passive(own))
        return Programs(trainer(own), tuple(others))


def trainer(own: Replica) -> Program:
    """Gradients at the model as it was read, applied to the model as it then is."""
    while True:
        gradient = yield Compute(own.read())
        if gradient is None:
            return
        own.apply(gradient)


def active(own: Replica, neighbours: tuple[int, ...], per_step: float | None) -> Program:
    """Ask one neighbour after the other, at most `per_step` in each step of the trainer."""
    ask = Match(neighbours)
    first = own.steps
    for asked in count():
        due = 0 if per_step is None else first + ceil(asked / per_step)
        if own.steps < due and not (yield AfterStep(due)):
            return
        peer = yield ask
        if peer is None:
            continue
        mine = own.snapshot()
        theirs = yield Exchange(peer, mine)
        if theirs is not None:
            own.mix(mine, theirs)


def passive(own: Replica) -> Program:
    """Answer whoever has claimed this learner."""
    wait = Accept()
    while True:
        request = yield wait
        if request is None:
            continue
        mine = own.snapshot()
        theirs = yield Reply(request, mine)
        if theirs is not None:
            own.mix(mine, theirs)
