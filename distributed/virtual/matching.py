"""Who averages with whom, now: the policy of a run in virtual time."""

from collections.abc import Sequence
from typing import Protocol

from ..randomness import generator


class Standing(Protocol):
    """Where the learners stand."""

    def free(self, rank: int) -> bool:
        """Whether `rank` waits to be claimed."""

    def idle(self, rank: int) -> bool:
        """Whether `rank` is in no exchange, and so may claim another."""


class Matcher(Protocol):
    """Finds partners; each question is answered by a rank, or None: nobody yet."""

    def ask(self, rank: int, among: tuple[int, ...], now: Standing) -> int | None:
        """`rank`, which is idle, wants an exchange with one of `among`."""

    def tire(self, rank: int, now: Standing) -> int | None:
        """`rank` has waited for about one transfer time since it asked, or since the last time."""

    def serve(self, rank: int, now: Standing) -> int | None:
        """`rank` has become free: who of those that asked claims it."""

    def done(self, rank: int) -> None:
        """`rank` is no longer asking."""

    def met(self, asked: int, answered: int) -> None:
        """The two have begun an exchange."""


class RandomThenFree:
    """A random target, and after bounded patience a random one that is free.

    To wait for the target without end lets one slow link take everybody's time; to pair whoever is
    free in the order of coming pairs the same few for ever, since those who end together are free
    together. So nobody takes its last partner but as a target that was drawn, and after each
    exchange, asked for or answered, everybody draws anew.
    """

    def __init__(self, size: int, seed: int) -> None:
        self._random = [generator(seed, rank, "matching").random for rank in range(size)]
        self._target: dict[int, int] = {}
        self._among: dict[int, tuple[int, ...]] = {}
        self._waiting: list[dict[int, None]] = [{} for _ in range(size)]
        """By target, who waits for it, the longest first."""

        self._tired: dict[int, None] = {}
        self._last = [-1] * size

    def _draw(self, rank: int, among: Sequence[int]) -> int:
        return among[int(self._random[rank]() * len(among))]

    def _aim(self, rank: int, now: Standing) -> int | None:
        """Draw a target and wait for it; the target if it is free."""
        target = self._draw(rank, self._among[rank])
        self._target[rank] = target
        self._waiting[target][rank] = None
        return target if now.free(target) else None

    def _suits(self, rank: int, other: int) -> bool:
        """Whether a tired `rank` may take `other`, that it did not draw."""
        among = self._among[rank]
        return other in among and (other != self._last[rank] or len(among) == 1)

    def ask(self, rank: int, among: tuple[int, ...], now: Standing) -> int | None:
        """See Matcher."""
        self._among[rank] = among
        return self._aim(rank, now)

    def tire(self, rank: int, now: Standing) -> int | None:
        """See Matcher."""
        self._tired[rank] = None
        found = [p for p in self._among[rank] if now.free(p) and self._suits(rank, p)]
        if found:
            return self._draw(rank, found)
        del self._waiting[self._target[rank]][rank]
        return self._aim(rank, now)

    def serve(self, rank: int, now: Standing) -> int | None:
        """See Matcher."""
        for seeker in self._waiting[rank]:
            if now.idle(seeker):
                return seeker
        tired = [s for s in self._tired if now.idle(s) and self._suits(s, rank)]
        return self._draw(rank, tired) if tired else None

    def done(self, rank: int) -> None:
        """See Matcher."""
        target = self._target.pop(rank, None)
        if target is not None:
            del self._among[rank], self._waiting[target][rank]
            self._tired.pop(rank, None)

    def met(self, asked: int, answered: int) -> None:
        """See Matcher."""
        self._last[asked], self._last[answered] = answered, asked
