"""Lines cut where their state changes: a road that OSM has only in part becomes stretches."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import shapely
from numpy.typing import NDArray

from .matching import Indices, Lengths, Pieces

States = NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Some consecutive pieces of one line, all of one state."""

    line: int
    """Index of the line."""

    state: int

    start: int
    """Index of its first piece, over all lines."""

    stop: int
    """One past its last piece."""

    whole: bool
    """Whether it is the whole line."""


def cut_by_state(pieces: Pieces, state: States, least_m: float) -> Iterator[Stretch]:
    """The stretches of all lines, line by line and along each; none is shorter than `least_m`.

    `state` has one entry for each piece. What is shorter takes the state of the longer of its
    neighbours, the shortest first; a line shorter than `least_m` is one stretch.
    """
    first = np.flatnonzero(np.diff(pieces.line, prepend=-1))
    ends = [*first.tolist(), len(pieces.line)]
    for start, stop in zip(ends[:-1], ends[1:], strict=True):
        found = _runs(state[start:stop], pieces.length_m[start:stop], least_m)
        for begin, end, told in found:
            line = int(pieces.line[start])
            yield Stretch(line, told, start + begin, start + end, len(found) == 1)


def part_of_line(line: shapely.LineString, pieces: Pieces, stretch: Stretch) -> shapely.LineString:
    """A stretch's geometry in the CRS of `line`: its own vertices, and new ends where it was cut.

    `pieces` may have been cut from the same line in another CRS: a place on a line is a vertex and
    a share of the way to the next one, which holds in both. Both sides of a cut get the same end.
    """
    if stretch.whole:
        return line
    points = shapely.get_coordinates(line)

    def place(piece: int) -> tuple[int, Lengths]:
        vertex, share = int(pieces.vertex[piece]), pieces.share[piece]
        return vertex, points[vertex] * (1 - share) + points[vertex + 1] * share

    first, begin = place(stretch.start)
    ends_line = stretch.stop == len(pieces.line) or pieces.line[stretch.stop] != stretch.line
    last, end = (len(points) - 2, points[-1]) if ends_line else place(stretch.stop)
    inner = points[first + 1 : last + 1]
    if len(inner) and np.array_equal(inner[-1], end):
        inner = inner[:-1]
    return shapely.LineString(np.vstack([begin, inner, end]))


def followed(near: Indices, length_m: Lengths, least_m: float) -> Indices:
    """Which of the others a stretch's pieces follow for `least_m`, or for half of the stretch.

    `near` is the index of the other that each piece is nearest to, or -1. In order of index.
    """
    beside = near >= 0
    along_m = np.bincount(near[beside], length_m[beside])
    enough = min(least_m, float(length_m.sum()) / 2)
    return np.flatnonzero((along_m > 0) & (along_m >= enough))


Run = tuple[int, int, int]
"""Pieces of one state: first, one past the last, state."""


def _runs(state: States, length_m: Lengths, least_m: float) -> list[Run]:
    """One line's pieces as runs of one state, each at least `least_m` long, or one run in all.

    A shorter run takes the state of the longer of its neighbours, the shortest run first.
    """
    edges = np.flatnonzero(np.diff(state)) + 1
    ends = [0, *edges.tolist(), len(state)]
    found = [(a, b, int(state[a])) for a, b in zip(ends[:-1], ends[1:], strict=True)]
    along = np.concatenate([[0.0], np.cumsum(length_m)])

    def length(run: Run) -> float:
        return float(along[run[1]] - along[run[0]])

    while len(found) > 1 and length(shortest := min(found, key=length)) < least_m:
        at = found.index(shortest)
        beside = [near for near in (at - 1, at + 1) if 0 <= near < len(found)]
        winner = found[max(beside, key=lambda near: length(found[near]))][2]
        found[at] = (*shortest[:2], winner)
        found = _joined(found)
    return found


def _joined(found: list[Run]) -> list[Run]:
    """Neighbouring runs of one state as one."""
    joined = found[:1]
    for start, stop, state in found[1:]:
        if joined[-1][2] == state:
            joined[-1] = (joined[-1][0], stop, state)
        else:
            joined.append((start, stop, state))
    return joined
