"""What a run in virtual time is made of."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..effects import Vector
from ..errors import DistributedError
from ..replica import Strategy
from .costs import ComputeCost, LinkCost
from .faults import Fault
from .matching import Matcher


class Gradient(Protocol):
    """A gradient at `x`.

    `item` is the learner's own count of steps or, with a shared queue, the count over all of them.
    `random` is the learner's own, for its samples.
    """

    def __call__(self, x: Vector, rank: int, item: int, random: np.random.Generator) -> Vector: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A strategy, a problem, the machines, and what goes wrong with them."""

    strategy: Strategy
    starts: Sequence[Vector]
    """The model that each learner starts with, each of shape (parameters,)."""

    gradient: Gradient
    rate: float
    """Learning rate, 0 or more."""

    compute: ComputeCost
    link: LinkCost
    steps: int | None = None
    """Steps of each learner; None: no limit."""

    queue: int | None = None
    """Steps of all learners together, each pulled by whoever is ready; None: no limit."""

    seconds: float | None = None
    """Time after which no step begins; None: no limit."""

    seed: int = 0
    faults: tuple[Fault, ...] = ()
    deadline: float = 2.0
    """Seconds after which a silent peer counts as lost."""

    watch: float | None = None
    """Seconds between two looks at all learners; None: none."""

    measure: Callable[[Vector], float] | None = None
    """A figure of the mean model that each look writes down, such as its loss."""

    evaluate: Callable[[Vector], float] | None = None
    """The loss on the fixed samples, for strategies that ask for it."""

    matcher: Callable[[int, int], Matcher] | None = None
    """Makes the policy of matching from (learners, seed); None: `RandomThenFree`."""

    def __post_init__(self) -> None:
        if not self.starts:
            raise DistributedError("a run of 0 learners was asked for; wanted is 1 or more")
        if len({(x.shape, x.dtype) for x in self.starts}) > 1:
            raise DistributedError("the learners' models are not all of one length and precision")
        if self.steps is None and self.queue is None and self.seconds is None:
            raise DistributedError("a run needs an end: steps, a queue or seconds")
        if (
            not self.rate >= 0
            or not self.deadline > 0
            or not (self.watch is None or self.watch > 0)
        ):
            raise DistributedError(
                f"wanted are a rate of 0 or more, a deadline and a watch above 0, "
                f"not {self.rate}, {self.deadline}, {self.watch}"
            )
        for fault in self.faults:
            if not 0 <= fault.rank < len(self.starts):
                raise DistributedError(
                    f"a fault of learner {fault.rank} was scripted, among {len(self.starts)}"
                )
