"""Matching in virtual time: partners as even as the graph, and an alarm for those that are not."""

import heapq
from collections.abc import Callable, Iterable

import numpy as np
import pytest
from orthotrace.distributed.graphs import named
from orthotrace.distributed.matching import Matcher, Partners, generator
from orthotrace.distributed.topology import Topology

Idle = dict[int, float]
"""Who looks for a partner, and since when."""


def real_policy(graph: Topology, seed: int, patience: float) -> list[Matcher]:
    return [Matcher(r, graph.neighbours(r), seed, patience) for r in range(graph.size)]


class Queue:
    """The known bad policy: the first two neighbours that are free pair up."""

    until = None

    def __init__(self, rank: int, neighbours: Iterable[int], idle: Idle) -> None:
        self.rank, self.neighbours, self.idle = rank, set(neighbours), idle

    def choose(self, now: float, is_free: Callable[[int], bool]) -> int | None:
        waiting = [other for other in self.idle if other in self.neighbours and is_free(other)]
        return min(waiting, key=lambda other: self.idle[other], default=None)

    def met(self, partner: int) -> None:
        pass


def run(graph: Topology, matchers: list, idle: Idle, end: float, slow: int = -1) -> list[Partners]:  # type: ignore[type-arg]
    """Exchanges of 0.3 s and up to 10 % more, by all learners without a pause, until `end`.

    With `slow`, each exchange with that learner takes 100 times as long.
    """
    rng, told = np.random.default_rng(7), [Partners(graph.size, graph.neighbours(r)) for r in range(graph.size)]
    events: list[tuple[float, int, int, int]] = [(0.0, r, r, -1) for r in range(graph.size)]
    heapq.heapify(events)
    count = graph.size
    while events and events[0][0] < end:
        now, _, rank, partner = heapq.heappop(events)
        for one, other in ((rank, partner), (partner, rank)) if partner >= 0 else ():
            told[one].met(other)
            matchers[one].met(other)
            idle[one] = now
        if partner < 0:
            idle.setdefault(rank, now)
        for one in list(idle):
            other = matchers[one].choose(now, idle.__contains__) if one in idle else None
            if other is None:
                until = matchers[one].until
                if until is not None and until > now and one in (rank, partner):
                    heapq.heappush(events, (until, count := count + 1, one, -2))
                continue
            del idle[one], idle[other]
            takes = 0.3 * (1 + 0.1 * rng.random()) * (100 if slow in (one, other) else 1)
            heapq.heappush(events, (now + takes, count := count + 1, one, other))
    return told
