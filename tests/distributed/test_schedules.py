"""Claims by four learners, in every order in which they can take their steps.

An actor is a function that is run turn by turn, and one call of the board is one step. The calls
of a turn are found by running it again with the answers it has had so far, until it asks for one
more: so the real code is explored, not a model of it, and a state is no more than the board, the
clock and what each actor remembers between turns.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from orthotrace.distributed.claims import (
    FREE,
    Board,
    Lease,
    MemoryBoard,
    claim,
    claim_pair,
    free,
    holds,
    lease_on,
    open_for_claims,
)

Memory = Any
"""What an actor keeps from turn to turn; hashable."""

Turn = Callable[[Memory, "Script", Any, float], Memory]
"""(memory, board, choice, now) -> memory."""


class Unanswered(Exception):
    """A turn asks for a call that has not been made yet."""


class Script:
    """A board that answers from a list, and stops the turn where the list ends."""

    def __init__(self, answers: Sequence[bytes]) -> None:
        self._answers = iter(answers)

    def compare_set(self, key: str, expected: str, desired: str, /) -> bytes:
        return self._answer("compare_set", key, expected, desired)

    def set(self, key: str, desired: str) -> bytes:
        """What no actor of ours may use: written without a look."""
        return self._answer("set", key, desired)

    def _answer(self, *call: str) -> bytes:
        try:
            return next(self._answers)
        except StopIteration:
            raise Unanswered(*call) from None


@dataclass(frozen=True, slots=True)
class Actor:
    """Where one actor stands."""

    memory: Hashable
    answers: tuple[bytes, ...] | None = None
    """Of the turn under way; None between turns."""

    choice: Hashable = None
    now: float = 0
    """What the turn was begun with."""


@dataclass(frozen=True, slots=True)
class State:
    """All that decides what can happen next."""

    lines: tuple[tuple[str, str], ...]
    now: float
    actors: tuple[Actor, ...]

    def line(self, key: str) -> str:
        return dict(self.lines).get(key, "")

    def with_actor(self, place: int, actor: Actor) -> "State":
        actors = (*self.actors[:place], actor, *self.actors[place + 1 :])
        return replace(self, actors=actors)


def taken(state: State, place: int, turn: Turn, choice: Hashable) -> State:
    """The state after one more call of the actor at `place`."""
    actor = state.actors[place]
    if actor.answers is None:
        actor = replace(actor, answers=(), choice=choice, now=state.now)
    call = _run(turn, actor)
    if isinstance(call, Actor):
        return state.with_actor(place, call)
    lines = dict(state.lines)
    answer = _carried_out(lines, call)
    actor = replace(actor, answers=(*(actor.answers or ()), answer))
    after = _run(turn, actor)
    state = replace(state, lines=tuple(sorted(lines.items())))
    return state.with_actor(place, after if isinstance(after, Actor) else actor)


def _run(turn: Turn, actor: Actor) -> Actor | tuple[str, ...]:
    """The actor after its turn, or the call it waits for."""
    try:
        memory = turn(actor.memory, Script(actor.answers or ()), actor.choice, actor.now)
    except Unanswered as call:
        return call.args
    return Actor(memory)


def _carried_out(lines: dict[str, str], call: tuple[str, ...]) -> bytes:
    if call[0] == "set":
        lines[call[1]] = call[2]
        return b""
    board = MemoryBoard()
    board._lines = lines
    return board.compare_set(*call[1:])


def explored(
    start: State, successors: Callable[[State], Iterator[State]], most: int = 100_000
) -> dict[State, set[State]]:
    """Every state that can be reached, with what can come next; AssertionError above `most`."""
    found: dict[State, set[State]] = {}
    open_states = [start]
    while open_states:
        state = open_states.pop()
        if state not in found:
            found[state] = set(successors(state)) - {state}
            open_states += found[state]
            assert len(found) <= most, "too many states to explore"
    return found


def stuck(found: dict[State, set[State]], finished: Callable[[State], bool]) -> list[State]:
    """The states from which no order of steps leads to a finished one."""
    before: dict[State, list[State]] = {}
    for state, after in found.items():
        for each in after:
            before.setdefault(each, []).append(state)
    good = {state for state in found if finished(state)}
    open_states = list(good)
    while open_states:
        new = [s for s in before.get(open_states.pop(), []) if s not in good]
        good.update(new)
        open_states += new
    return [state for state in found if state not in good]


LONG, SOON = 1e6, 5.0
"""Leases that never expire here, and such as do when the clock goes from 0 to 10."""


@dataclass(frozen=True, slots=True)
class Asker:
    """What a learner that asks remembers."""

    rank: int
    left: int
    """Exchanges still to come."""

    partner: int = -1
    lease: Lease | None = None
    talks: bool = False


@dataclass(frozen=True, slots=True)
class Server:
    """What a learner that is asked remembers."""

    rank: int
    lease: Lease | None = None
    talks: bool = False


def asks(both: bool, length: float) -> Turn:
    """Claims a partner (and itself, if `both`), waits for it, talks, and gives itself back."""

    def turn(self: Asker, board: Board, choice: int, now: float) -> Asker:
        if self.lease is None:
            if not self.left:
                return self
            lease = Lease(self.rank, self.left, now + length)
            won = (claim_pair if both else claim)(board, choice, lease, now)
            return replace(self, partner=choice, lease=lease) if won else self
        if self.talks or not holds(board, self.partner, self.lease):
            if both:
                free(board, self.rank, self.lease)
            return Asker(self.rank, self.left - self.talks)
        return self

    return turn


def serves(self: Server, board: Board, choice: int, now: float) -> Server:
    """Looks who has claimed it, talks to that one alone, and frees itself of that lease."""
    if self.talks and self.lease:
        free(board, self.rank, self.lease)
        return Server(self.rank)
    lease = lease_on(board, self.rank)
    if lease and lease.holder != self.rank and lease.expired(now):
        free(board, self.rank, lease)
        return Server(self.rank)
    return Server(self.rank, lease if lease and lease.holder != self.rank else None)


def erases(self: Server, board: Script, choice: int, now: float) -> Server:
    """The known fault: who has waited for a claim in vain writes that it is free."""
    after = serves(self, board, choice, now)
    if after.lease is None and not self.talks:
        board.set(f"claim/{self.rank}", FREE)
    return after


class World:
    """Four learners, who asks, who serves, and what can go wrong among them."""

    def __init__(self, ask: Turn, serve: Turn, partners: dict[int, tuple[int, ...]], times: int):
        self.turns: list[tuple[Turn, tuple[int, ...]]] = []
        actors = []
        for rank, choices in partners.items():
            self.turns.append((ask, choices))
            actors.append(Actor(Asker(rank, times)))
        board = MemoryBoard()
        for rank in sorted({r for choices in partners.values() for r in choices}):
            open_for_claims(board, rank)
            self.turns.append((serve, (0,)))
            actors.append(Actor(Server(rank)))
        self.start = State(tuple(sorted(board._lines.items())), 0.0, tuple(actors))

    def dead_after_claim(self, place: int, partner: int) -> None:
        """The asker at `place` has claimed and is no more."""
        rank = self.start.actors[place].memory.rank
        lines = dict(self.start.lines) | {f"claim/{partner}": Lease(rank, 9, SOON).line()}
        self.start = replace(self.start, lines=tuple(sorted(lines.items())))
        self.start = self.start.with_actor(place, Actor(Asker(rank, 0)))

    def successors(self, state: State, ticks: bool) -> Iterator[State]:
        if ticks and state.now == 0:
            yield replace(state, now=10.0)
        for place, (turn, choices) in enumerate(self.turns):
            for choice in choices if state.actors[place].answers is None else choices[:1]:
                yield taken(state, place, turn, choice)
        yield from self._beginnings(state)

    def _beginnings(self, state: State) -> Iterator[State]:
        """Both sides of an exchange are there, and begin to talk."""
        between = [(p, a.memory) for p, a in enumerate(state.actors) if a.answers is None]
        for at, asker in between:
            for where, server in between:
                if isinstance(asker, Asker) and isinstance(server, Server) and asker.lease:
                    met = asker.partner == server.rank and asker.lease == server.lease
                    if met and not asker.talks and not server.talks:
                        begun = state.with_actor(at, Actor(replace(asker, talks=True)))
                        yield begun.with_actor(where, Actor(replace(server, talks=True)))

    def faults(self, ticks: bool = False) -> set[str]:
        """What is wrong in any order of steps, in a word each."""
        found = explored(self.start, lambda state: self.successors(state, ticks))
        faults = {fault for state in found for fault in wrong_in(state)}
        return faults | ({"stuck"} if stuck(found, finished) else set())


def wrong_in(state: State) -> Iterator[str]:
    memories = [actor.memory for actor in state.actors]
    talking = [m.rank for m in memories if m.talks]
    if len(talking) != len(set(talking)):
        yield "two exchanges at once"
    for asker in memories:
        if isinstance(asker, Asker) and asker.lease and not asker.lease.expired(state.now):
            served = any(m.lease == asker.lease and m.talks for m in memories)
            line = state.line(f"claim/{asker.partner}")
            if not asker.talks and not served and line != asker.lease.line():
                yield "a lost claim"


def finished(state: State) -> bool:
    """All have had their exchanges, and nobody is under a claim."""
    idle = all(a.answers is None and a.memory.lease is None for a in state.actors)
    left = sum(a.memory.left for a in state.actors if isinstance(a.memory, Asker))
    return idle and not left and all(line == FREE for _, line in state.lines)


TWO_PARTS = {0: (1, 3), 2: (1, 3)}
RING = {0: (1, 3), 1: (2, 0), 2: (3, 1), 3: (0, 2)}


TWO_PARTS = {0: (1, 3), 2: (1, 3)}
CYCLE = {0: (1,), 1: (2,), 2: (3,), 3: (0,)}
BOTH_ASK = {0: (1,), 1: (0,)}


def waits_with_its_own_line(self: Asker, board: Board, choice: int, now: float) -> Asker:
    """The known fault: claims itself, and keeps that while it waits for the other."""
    if self.lease is None and self.left:
        lease = Lease(self.rank, self.left, now + LONG)
        claim(board, self.rank, lease, now)
        if not holds(board, self.rank, lease) or not claim(board, choice, lease, now):
            return self
        return replace(self, partner=choice, lease=lease)
    # A Turn is of any actor; this one gives an Asker.
    return asks(True, LONG)(self, board, choice, now)  # type: ignore[no-any-return]


def test_two_parts_two_exchanges_each() -> None:
    assert World(asks(False, LONG), serves, TWO_PARTS, 2).faults() == set()


def test_four_that_each_ask_the_next_and_are_asked() -> None:
    assert World(asks(True, LONG), serves, CYCLE, 1).faults() == set()


def test_two_that_ask_each_other_twice() -> None:
    assert World(asks(True, LONG), serves, BOTH_ASK, 2).faults() == set()


@pytest.mark.parametrize(("both", "partners"), [(False, TWO_PARTS), (True, BOTH_ASK)])
def test_leases_that_end_in_the_middle(both: bool, partners: dict[int, tuple[int, ...]]) -> None:
    assert World(asks(both, SOON), serves, partners, 1).faults(ticks=True) == set()


def test_a_dead_learner_s_claim_ends_with_its_lease() -> None:
    world = World(asks(False, SOON), serves, TWO_PARTS, 2)
    world.dead_after_claim(0, partner=1)
    assert world.faults(ticks=True) == set()
    assert "stuck" in world.faults(ticks=False)  # the claim stays for ever if no time passes


def test_who_writes_free_without_a_look_erases_claims() -> None:
    assert "a lost claim" in World(asks(False, LONG), erases, TWO_PARTS, 1).faults()


def test_who_asks_without_a_claim_on_itself_talks_to_two() -> None:
    assert "two exchanges at once" in World(asks(False, LONG), serves, BOTH_ASK, 1).faults()


def test_who_waits_while_it_holds_a_claim_never_ends() -> None:
    assert "stuck" in World(waits_with_its_own_line, serves, CYCLE, 1).faults()
