"""Matching in virtual time: partners as even as the graph, and an alarm for those that are not."""

import heapq
from collections.abc import Callable, Iterable
from math import inf
from typing import Protocol

import numpy as np
import pytest
from orthotrace.distributed.graphs import named
from orthotrace.distributed.matching import Matcher, Partners
from orthotrace.distributed.randomness import generator
from orthotrace.distributed.topology import Topology

TRANSFER = 0.3
"""Seconds of an exchange, of which up to 10 % more are drawn."""


class Policy(Protocol):
    """What `exchanged` needs of a matcher."""

    @property
    def until(self) -> float | None: ...

    def choose(self, now: float, is_free: Callable[[int], bool]) -> int | None: ...

    def met(self, partner: int) -> None: ...


class Queue:
    """The known bad policy: the first two neighbours that are free pair up."""

    until = None

    def __init__(self, neighbours: Iterable[int]) -> None:
        self.neighbours = tuple(neighbours)

    def choose(self, now: float, is_free: Callable[[int], bool]) -> int | None:
        return next((other for other in self.neighbours if is_free(other)), None)

    def met(self, partner: int) -> None:
        pass


def matchers(graph: Topology, seed: int = 0, patience: float = TRANSFER) -> list[Policy]:
    return [Matcher(r, graph.neighbours(r), seed, patience) for r in range(graph.size)]


def queues(graph: Topology) -> list[Policy]:
    return [Queue(graph.neighbours(r)) for r in range(graph.size)]


def exchanged(
    graph: Topology, policies: list[Policy], slow: int = -1, only_even_ask: bool = False
) -> list[Partners]:
    """A minute in which all learners exchange without a pause, 100 times slower with `slow`."""
    rng = np.random.default_rng(7)
    told = [Partners(graph.size, graph.neighbours(r)) for r in range(graph.size)]
    idle = set(range(graph.size))
    events: list[tuple[float, tuple[int, ...]]] = [(0.0, (rank,)) for rank in idle]
    while events[0][0] < 60:
        now, over = heapq.heappop(events)
        if len(over) == 2:
            for one, other in (over, over[::-1]):
                told[one].met(other)
                policies[one].met(other)
                idle.add(one)
        for one in sorted(idle):
            if one not in idle or (only_even_ask and one % 2):
                continue
            chosen = policies[one].choose(now, idle.__contains__)
            until = policies[one].until
            if chosen is not None:
                idle -= {one, chosen}
                takes = TRANSFER * (1 + 0.1 * rng.random()) * (100 if slow in (one, chosen) else 1)
                heapq.heappush(events, (now + takes, (one, chosen)))
            elif one in over and until is not None and until > now:
                heapq.heappush(events, (until, (one,)))
    return told


def unevenness(counts: np.ndarray) -> float:
    """Chi-square of the counts against equal shares."""
    return float(((counts - counts.mean()) ** 2).sum() / counts.mean())


def test_free_neighbours_are_drawn_alike() -> None:
    matcher, neighbours, counts = Matcher(0, range(1, 16), 4, 1.0), range(1, 16), np.zeros(16)
    for now in range(3000):
        chosen = matcher.choose(now, lambda rank: True)
        assert chosen in neighbours
        counts[chosen] += 1
        matcher.met(chosen)
    assert unevenness(counts[1:]) < 42.6  # 14 degrees of freedom: exceeded once in 10,000


@pytest.mark.parametrize("name", ["complete", "bipartite-exponential", "ring"])
def test_partners_are_as_even_as_the_graph(name: str) -> None:
    graph = named(name, 16)
    degree = len(graph.neighbours(0))
    for rank, partners in enumerate(exchanged(graph, matchers(graph))):
        counts = partners.counts_N[list(graph.neighbours(rank))]
        assert counts.sum() > 80
        # Wilson and Hilferty (1931): what chi-square exceeds once in 10,000
        assert (
            unevenness(counts)
            < (degree - 1)
            * (1 - 2 / (9 * (degree - 1)) + 3.719 * (2 / (9 * (degree - 1))) ** 0.5) ** 3
        )
        assert partners.repeated < 1.1 / degree + 0.2
        assert not partners.locked_in()


@pytest.mark.parametrize("name", ["complete", "ring"])
def test_the_first_two_that_are_free_lock_in_and_are_told(name: str) -> None:
    graph = named(name, 16)
    for partners in exchanged(graph, queues(graph)):
        assert partners.repeated > 0.9 and partners.locked_in()


def test_one_slow_link_costs_its_own_learner_and_few_others() -> None:
    """Where those who wait are asked by nobody, endless patience queues them all up behind it."""

    def meetings(patience: float, slow: int) -> int:
        told = exchanged(graph, matchers(graph, 0, patience), slow, only_even_ask=True)
        return sum(int(partners.counts_N.sum()) for partners in told)

    graph = named("bipartite-exponential", 16)
    assert meetings(TRANSFER, slow=1) > 0.75 * meetings(TRANSFER, slow=-1)
    assert meetings(inf, slow=1) < 0.5 * meetings(TRANSFER, slow=-1)


def test_a_target_is_waited_for_until_patience_ends() -> None:
    matcher = Matcher(0, (1, 2, 3), 0, 0.5)
    assert matcher.until is None
    assert matcher.choose(10.0, lambda rank: False) is None
    target = matcher.target
    others = {1, 2, 3} - {target}
    assert matcher.until == 10.5
    assert matcher.choose(10.4, others.__contains__) is None
    assert matcher.choose(10.4, {1, 2, 3}.__contains__) == target
    assert matcher.choose(10.5, others.__contains__) in others
    assert matcher.choose(10.5, lambda rank: False) is None
    assert matcher.choose(10.5, {1, 2, 3}.__contains__) == target


def test_the_last_partner_is_taken_again_only_if_nobody_else_is_free() -> None:
    for seed in range(20):
        matcher = Matcher(0, (1, 2, 3), seed, 1.0)
        matcher.met(1)
        while matcher.target in (None, 1, 2):
            matcher.met(1)
            matcher.choose(0.0, lambda rank: False)
        assert matcher.choose(1.0, {1, 2}.__contains__) == 2
        assert matcher.choose(1.0, {1}.__contains__) == 1


def test_a_suspect_is_never_chosen_and_takes_no_more_patience() -> None:
    matcher = Matcher(0, (1, 2, 3), 0, 1.0)
    matcher.choose(0.0, lambda rank: False)
    suspect = matcher.target
    assert suspect is not None
    for now in (0.2, 0.9, 1.0, 7.0):
        assert matcher.choose(now, {suspect}.__contains__, {suspect}) is None
        assert matcher.target != suspect and matcher.until == 1.0
    assert matcher.choose(7.0, {1, 2, 3}.__contains__, {suspect}) != suspect
    assert matcher.choose(7.0, lambda rank: True, {1, 2, 3}) is None
    assert Matcher(0, (), 0, 1.0).choose(0.0, lambda rank: True) is None


def test_all_that_is_drawn_is_of_seed_rank_and_purpose() -> None:
    def drawn(rank: int, seed: int) -> list[int | None]:
        matcher, told = Matcher(rank, set(range(30)) - {rank}, seed, 1.0), []
        for now in range(20):
            matcher.choose(now - 1, lambda other: False)
            told.append(matcher.choose(now, set(range(now % 3, 30, 3)).__contains__))
            matcher.met(told[-1] or 0)
        return told

    assert drawn(1, 5) == drawn(1, 5)
    assert drawn(1, 5) != drawn(1, 6) and drawn(1, 5) != drawn(2, 5)
    assert generator(0, 1, "matching").random() != generator(0, 1, "data").random()


def test_a_matcher_refuses_what_makes_no_sense() -> None:
    with pytest.raises(ValueError, match="learner 2 is no neighbour of its own"):
        Matcher(2, (1, 2), 0, 1.0)
    for patience in (0.0, -1.0, float("nan")):
        with pytest.raises(ValueError, match="more than 0 seconds"):
            Matcher(2, (1,), 0, patience)


def test_partners_are_counted_and_forgotten() -> None:
    partners = Partners(5, (1, 2))
    assert partners.repeated == 0 and not partners.locked_in()
    for partner in (1, 1, 2, 2, 2):
        partners.met(partner)
    assert list(partners.counts_N) == [0, 2, 3, 0, 0]
    assert (partners.repeats, partners.chances, partners.repeated) == (3, 4, 0.75)
    partners.reset()
    assert partners.counts_N.sum() == 0 and partners.repeated == 0
    partners.met(2)
    assert partners.repeated == 1
    with pytest.raises(ValueError, match="exchange with 4, no neighbour"):
        partners.met(4)


@pytest.mark.parametrize(("degree", "first"), [(1, None), (2, 166), (15, 48)])
def test_the_alarm_comes_when_chance_is_out_of_the_question(degree: int, first: int | None) -> None:
    partners, alarm = Partners(17, range(1, degree + 1)), None
    partners.met(1)
    for repeats in range(1, 300):
        partners.met(1)
        if alarm is None and partners.locked_in():
            alarm = repeats
    assert alarm == first


@pytest.mark.parametrize("degree", [2, 3, 15])
def test_uniform_draws_never_raise_the_alarm(degree: int) -> None:
    partners, rng = Partners(degree + 1, range(1, degree + 1)), np.random.default_rng(1)
    for _ in range(2000):
        partners.met(int(rng.integers(1, degree + 1)))
        assert not partners.locked_in()
    assert abs(partners.repeated - 1 / degree) < 4 * (1 / degree / 2000) ** 0.5
