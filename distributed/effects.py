"""What an algorithm may ask of the world it runs in.

An algorithm is a generator that yields effects and is sent their results. A driver carries the
effects out: in virtual time on one heap of events, or on threads, sockets and a clock. So there is
one source for a simulated thousand of learners and for a cluster.

Where a result may be None, the peer or the link failed and nothing was applied. An effect that
waits for one particular learner (`Receive`, `AllReduce`) raises `LearnerLost` instead.

A vector that was handed to an effect is not written to afterwards, by either side.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .errors import DistributedError

Vector: TypeAlias = NDArray[np.floating[Any]]
"""A model, a gradient or a message, shape (parameters,)."""


class LearnerLost(DistributedError):
    """A learner that others must wait for is gone; `rank` says which."""

    def __init__(self, rank: int) -> None:
        super().__init__(
            f"learner {rank} was lost, and this strategy goes on only while every learner answers"
        )
        self.rank = rank


@dataclass(frozen=True, slots=True)
class Compute:
    """A gradient at the model `at`, on the next samples; None: there is no work left."""

    at: Vector


@dataclass(frozen=True, slots=True)
class Evaluate:
    """The loss, a float, of the model `at` on the one fixed set of samples kept for it."""

    at: Vector


@dataclass(frozen=True, slots=True)
class Match:
    """A claim on one learner of `among` for one exchange: its rank, or None: nobody now."""

    among: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Exchange:
    """`message` for the peer's, both ways at once, with the peer that `Match` named."""

    peer: int
    message: Vector


@dataclass(frozen=True, slots=True)
class Accept:
    """Wait to be claimed: a `Request`, or None: nobody now."""


@dataclass(frozen=True, slots=True)
class Request:
    """`peer` has claimed this learner for one exchange."""

    peer: int


@dataclass(frozen=True, slots=True)
class Reply:
    """The other end of `Exchange`: `message` for the peer's."""

    request: Request
    message: Vector


@dataclass(frozen=True, slots=True)
class AllReduce:
    """The mean of every member's `vector`, added in the order of ranks; LearnerLost."""

    vector: Vector
    group: tuple[int, ...]
    """The ranks that take part, this learner's among them, in the same order everywhere."""

    def __post_init__(self) -> None:
        if len(set(self.group)) != len(self.group) or not self.group:
            raise ValueError(f"a group names each of its ranks once, not {self.group}")


@dataclass(frozen=True, slots=True)
class Send:
    """`vector` and `note` one way to the learner `to`; does not wait, and may never arrive."""

    to: int
    vector: Vector
    tag: int = 0
    """What the receiver asks for, such as the number of a round."""

    note: float = 0.0
    """One number that travels beside the vector, such as a weight or a version."""


@dataclass(frozen=True, slots=True)
class Receive:
    """The first `Letter` with this tag of `sender`, or of anybody if None; LearnerLost."""

    sender: int | None
    tag: int = 0


@dataclass(frozen=True, slots=True)
class Letter:
    """What arrived: see `Send`."""

    sender: int
    vector: Vector
    note: float


@dataclass(frozen=True, slots=True)
class AfterStep:
    """Wait until this learner has done `step` steps: True, or False: it will not any more."""

    step: int


@dataclass(frozen=True, slots=True)
class Sleep:
    """Wait for so many seconds, 0 or more."""

    seconds: float

    def __post_init__(self) -> None:
        if not self.seconds >= 0:
            raise ValueError(f"nobody can sleep for {self.seconds} seconds")


@dataclass(frozen=True, slots=True)
class Now:
    """The time in seconds, on a clock that only ever goes forward."""


@dataclass(frozen=True, slots=True)
class Both:
    """Two effects at the same time: the pair of their results, when both are there."""

    first: "Effect"
    second: "Effect"


Effect: TypeAlias = (
    Compute
    | Evaluate
    | Match
    | Exchange
    | Accept
    | Reply
    | AllReduce
    | Send
    | Receive
    | AfterStep
    | Sleep
    | Now
    | Both
)

Program: TypeAlias = Generator[Effect, Any, None]
"""One coroutine of a learner."""
