"""Who is taken for an exchange, by leases on a board that all learners see.

Each learner that may be asked has one line on the board. It says `free`, or whose lease it is
under; each change is one compare-and-set. Two rules make it right. Only the claimed learner frees
its line, once it has served the claim, and by naming the lease that it served: one that writes
`free` outright erases a claim that came in between. And nobody waits while it holds a claim on
another: who does not get both lines gives back its own at once, so that no cycle can form in any
graph. A line under its own learner's lease is taken over by nobody, nor by that learner under
another's: it may be in the middle of an exchange that has outlived its lease, and one exchange at
a time is what the lines are for.

Time is always an argument, in seconds of one clock for all learners: where clocks differ, a lease
is taken over that much too early, which costs an exchange and breaks nothing.
"""

from dataclasses import dataclass
from math import isfinite
from threading import Lock
from typing import Protocol

FREE = "free"


class Board(Protocol):
    """Lines that all learners see; a `torch.distributed.Store` is one."""

    def compare_set(self, key: str, expected: str, desired: str, /) -> bytes | str:
        """Set `key` to `desired` if it says `expected`; either way, what it says now.

        A missing key counts as empty. As in torch's TCPStore, asked for a missing key and
        something not empty, it sets nothing and answers `expected`.
        """


class MemoryBoard:
    """A board inside one process, for tests and virtual time; any number of threads."""

    def __init__(self) -> None:
        self._lines: dict[str, str] = {}
        self._lock = Lock()

    def compare_set(self, key: str, expected: str, desired: str, /) -> bytes:
        """See `Board.compare_set`."""
        with self._lock:
            line = self._lines.get(key)
            if line == expected or (line is None and not expected):
                line = self._lines[key] = desired
        return (expected if line is None else line).encode()


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to one exchange, until it expires."""

    holder: int
    """The learner that asks, 0 or more."""

    epoch: int
    """The holder's own number for it, another one for each claim it makes, restarts included."""

    expires: float
    """Seconds; from then on somebody else may take over."""

    def __post_init__(self) -> None:
        if self.holder < 0 or self.epoch < 0 or not isfinite(self.expires):
            raise ValueError(f"a lease has a holder, an epoch and an end, got {self}")

    def expired(self, now: float) -> bool:
        """Whether its time is over."""
        return now >= self.expires

    def line(self) -> str:
        """Its form on the board, `holder:epoch:expires`; `read` is its inverse."""
        return f"{self.holder}:{self.epoch}:{self.expires!r}"

    @classmethod
    def read(cls, line: str) -> "Lease":
        """The lease of a line; ValueError if it is none."""
        try:
            holder, epoch, expires = line.split(":")
            return cls(int(holder), int(epoch), float(expires))
        except ValueError as problem:
            raise ValueError(f'wanted a line "holder:epoch:expires", got "{line}"') from problem


def open_for_claims(board: Board, rank: int) -> None:
    """Said by `rank` once, when it starts: it may be claimed from now on.

    One that comes back lifts its own old lease, and sits out another's.
    """
    told = _text(board.compare_set(_key(rank), "", FREE))
    if told != FREE and Lease.read(told).holder == rank:
        board.compare_set(_key(rank), told, FREE)


def lease_on(board: Board, rank: int) -> Lease | None:
    """The lease that `rank` is under, expired or not; None if it is free or not open."""
    line = _text(board.compare_set(_key(rank), "", ""))  # torch's `get` waits for a missing key
    return Lease.read(line) if line not in ("", FREE) else None


def is_free(board: Board, rank: int, now: float) -> bool:
    """Whether a claim on `rank` would be granted, as things stand."""
    line = _text(board.compare_set(_key(rank), "", ""))
    return line == FREE or (line != "" and _lapsed(Lease.read(line), rank, now))


def claim(board: Board, rank: int, lease: Lease, now: float) -> bool:
    """Take `rank` if it is free or another's lease has expired; whether it is now under `lease`.

    A learner takes its own line only if it is free. ValueError if `lease` itself has expired.
    """
    if lease.expired(now):
        raise ValueError(f"{lease} has expired at {now}")
    told = _text(board.compare_set(_key(rank), FREE, lease.line()))
    if told == FREE:  # the answer for a line that is missing
        return False
    if told in ("", lease.line()):
        return told != ""
    if lease.holder == rank or not _lapsed(Lease.read(told), rank, now):
        return False
    return _text(board.compare_set(_key(rank), told, lease.line())) == lease.line()


def claim_pair(board: Board, rank: int, lease: Lease, now: float) -> bool:
    """Take `rank`, and the holder's own line with it, so that nobody claims the holder meanwhile.

    Both or neither: for graphs in which each may ask and be asked. A learner that nobody asks (the
    asking part of a bipartite graph) needs `claim` alone.
    """
    if rank == lease.holder:
        raise ValueError(f"learner {rank} has no exchange with itself")
    if not claim(board, lease.holder, lease, now):
        return False
    if claim(board, rank, lease, now):
        return True
    free(board, lease.holder, lease)
    return False


def holds(board: Board, rank: int, lease: Lease) -> bool:
    """Whether `rank` is under `lease` still: what both sides look at before they begin."""
    return lease_on(board, rank) == lease


def free(board: Board, rank: int, lease: Lease) -> bool:
    """Said by `rank` itself when it is done with `lease`, served or expired: it may be claimed.

    False if another has taken the line over meanwhile: it is that one's, and stays so.
    """
    return _text(board.compare_set(_key(rank), lease.line(), FREE)) == FREE


def _lapsed(lease: Lease, rank: int, now: float) -> bool:
    """Whether another learner may take `rank` over from `lease`."""
    return lease.holder != rank and lease.expired(now)


def _key(rank: int) -> str:
    return f"claim/{rank}"


def _text(told: bytes | str) -> str:
    return told.decode() if isinstance(told, bytes) else told
