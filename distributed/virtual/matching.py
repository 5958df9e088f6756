"""Who averages with whom, now: the policy of a run in virtual time."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

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
        """`rank` wants an exchange with one of `among`."""

    def tire(self, rank: int, now: Standing) -> int | None:
        """`rank` has asked, and has waited for about one transfer time."""

    def again(self, rank: int, now: Standing) -> int | None:
        """`rank` has asked, was busy answering, and is idle again."""

    def serve(self, rank: int, now: Standing) -> int | None:
        """`rank` has become free: who of those that asked claims it."""

    def done(self, rank: int) -> None:
        """`rank` has its partner, or asks no more."""

    def met(self, asked: int, answered: int) -> None:
        """The two have begun an exchange."""


class RandomThenFree:
    """A random target, and after bounded patience a random one that is free.

    To wait for the target without end lets one slow link take everybody's time; to pair whoever is
    free in the order of coming pairs the same two for ever. This does neither.
    """

    def __init__(self, size: int, seed: int) -> None:
        self._random = [generator(seed, rank, "matching").random for rank in range(size)]
        self._target: dict[int, int] = {}
        self._among: dict[int, tuple[int, ...]] = {}
        self._waiting: list[dict[int, None]] = [{} for _ in range(size)]
        """By target, who waits for it, the longest first."""

        self._tired: dict[int, None] = {}
        self._last = np.full(size, -1).tolist()

    def _draw(self, rank: int, among: Sequence[int]) -> int:
        return among[int(self._random[rank]() * len(among))]

    def _draw_other(self, rank: int, found: list[int]) -> int | None:
        """One of `found`, and not the last partner if there is another."""
        others = [other for other in found if other != self._last[rank]] or found
        return self._draw(rank, others) if others else None

    def ask(self, rank: int, among: tuple[int, ...], now: Standing) -> int | None:
        """See Matcher."""
        target = self._draw(rank, among)
        self._target[rank], self._among[rank] = target, among
        self._waiting[target][rank] = None
        return target if now.free(target) and now.idle(rank) else None

    def tire(self, rank: int, now: Standing) -> int | None:
        """See Matcher."""
        self._tired[rank] = None
        return self.again(rank, now)

    def again(self, rank: int, now: Standing) -> int | None:
        """See Matcher."""
        if rank not in self._among or not now.idle(rank):
            return None
        if now.free(self._target[rank]):
            return self._target[rank]
        if rank not in self._tired:
            return None
        return self._draw_other(rank, [other for other in self._among[rank] if now.free(other)])

    def serve(self, rank: int, now: Standing) -> int | None:
        """See Matcher."""
        for seeker in self._waiting[rank]:
            if now.idle(seeker):
                return seeker
        tired = [s for s in self._tired if s != rank and rank in self._among[s] and now.idle(s)]
        return self._draw_other(rank, tired)

    def done(self, rank: int) -> None:
        """See Matcher."""
        target = self._target.pop(rank, None)
        if target is not None:
            del self._among[rank], self._waiting[target][rank]
            self._tired.pop(rank, None)

    def met(self, asked: int, answered: int) -> None:
        """See Matcher."""
        self._last[asked], self._last[answered] = answered, asked
