"""Who is there in a run in virtual time: starts, deaths, pauses, joins."""

from typing import Any

from ..effects import Vector
from .clock import Clock, Task
from .faults import Fault, Kind
from .floor import Floor
from .learners import Learner
from .post import Post
from .record import Booking
from .scenario import Scenario


class Attendance:
    """Starts the learners, carries out the script of faults, and counts who still trains."""

    def __init__(
        self, scenario: Scenario, clock: Clock, learners: list[Learner], floor: Floor, post: Post
    ) -> None:
        self._scenario = scenario
        self._clock = clock
        self._learners = learners
        self._floor = floor
        self._post = post
        self.training = 0
        """Learners whose trainer has not ended."""

        self.ended_at = 0.0
        """When the last one did."""

    def trained(self, learner: Learner) -> None:
        """The learner's trainer has ended, one way or the other."""
        learner.training = False
        learner.ended_at = self.ended_at = self._clock.now
        self.training -= 1
        for _, task in learner.steps_awaited:
            self._clock.soon(task, False)
        learner.steps_awaited.clear()
        self._floor.closed = self.training == 0

    def begin(self, learner: Learner) -> None:
        """The learner is there: its programs start from where its model stands."""
        programs = self._scenario.strategy.programs(learner.replica)
        learner.here = True
        if programs.trainer is not None:
            learner.training = True
            self.training += 1
            learner.tasks.append(Task(learner.rank, programs.trainer))
        learner.tasks.extend(Task(learner.rank, program) for program in programs.others)
        for task in learner.tasks:
            self._clock.soon(task, None)

    def plan(self, fault: Fault) -> None:
        """Write the fault into the heap, or into the learner's script for its next exchange."""
        learner = self._learners[fault.rank]
        match fault.kind:
            case Kind.DIES | Kind.RETURNS:
                self._clock.after(fault.at, self._doom, learner, Kind.DIES)
                if fault.kind is Kind.RETURNS:
                    self._clock.after(fault.at + fault.lasts, self._join, learner)
            case Kind.PAUSES:
                self._clock.after(fault.at, self._pause, learner, fault.lasts)
            case Kind.JOINS:
                self._clock.after(fault.at, self._join, learner)
            case _:
                learner.script.append(fault)

    def _doom(self, learner: Learner, why: str) -> None:
        if learner.meeting is None:
            self.kill(learner, why)
        else:
            learner.doomed = why

    def kill(self, learner: Learner, why: str) -> None:
        """The learner dies; the others find out when it has been silent long enough."""
        if learner.here:
            self.remove(learner, f"learner {learner.rank} {why}")
            self._clock.after(self._scenario.deadline, self._confirm, learner)

    def _confirm(self, learner: Learner) -> None:
        """The learner has been silent for as long as a peer may be."""
        self._post.lost(learner.rank, learner.rank)
        if not learner.here:
            self._floor.known_lost(learner.rank)

    def remove(self, learner: Learner, why: str) -> None:
        """The learner is gone, and its model with it."""
        learner.here = False
        learner.doomed = ""
        learner.ended = why
        gone = -learner.replica.x.copy()
        self._floor.booked.append(Booking(self._clock.now, learner.rank, why, gone))
        for task in learner.tasks:
            task.done = True
            task.program.close()
        if learner.training:
            self.trained(learner)
        learner.tasks.clear()
        self._post.leave(learner.rank)
        self._floor.lost(learner)

    def _pause(self, learner: Learner, seconds: float) -> None:
        learner.paused_until = self._clock.now + seconds
        self._clock.after(seconds, self._floor.rejoin, learner)
        if seconds > self._scenario.deadline:
            self._clock.after(self._scenario.deadline, self._silent, learner, learner.meeting)

    def _silent(self, learner: Learner, meeting: Any) -> None:
        self._post.lost(learner.rank, learner.rank)
        if meeting is not None:
            self._floor.abandon(meeting)

    def _join(self, learner: Learner) -> None:
        """Take the model of the learner that is furthest, and begin."""
        if learner.here or self.training == 0:
            return
        others = [other for other in self._learners if other.here]
        donor = max(others, key=lambda other: (other.replica.steps, -other.rank))
        seconds = self._scenario.link(donor.rank, learner.rank, donor.replica.x.nbytes)
        self._clock.after(seconds, self._admit, learner, donor.replica.snapshot())

    def _admit(self, learner: Learner, model: Vector) -> None:
        if self.training == 0:
            return
        learner.replica.replace(model)
        learner.taken = learner.replica.steps  # what it was at when it died was not done
        learner.ended = ""
        self._floor.booked.append(Booking(self._clock.now, learner.rank, "joins", model.copy()))
        self._floor.back(learner.rank)
        self._post.back(learner.rank)
        self.begin(learner)
