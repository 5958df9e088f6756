"""What a run in virtual time keeps of each learner."""

from math import nan
from typing import Any

from ..randomness import generator
from ..replica import Replica
from .clock import Task
from .faults import Fault
from .record import Account


class Learner:
    """One learner of a run: its model, its tasks, where it stands, what it did."""

    def __init__(self, replica: Replica, seed: int) -> None:
        self.rank = replica.rank
        self.replica = replica
        self.random = generator(seed, self.rank, "samples")
        self.tasks: list[Task] = []
        self.here = False
        self.paused_until = 0.0
        self.training = False
        """Its trainer has not ended yet."""

        self.script: list[Fault] = []
        """Faults that wait for the next match or transfer."""

        self.doomed = ""
        """Why it dies as soon as no exchange is under way; empty if it does not."""

        self.taken = 0
        """Steps that it has begun."""

        self.meeting: Any = None
        self.accepting: Task | None = None
        self.seeking: Task | None = None
        self.among: tuple[int, ...] = ()
        """Whom its last match was to be with."""

        self.asked = 0
        """Changes of what it waits for: a timer that was set before one is out of date."""

        self.steps_awaited: list[tuple[int, Task]] = []

        self.ended = ""
        self.ended_at = nan
        self.exchanges = 0
        self.halves = 0
        self.refused = 0
        self.partners: dict[int, int] = {}

    def met(self, other: int) -> None:
        """Count one whole exchange with `other`."""
        self.exchanges += 1
        self.partners[other] = self.partners.get(other, 0) + 1

    def account(self) -> Account:
        """What became of it."""
        return Account(
            vector=self.replica.x,
            alive=self.here,
            ended=self.ended,
            ended_at=self.ended_at,
            steps=self.replica.steps,
            exchanges=self.exchanges,
            halves=self.halves,
            refused=self.refused + self.replica.refused,
            staleness=self.replica.staleness,
            partners=self.partners,
        )
