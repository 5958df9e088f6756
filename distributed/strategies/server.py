"""A parameter server with n-softsync (Gupta, Zhang and Wang 2016; Zhang et al. 2016)."""

from dataclasses import dataclass

from ..effects import Compute, Letter, Program, Receive, Send
from ..errors import DistributedError
from ..replica import Programs, Replica

SERVER = 0
"""The rank that holds the model and computes no gradients."""

GRADIENT, MODEL = 0, 1


@dataclass(frozen=True, slots=True)
class SoftSync:
    """Rank 0 serves; the others push a gradient, pull the newest model, and go on.

    The server steps once for every floor(learners / n) gradients, whoever they are of. A gradient
    that is tau versions old counts with rate / tau: without that, large n does not converge.
    Staleness is about n in the mean and at most 2 n, and the server's replica counts it.
    """

    size: int
    """Ranks: the learners and the server, 2 or more."""

    n: int
    """From 1, where the server waits for as many gradients as there are learners, to learners."""

    modulated: bool = True
    """Whether the rate of a gradient is divided by its staleness."""

    def __post_init__(self) -> None:
        if not 1 <= self.n <= self.size - 1:
            raise DistributedError(
                f"{self.n}-softsync was asked for with {self.size - 1} learners; "
                "wanted is from 1 to the number of learners"
            )

    def programs(self, own: Replica) -> Programs:
        """The server, or a trainer."""
        if own.rank == SERVER:
            return Programs(None, (self._serve(own),))
        return Programs(_learn(own))

    def _serve(self, own: Replica) -> Program:
        wanted = (self.size - 1) // self.n
        arrived: list[Letter] = []
        clock = 0
        while True:
            letter = yield Receive(None, GRADIENT)
            arrived.append(letter)
            if len(arrived) == wanted:
                for late in arrived:
                    stale = clock - int(late.note)
                    own.staleness[stale] = own.staleness.get(stale, 0) + 1
                    own.descend(late.vector / (wanted * self._divisor(stale)))
                arrived.clear()
                clock += 1
            yield Send(letter.sender, own.snapshot(), MODEL, clock)

    def _divisor(self, stale: int) -> int:
        return max(1, stale) if self.modulated else 1


def _learn(own: Replica) -> Program:
    """Pushes wait for the pull: that is what bounds the staleness."""
    clock = 0.0
    while True:
        gradient = yield Compute(own.x)
        if gradient is None:
            return
        own.steps += 1
        yield Send(SERVER, gradient, GRADIENT, clock)
        letter = yield Receive(SERVER, MODEL)
        clock = letter.note
        own.replace(letter.vector)


def batch_for(learners: int, single: int) -> int:
    """Samples a learner takes at a time so that learners * batch stays near `single`, at least 1.

    The rule of Gupta, Zhang and Wang (2016): the product decides the quality of the model, as the
    batch of a single learner does.

    >>> batch_for(30, single=128)
    4
    """
    if learners < 1 or single < 1:
        raise DistributedError(
            f"wanted are 1 or more learners and samples, not {learners}, {single}"
        )
    return max(1, round(single / learners))
