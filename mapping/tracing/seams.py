"""What is cut at the edges of cells and made whole again: labels along sides, chains of lines.

A cell hands over what touches its edge as *open*: numbered from 0, with the numbers of what
lies along each of its four sides. Joining needs only these numbers, and integer coordinates.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ...tiling.grid import Cell

Labels = NDArray[np.int32]

Number = TypeVar("Number", bound=np.generic)

NONE = -1
"""Nothing lies here."""


@dataclass(frozen=True, slots=True)
class Sides:
    """What lies along the four sides of a cell, pixel by pixel: numbers from 0, or NONE."""

    top: Labels
    left: Labels
    bottom: Labels
    right: Labels

    @classmethod
    def of(cls, labels_HW: Labels) -> Self:
        """The outermost rows and columns of an array of numbers."""
        return cls(labels_HW[0], labels_HW[:, 0], labels_HW[-1], labels_HW[:, -1])

    @classmethod
    def of_array(cls, sides: Labels) -> Self:
        """Undo `array`."""
        return cls(sides[0], sides[1], sides[2], sides[3])

    def array(self) -> Labels:
        """The sides as four rows: top, left, bottom, right."""
        return np.stack([self.top, self.left, self.bottom, self.right])

    def numbers(self) -> Labels:
        """The numbers that touch the edge, each once, rising."""
        touching = np.unique(self.array())
        numbers: Labels = touching[touching != NONE]
        return numbers

    def renumbered(self, old: Labels) -> Self:
        """The same sides where number `old[i]` is now i, and what is not in `old` is NONE."""
        sides = self.array()
        place = np.minimum(np.searchsorted(old, sides), max(len(old) - 1, 0))
        same = old[place] == sides if len(old) else np.zeros(sides.shape, bool)
        return type(self).of_array(np.where(same, place, NONE).astype(np.int32))


def groups(sides: Mapping[Cell, Sides], counts: Mapping[Cell, int]) -> dict[Cell, Labels]:
    """Which open things are one over the cells' edges: by cell, a group's number for each of them.

    `counts` says how many things each cell numbers. Two are one where they face each other over
    an edge, pixel to pixel, directly or by others.
    """
    cells = sorted(counts)
    starts = dict(zip(cells, np.cumsum([0, *(counts[cell] for cell in cells)]), strict=False))
    links = [np.empty((0, 2), np.int64)]
    for cell in cells:
        here = sides[cell]
        for other, mine, theirs in (
            (Cell(cell.row, cell.col + 1), here.right, "left"),
            (Cell(cell.row + 1, cell.col), here.bottom, "top"),
        ):
            if other in sides:
                pairs = np.unique(np.column_stack([mine, getattr(sides[other], theirs)]), axis=0)
                facing = pairs[(pairs != NONE).all(axis=1)].astype(np.int64)
                links.append(facing + [starts[cell], starts[other]])
    total = sum(counts.values())
    one, two = np.concatenate(links).T
    labels = components(total, one, two)
    return {cell: labels[starts[cell] : starts[cell] + counts[cell]] for cell in cells}


def components(
    count: int, one: NDArray[np.integer], other: NDArray[np.integer]
) -> NDArray[np.int32]:
    """The component of each of `count` things, linked where `one[i]` and `other[i]` are."""
    links = coo_array((np.ones(len(one), bool), (one, other)), shape=(count, count))
    labels: NDArray[np.int32] = connected_components(links, directed=False)[1]
    return labels


End = tuple[int, int]
"""A line's number, and 0 for its first point or -1 for its last."""


@dataclass(frozen=True, slots=True)
class Chain:
    """Lines that follow each other: their numbers, and whether each runs against its own sense."""

    links: tuple[tuple[int, bool], ...]

    closed: bool
    """Whether the last is linked to the first again."""


def chains(count: int, linked: Mapping[End, End]) -> list[Chain]:
    """Follow `count` lines over linked ends; each line is in one chain. `linked` is symmetric."""
    done: set[int] = set()
    found: list[Chain] = []
    free = [(number, end) for number in range(count) for end in (0, -1)]
    starts = [end for end in free if end not in linked] + [(number, 0) for number in range(count)]
    for start in starts:
        if start[0] in done:
            continue
        links: list[tuple[int, bool]] = []
        here: End | None = start
        while here is not None and here[0] not in done:
            number, end = here
            done.add(number)
            links.append((number, end == -1))
            here = linked.get((number, -1 if end == 0 else 0))
        found.append(Chain(tuple(links), closed=here is not None))
    return found


def follow(chain: Chain, parts: Sequence[NDArray[Number]]) -> NDArray[Number]:
    """What belongs to the points of a chain's lines, one after the other."""
    return np.concatenate(
        [parts[number][::-1] if against else parts[number] for number, against in chain.links]
    )
