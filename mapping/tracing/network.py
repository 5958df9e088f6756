"""A network of paths made clean: spurs off, junctions merged, gaps closed, bits dropped.

Each step is a function from paths to paths and decides by what lies near, so that two views of one
place come to the same result except near their edges. Coordinates are absolute pixels; lengths are
metres on the ground.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from .seams import End, chains, components, follow
from .skeleton import Path

Node = tuple[int, int]
"""Row and column of a path's end."""

NEAR_WIDTHS = 1.5
"""The skeleton of a crossing has two junctions, about so many widths apart where roads meet at 60
degrees (2 at 45); junctions that are farther apart may well be two."""

HEADING_PX = 12
"""Pixels from a dead end back to where its heading is taken from."""

MAX_BEND_DEG = 30.0
"""Two dead ends are joined if neither turns by more than this."""


@dataclass(frozen=True, slots=True)
class Terrain:
    """What the paths lie on."""

    pixel_m: Callable[[Node], tuple[float, float]]
    """Width and height on the ground of the pixel there."""

    width_m: Callable[[Node], float]
    """Width of the road at a pixel of the skeleton."""

    passable: Callable[[Path], bool]
    """Whether a road could lead over these pixels."""

    known: Callable[[Path], bool]
    """Whether the rectangle of these pixels, and a pixel around it, holds no nodata."""

    def length_m(self, path: Path) -> float:
        """Along the path."""
        return line_m(path, self.pixel_m(min(ends(path))))


def line_m(line: NDArray[np.number], pixel_m: tuple[float, float]) -> float:
    """Length of a line of (row, column) for pixels of this width and height."""
    down, right = np.diff(line, axis=0).T
    return float(np.hypot(right * pixel_m[0], down * pixel_m[1]).sum())


def ends(path: Path) -> tuple[Node, Node]:
    """The first and the last pixel."""
    return (int(path[0, 0]), int(path[0, 1])), (int(path[-1, 0]), int(path[-1, 1]))


def ends_by_node(paths: list[Path]) -> dict[Node, list[End]]:
    """Which ends of which paths meet at each node."""
    found: dict[Node, list[End]] = defaultdict(list)
    for number, path in enumerate(paths):
        first, last = ends(path)
        found[first].append((number, 0))
        found[last].append((number, -1))
    return dict(found)


def spliced(paths: list[Path]) -> list[Path]:
    """Paths made one where just two ends meet; rings without another path start anew at the top."""
    linked: dict[End, End] = {}
    for meeting in ends_by_node(paths).values():
        if len(meeting) == 2:
            linked[meeting[0]], linked[meeting[1]] = meeting[1], meeting[0]
    result = []
    for chain in chains(len(paths), linked):
        path = without_repeats(follow(chain, paths))
        result.append(rotated(path) if chain.closed else path)
    return result


def without_repeats(path: Path) -> Path:
    """Each pixel once in a row."""
    once: Path = path[np.append(True, (np.diff(path, axis=0) != 0).any(axis=1))]
    return once


def rotated(ring: Path) -> Path:
    """A ring that starts and ends at the leftmost of its topmost pixels."""
    start = topmost(ring[:-1])
    return np.concatenate([ring[start:-1], ring[: start + 1]])


def topmost(path: Path) -> int:
    """Where in the path the leftmost of its topmost pixels is."""
    return int(np.lexsort((path[:, 1], path[:, 0]))[0])


def pruned(paths: list[Path], terrain: Terrain, spur_m: float) -> list[Path]:
    """Without spurs: dead ends at a junction that are shorter than `spur_m` or the road is wide.

    Of a star of spurs the two longest stay. Goes on until nothing is a spur.
    """
    paths = spliced(paths)
    while drop := _spurs(paths, terrain, spur_m):
        paths = spliced([path for number, path in enumerate(paths) if number not in drop])
    return paths


def _spurs(paths: list[Path], terrain: Terrain, spur_m: float) -> set[int]:
    meeting = ends_by_node(paths)
    spurs: dict[Node, list[int]] = defaultdict(list)
    for number, path in enumerate(paths):
        inner, outer = sorted(ends(path), key=lambda node: -len(meeting[node]))
        if len(meeting[outer]) == 1 and len(meeting[inner]) > 2:
            if terrain.length_m(path) < max(spur_m, terrain.width_m(inner)):
                spurs[inner].append(number)
    drop: set[int] = set()
    for node, numbers in spurs.items():
        numbers.sort(key=lambda number: (-terrain.length_m(paths[number]), paths[number].tolist()))
        drop.update(numbers[2 if len(numbers) == len(meeting[node]) else 0 :])
    return drop


def merged(paths: list[Path], terrain: Terrain, loop_m: float) -> list[Path]:
    """Junctions within NEAR_WIDTHS of the road's width made one, at the middlemost of them.

    Where nodata lies among them they stay: a road that is moved could come to lie on it.
    Loops at one junction of at most `loop_m` are dropped: islands in the road.
    """
    meeting = ends_by_node(paths)
    nodes = sorted(meeting)
    place = {node: number for number, node in enumerate(nodes)}
    short = {
        number: (place[first], place[last])
        for number, (first, last) in enumerate(map(ends, paths))
        if len(meeting[first]) > 2 and len(meeting[last]) > 2 and first != last
        if _is_short(paths[number], terrain)
    }
    one, other = np.array(list(short.values()), int).reshape(-1, 2).T
    at = np.array(nodes, int).reshape(-1, 2)
    centres = _centres(at, _known_groups(at, components(len(nodes), one, other), terrain))
    result = []
    for number, path in enumerate(paths):
        first, last = (centres[place[node]] for node in ends(path))
        moved = np.concatenate([[first], path[1:-1], [last]])
        loop = (first == last).all()
        if not (loop and (number in short or terrain.length_m(moved) <= loop_m)):
            result.append(without_repeats(moved))
    return spliced(result)


def _is_short(path: Path, terrain: Terrain) -> bool:
    wide = max(terrain.width_m(node) for node in ends(path))
    return terrain.length_m(path) < max(
        NEAR_WIDTHS * wide, 3 * max(terrain.pixel_m(min(ends(path))))
    )


def _known_groups(nodes: Path, group: NDArray[np.integer], terrain: Terrain) -> NDArray[np.integer]:
    """The groups, but those with nodata among them taken apart."""
    apart = group.copy()
    for number in np.flatnonzero(np.bincount(group) > 1):
        members = np.flatnonzero(group == number)
        if not terrain.known(nodes[members]):
            apart[members] = len(nodes) + members
    numbered: NDArray[np.integer] = np.unique(apart, return_inverse=True)[1]
    return numbered


def _centres(nodes: Path, group: NDArray[np.integer]) -> Path:
    """For each node the one of its group that lies nearest to the group's middle."""
    counts = np.bincount(group)
    middle = np.column_stack([np.bincount(group, nodes[:, axis]) / counts for axis in (0, 1)])
    off = ((nodes - middle[group]) ** 2).sum(axis=1).round(6)
    order = np.lexsort((nodes[:, 1], nodes[:, 0], off, group))
    first = order[np.append(True, np.diff(group[order]) != 0)] if len(order) else order
    centres: Path = nodes[first][group]
    return centres


def bridged(paths: list[Path], terrain: Terrain, gap_m: float) -> list[Path]:
    """With straight pieces between dead ends that look at each other over at most `gap_m`.

    Each end must be the other's best, and what lies between them passable.
    """
    dead = sorted((node, at[0]) for node, at in ends_by_node(paths).items() if len(at) == 1)
    if len(dead) < 2 or gap_m <= 0:
        return paths
    nodes = np.array([node for node, _ in dead])
    pixels_m = np.array([terrain.pixel_m(node) for node, _ in dead])[:, ::-1]
    headings = np.array([_heading(paths[number], end) for _, (number, end) in dead])
    best: dict[int, tuple[float, int]] = {}
    for one, other in sorted(KDTree(nodes).query_pairs(gap_m / pixels_m.min())):
        way = nodes[other] - nodes[one]
        length_m = float(np.hypot(*(way * pixels_m[one])))
        bends = np.array([headings[one] @ way, headings[other] @ -way]) / np.hypot(*way)
        ahead = bends.min() >= np.cos(np.radians(MAX_BEND_DEG))
        if dead[one][1][0] != dead[other][1][0] and length_m <= gap_m and ahead:
            for here, there in ((one, other), (other, one)):
                best[here] = min(best.get(here, (np.inf, -1)), (length_m, there))
    gaps = [
        straight(dead[one][0], dead[other][0])
        for one, (_, other) in sorted(best.items())
        if one < other and best[other][1] == one
    ]
    return spliced(paths + [gap for gap in gaps if terrain.passable(gap)])


def _heading(path: Path, end: int) -> NDArray[np.float64]:
    """Unit vector (down, right) out of a path's end."""
    outward = path[::-1] if end == 0 else path
    step = outward[-1] - outward[max(-len(outward), -HEADING_PX)]
    heading: NDArray[np.float64] = step / np.hypot(*step)
    return heading


def straight(one: Node, other: Node) -> Path:
    """Pixels in a straight line from one to the other."""
    count = max(abs(other[0] - one[0]), abs(other[1] - one[1])) + 1
    return np.linspace(one, other, count).round().astype(np.int64)


def without_bits(paths: list[Path], terrain: Terrain, least_m: float) -> list[Path]:
    """Without connected paths that together are shorter than `least_m`."""
    place = {node: number for number, node in enumerate(sorted(ends_by_node(paths)))}
    first, last = (
        np.array([[place[node] for node in ends(path)] for path in paths], int).reshape(-1, 2).T
    )
    group = components(len(place), first, last)[first]
    lengths = np.array([terrain.length_m(path) for path in paths])
    total = np.bincount(group, lengths)
    return [path for path, number in zip(paths, group, strict=True) if total[number] >= least_m]
