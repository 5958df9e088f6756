"""Virtual time: one heap of events, and what is to happen at once."""

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

from ..effects import Program


class Task:
    """One program of one learner, between two effects."""

    __slots__ = ("done", "missing", "parent", "program", "rank", "results")

    def __init__(self, rank: int, program: Program, parent: "Task | None" = None) -> None:
        self.rank = rank
        self.program = program
        self.parent = parent
        """Of one half of `Both`: the task that waits for it."""

        self.done = False
        self.missing = 0
        self.results: list[Any] = []


class Clock:
    """Events in the order of (time, when they were planned)."""

    __slots__ = ("_heap", "_planned", "now", "ready")

    def __init__(self) -> None:
        self.now = 0.0
        self.ready: deque[tuple[Task, Any]] = deque()
        """Tasks that go on now, before time does, each with the result it is sent."""

        self._heap: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._planned = 0

    def after(self, seconds: float, action: Callable[..., None], *given: Any) -> None:
        """Call `action(*given)` in so many seconds from now."""
        self._planned += 1
        heappush(self._heap, (self.now + seconds, self._planned, action, given))

    def soon(self, task: Task, result: Any) -> None:
        """Let `task` go on with `result`, or with the exception that `result` is."""
        self.ready.append((task, result))

    def tick(self) -> bool:
        """Go to the next event and do it; False if there is none."""
        if not self._heap:
            return False
        self.now, _, action, given = heappop(self._heap)
        action(*given)
        return True
