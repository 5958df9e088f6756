"""One exchange in virtual time, and what may go wrong with it."""

from ..effects import Vector
from ..replica import finite
from .clock import Task
from .faults import Kind
from .learners import Learner


class Meeting:
    """One claim, from the match to the end of the transfer."""

    __slots__ = ("broken", "faults", "messages", "ranks", "tasks", "versions")

    def __init__(self, asked: int, answered: int) -> None:
        self.ranks = (asked, answered)
        self.tasks: list[Task | None] = [None, None]
        self.messages: list[Vector | None] = [None, None]
        self.versions = [0, 0]
        self.broken = False
        self.faults: dict[Kind, int] = {}
        """What goes wrong at the end of the transfer, and by whose fault."""


def unclaimed(learner: Learner) -> bool:
    """Whether the learner is there and in no exchange."""
    return learner.meeting is None and learner.here and not learner.doomed


def strikes(learner: Learner, kind: Kind, now: float) -> bool:
    """Whether a fault of this kind is due; it strikes once."""
    for fault in learner.script:
        if fault.kind is kind and fault.at <= now:
            learner.script.remove(fault)
            return True
    return False


def acceptable(theirs: Vector, mine: Vector) -> bool:
    """Whether `theirs` may be mixed in: it is of the same form as `mine`, and finite."""
    return theirs.shape == mine.shape and theirs.dtype == mine.dtype and finite(theirs)
