"""Where two learners meet for an exchange, in virtual time."""

from collections.abc import Callable

import numpy as np

from ..effects import Accept, Exchange, Match, Reply, Request, Vector
from .clock import Clock, Task
from .costs import LinkCost
from .faults import Kind
from .learners import Learner
from .matching import Matcher
from .meeting import Meeting, acceptable, strikes, unclaimed
from .record import Booking, Swap

INSTANT = 1e-6
"""Seconds between two looks for a partner where transfers take no time."""


def _nobody(learner: Learner, why: str) -> None:
    raise ValueError(f"learner {learner.rank} {why}, and nobody takes it out")


class Floor:
    """Matches learners, carries their exchanges, and counts and books what became of them."""

    def __init__(
        self,
        clock: Clock,
        learners: list[Learner],
        link: LinkCost,
        matcher: Matcher,
        deadline: float,
    ) -> None:
        self._clock = clock
        self._learners = learners
        self._link = link
        self._matcher = matcher
        self._deadline = deadline
        self.on_death: Callable[[Learner, str], None] = _nobody
        """What takes a learner out that dies by script."""

        self._gone: set[int] = set()
        self._usual = -1.0
        """About the median of the transfers so far, in seconds: how long to wait for a target."""

        self.closed = False
        """No new matches are made; exchanges that are under way go on to their end."""

        self.swaps: list[Swap] = []
        self.booked: list[Booking] = []

    def free(self, rank: int) -> bool:
        """See Standing. One that stands still looks like any other until it is claimed."""
        learner = self._learners[rank]
        return learner.accepting is not None and unclaimed(learner)

    def idle(self, rank: int) -> bool:
        """See Standing."""
        learner = self._learners[rank]
        return unclaimed(learner) and learner.paused_until <= self._clock.now

    def match(self, task: Task, effect: Match) -> None:
        """Find a partner, now or later."""
        learner = self._learners[task.rank]
        learner.seeking, learner.among = task, effect.among
        if learner.meeting is None:
            self._ask(learner)

    def _ask(self, learner: Learner) -> None:
        if self.closed or not self.idle(learner.rank):
            return
        among = learner.among
        if self._gone:
            among = tuple(peer for peer in among if peer not in self._gone) or among
        found = self._matcher.ask(learner.rank, among, self)
        if found is not None:
            self._meet(learner.rank, found)
            return
        if self._usual < 0:
            self._usual = self._link(learner.rank, among[0], learner.replica.x.nbytes)
        learner.asked += 1
        self._clock.after(self._usual, self._tire, learner, learner.asked)

    def _tire(self, learner: Learner, asked: int) -> None:
        # Asked again meanwhile, or in an exchange, after which it will be.
        if learner.asked != asked or self.closed or not self.idle(learner.rank):
            return
        found = self._matcher.tire(learner.rank, self)
        if found is not None:
            self._meet(learner.rank, found)
        else:
            self._clock.after(max(self._usual, INSTANT), self._tire, learner, asked)

    def accept(self, task: Task, _: Accept) -> None:
        """Wait to be claimed."""
        learner = self._learners[task.rank]
        learner.accepting = task
        self._offer(learner)

    def _offer(self, learner: Learner) -> None:
        """The learner may be free where it was not."""
        if not self.closed and self.free(learner.rank):
            seeker = self._matcher.serve(learner.rank, self)
            if seeker is not None:
                self._meet(seeker, learner.rank)

    def rejoin(self, learner: Learner) -> None:
        """The learner's exchange or pause is over: it draws anew, and may be drawn."""
        self._offer(learner)
        if learner.seeking is not None and learner.meeting is None:
            self._matcher.done(learner.rank)
            self._ask(learner)

    def _meet(self, asked: int, answered: int) -> None:
        asking, answering = self._learners[asked], self._learners[answered]
        asking.asked += 1
        answering.asked += 1
        self._matcher.done(asked)
        self._matcher.done(answered)
        self._matcher.met(asked, answered)
        asking.meeting = answering.meeting = meeting = Meeting(asked, answered)
        ready = asking.seeking, answering.accepting
        asking.seeking = answering.accepting = None
        for learner in (asking, answering):
            if learner.script and strikes(learner, Kind.CLAIMED, self._clock.now):
                self.on_death(learner, Kind.CLAIMED)
            if learner.paused_until > self._clock.now + self._deadline:
                self._clock.after(self._deadline, self.abandon, meeting)
        for task, result in zip(ready, (answered, Request(asked)), strict=True):
            if task is not None:
                self._clock.soon(task, result)

    def exchange(self, task: Task, effect: Exchange) -> None:
        """The asking side has its message ready."""
        self._post(task, 0, effect.peer, effect.message)

    def reply(self, task: Task, effect: Reply) -> None:
        """The answering side has its message ready."""
        self._post(task, 1, effect.request.peer, effect.message)

    def _post(self, task: Task, side: int, peer: int, message: Vector) -> None:
        learner = self._learners[task.rank]
        meeting: Meeting | None = learner.meeting
        if meeting is None or meeting.ranks[side] != task.rank or meeting.ranks[1 - side] != peer:
            self._clock.soon(task, None)  # the claim has run out meanwhile
            return
        meeting.tasks[side] = task
        meeting.messages[side] = message
        meeting.versions[side] = learner.replica.version
        if meeting.messages[1 - side] is not None and not meeting.broken:
            self._start(meeting, message.nbytes)

    def _start(self, meeting: Meeting, size: int) -> None:
        asked, answered = meeting.ranks
        seconds = max(self._link(asked, answered, size), self._link(answered, asked, size))
        if self._usual < 0:
            self._usual = seconds
        else:  # steps up for the longer and down for the shorter end at the median
            self._usual *= 1.05 if seconds > self._usual else 1 / 1.05
        for rank in meeting.ranks:
            learner = self._learners[rank]
            if learner.script:
                self._script(meeting, learner, seconds)
        self._clock.after(seconds, self._finish, meeting)

    def _script(self, meeting: Meeting, learner: Learner, seconds: float) -> None:
        """What goes wrong in this transfer."""
        now = self._clock.now
        if strikes(learner, Kind.SENDING, now):
            self._clock.after(seconds / 2, self.on_death, learner, Kind.SENDING)
        if strikes(learner, Kind.NAN, now):
            side = meeting.ranks.index(learner.rank)
            sent = meeting.messages[side]
            meeting.messages[side] = None if sent is None else np.full_like(sent, np.nan)
        for kind in (Kind.SENT, Kind.HALVED):
            if strikes(learner, kind, now):
                meeting.faults[kind] = learner.rank

    def _finish(self, meeting: Meeting) -> None:
        """The transfer is over: each side has the other's message, but for a fault."""
        if meeting.broken:
            return
        now = self._clock.now
        first, second = (self._learners[rank] for rank in meeting.ranks)
        until = max(first.paused_until, second.paused_until)
        if until > now:
            self._clock.after(until - now, self._finish, meeting)
            return
        results = self._results(meeting, first, second)
        self._clear(meeting)
        for task, result in zip(meeting.tasks, results, strict=True):
            if task is not None:
                self._clock.soon(task, result)
        for learner in (first, second):
            self._leave(learner)

    def _results(
        self, meeting: Meeting, first: Learner, second: Learner
    ) -> tuple[Vector | None, Vector | None]:
        """What each side is given; nothing is applied of a message that is not finite."""
        from_first, from_second = meeting.messages
        if from_first is None or from_second is None:
            raise ValueError("a transfer ends with two messages")
        bad = [not acceptable(from_second, from_first), not acceptable(from_first, from_second)]
        if any(bad):
            first.refused += bad[0]
            second.refused += bad[1]
            return None, None
        if meeting.faults:
            return self._half(meeting, first, second)
        first.met(second.rank)
        second.met(first.rank)
        written = first.replica.version, second.replica.version
        sent = meeting.versions[0], meeting.versions[1]
        self.swaps.append(Swap(self._clock.now, first.rank, second.rank, sent, written))
        return from_second, from_first

    def _half(
        self, meeting: Meeting, first: Learner, second: Learner
    ) -> tuple[Vector | None, Vector | None]:
        """One side has the other's message, and the other side has not: booked with its size."""
        results = [meeting.messages[1], meeting.messages[0]]
        for kind, rank in meeting.faults.items():
            side = meeting.ranks.index(rank)
            results[side] = None
            learner, other = (first, second) if side == 0 else (second, first)
            mine, theirs = meeting.messages[1 - side], meeting.messages[side]
            if mine is not None and theirs is not None:
                moved = (theirs - mine) / 2
                self.booked.append(Booking(self._clock.now, other.rank, kind, moved))
            other.halves += 1
            if kind is Kind.SENT:
                self.on_death(learner, kind)
        return results[0], results[1]

    def abandon(self, meeting: Meeting) -> None:
        """The deadline of a peer that is silent is over: nothing is applied on either side."""
        members = [self._learners[rank] for rank in meeting.ranks]
        if all(learner.meeting is not meeting for learner in members):
            return
        meeting.broken = True
        self._clear(meeting)
        for learner, task in zip(members, meeting.tasks, strict=True):
            if task is not None and learner.here:
                self._clock.soon(task, None)
        for learner in members:
            self._leave(learner)

    def _clear(self, meeting: Meeting) -> None:
        for rank in meeting.ranks:
            learner = self._learners[rank]
            if learner.meeting is meeting:
                learner.meeting = None

    def _leave(self, learner: Learner) -> None:
        """An exchange is over for the learner."""
        if learner.doomed:  # once it has mixed in what it was given
            self._clock.after(0, self.on_death, learner, learner.doomed)
        self.rejoin(learner)

    def lost(self, learner: Learner) -> None:
        """The learner is gone; its peer finds out at the deadline, the others soon after."""
        meeting: Meeting | None = learner.meeting
        self._matcher.done(learner.rank)
        learner.seeking = learner.accepting = learner.meeting = None
        if meeting is not None:
            meeting.broken = True
            self._clock.after(self._deadline, self.abandon, meeting)

    def known_lost(self, rank: int) -> None:
        """Nobody asks for the learner any more."""
        self._gone.add(rank)

    def back(self, rank: int) -> None:
        """The learner is there again."""
        self._gone.discard(rank)
