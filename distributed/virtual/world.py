"""Runs any strategy in virtual time: thousands of learners on one thread, the same to the bit."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..effects import (
    Accept,
    AfterStep,
    AllReduce,
    Both,
    Compute,
    Evaluate,
    Exchange,
    LearnerLost,
    Match,
    Now,
    Receive,
    Reply,
    Send,
    Sleep,
)
from ..replica import Replica
from .attendance import Attendance
from .clock import Clock, Task
from .faults import Kind
from .floor import Floor
from .learners import Learner
from .matching import RandomThenFree
from .post import Post
from .record import Glance, Record
from .scenario import Scenario


def simulate(scenario: Scenario) -> Record:
    """Run `scenario` to its end, in no time but that of its gradients."""
    return World(scenario).run()


class World:
    """One run: carries out what the programs ask for."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._clock = clock = Clock()
        replicas = (Replica(rank, x, scenario.rate) for rank, x in enumerate(scenario.starts))
        self._learners = learners = [Learner(replica, scenario.seed) for replica in replicas]
        matcher = (scenario.matcher or RandomThenFree)(len(learners), scenario.seed)
        self._post = Post(clock, learners, scenario.link)
        self._floor = Floor(clock, learners, scenario.link, matcher, scenario.deadline)
        self._attendance = Attendance(scenario, clock, learners, self._floor, self._post)
        self._floor.on_death = self._attendance.kill
        self._taken = 0
        self._glances: list[Glance] = []
        self._handlers: dict[type, Callable[[Task, Any], None]] = {
            Compute: self._compute,
            Evaluate: self._evaluate,
            AfterStep: self._after_step,
            Sleep: self._sleep,
            Now: self._now,
            Both: self._both,
            Match: self._floor.match,
            Accept: self._floor.accept,
            Exchange: self._floor.exchange,
            Reply: self._floor.reply,
            Send: self._post.send,
            Receive: self._post.receive,
            AllReduce: self._post.all_reduce,
        }

    def run(self) -> Record:
        """From the start of all learners to the end of the last trainer."""
        late = {fault.rank for fault in self._scenario.faults if fault.kind is Kind.JOINS}
        for fault in self._scenario.faults:
            self._attendance.plan(fault)
        for learner in self._learners:
            if learner.rank not in late:
                self._attendance.begin(learner)
        if self._scenario.watch is not None:
            self._watch(self._scenario.watch)
        while self._go_on():
            pass
        return Record(
            seconds=self._attendance.ended_at,
            learners=tuple(learner.account() for learner in self._learners),
            swaps=tuple(self._floor.swaps),
            booked=tuple(self._floor.booked),
            glances=tuple(self._glances),
        )

    def _go_on(self) -> bool:
        ready = self._clock.ready
        while ready:
            self._advance(*ready.popleft())
        if self._clock.tick():
            return True
        stuck = self._post.stuck() if self._attendance.training else None
        if stuck is not None:
            self._clock.soon(stuck[0], LearnerLost(stuck[1]))
        return stuck is not None

    # ---- programs

    def _advance(self, task: Task, result: Any) -> None:
        if task.done:
            return
        learner = self._learners[task.rank]
        if learner.paused_until > self._clock.now:
            self._clock.after(
                learner.paused_until - self._clock.now, self._clock.soon, task, result
            )
            return
        try:
            if isinstance(result, LearnerLost):
                effect = task.program.throw(result)
            else:
                effect = task.program.send(result)
        except StopIteration as end:
            self._end(learner, task, end.value)
        except LearnerLost as lost:
            self._give_up(learner, task, lost)
        else:
            self._handlers[type(effect)](task, effect)

    def _end(self, learner: Learner, task: Task, value: Any) -> None:
        task.done = True
        if task.parent is not None:
            self._half_done(task, value)
        elif learner.training and task is learner.tasks[0]:
            self._attendance.trained(learner)

    def _give_up(self, learner: Learner, task: Task, lost: LearnerLost) -> None:
        task.done = True
        if task.parent is not None:
            for other in learner.tasks:
                other.done |= other.parent is task.parent
            self._clock.soon(task.parent, lost)
        elif learner.here:
            self._attendance.remove(learner, str(lost))
            self._post.lost(learner.rank, lost.rank)
            self._floor.known_lost(learner.rank)

    # ---- effects

    def _compute(self, task: Task, effect: Compute) -> None:
        learner, scenario = self._learners[task.rank], self._scenario
        step = learner.taken
        self._reach(learner, step)
        over = (
            (scenario.steps is not None and step >= scenario.steps)
            or (scenario.queue is not None and self._taken >= scenario.queue)
            or (scenario.seconds is not None and self._clock.now >= scenario.seconds)
        )
        if over:
            self._clock.soon(task, None)
            return
        item = step if scenario.queue is None else self._taken
        learner.taken += 1
        self._taken += 1
        gradient = scenario.gradient(effect.at, learner.rank, item, learner.random)
        self._clock.after(scenario.compute(learner.rank, step), self._clock.soon, task, gradient)

    def _reach(self, learner: Learner, steps: int) -> None:
        """So many steps are done: those who waited for them go on."""
        if learner.steps_awaited:
            for awaited in [a for a in learner.steps_awaited if a[0] <= steps]:
                learner.steps_awaited.remove(awaited)
                self._clock.soon(awaited[1], True)

    def _after_step(self, task: Task, effect: AfterStep) -> None:
        learner = self._learners[task.rank]
        if learner.replica.steps >= effect.step:
            self._clock.soon(task, True)
        elif learner.training:
            learner.steps_awaited.append((effect.step, task))
        else:
            self._clock.soon(task, False)

    def _evaluate(self, task: Task, effect: Evaluate) -> None:
        if self._scenario.evaluate is None:
            raise ValueError("the strategy asks for a loss on fixed samples; give `evaluate`")
        loss = self._scenario.evaluate(effect.at)
        seconds = self._scenario.compute(task.rank, self._learners[task.rank].taken)
        self._clock.after(seconds, self._clock.soon, task, loss)

    def _sleep(self, task: Task, effect: Sleep) -> None:
        if self._attendance.training:
            self._clock.after(effect.seconds, self._clock.soon, task, None)

    def _now(self, task: Task, _: Now) -> None:
        self._clock.soon(task, self._clock.now)

    def _both(self, task: Task, effect: Both) -> None:
        task.missing = 2
        task.results = [None, None]
        for place, half in enumerate((effect.first, effect.second)):
            child = Task(task.rank, _one(place, half), task)
            self._learners[task.rank].tasks.append(child)
            self._clock.soon(child, None)

    def _half_done(self, task: Task, value: tuple[int, Any]) -> None:
        parent = task.parent
        self._learners[task.rank].tasks.remove(task)
        if parent is None or parent.done:
            return
        parent.results[value[0]] = value[1]
        parent.missing -= 1
        if parent.missing == 0:
            self._clock.soon(parent, tuple(parent.results))

    def _watch(self, every: float) -> None:
        if not self._attendance.training:
            return
        models = np.stack([one.replica.x for one in self._learners if one.here], dtype=np.float64)
        mean = models.mean(axis=0)
        measured = self._scenario.measure(mean) if self._scenario.measure else float("nan")
        consensus = float(np.mean(np.sum((models - mean) ** 2, axis=1)))
        self._glances.append(Glance(self._clock.now, consensus, measured))
        self._clock.after(every, self._watch, every)


def _one(place: int, effect: Any) -> Any:
    """The program of one half of Both: its place, and its result."""
    return place, (yield effect)
