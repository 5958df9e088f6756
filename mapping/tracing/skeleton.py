"""From a skeleton of pixels to paths: what runs between its ends and junctions.

A path is the (row, column) of its pixels, both ends included; its ends are *nodes*, shared with
the other paths there. A ring without a node starts and ends at the leftmost of its topmost pixels.
"""

import numpy as np
from numpy.typing import NDArray

Path = NDArray[np.int64]
"""K x 2, K >= 2: row and column of each pixel. Neighbours in it need not touch."""

_STRAIGHT = ((-1, 0), (0, -1), (0, 1), (1, 0))
_DIAGONAL = ((-1, -1), (-1, 1), (1, -1), (1, 1))


def skeleton_paths(skeleton_HW: NDArray[np.bool_]) -> list[Path]:
    """The paths of a skeleton, in array coordinates. A lone pixel is none."""
    points = np.argwhere(skeleton_HW)
    neighbours = _neighbours(skeleton_HW, points)
    degrees = [len(found) for found in neighbours]
    walked: set[tuple[int, int]] = set()
    seen = np.zeros(len(points), bool)
    paths = []
    for node in np.flatnonzero(np.array(degrees, int) != 2).tolist():
        for first in neighbours[node]:
            if (node, first) not in walked:
                steps = _walk(node, first, neighbours, degrees)
                walked.add((steps[-1], steps[-2]))
                seen[steps] = True
                paths.append(points[steps])
    for start in np.flatnonzero(np.array(degrees, int) == 2).tolist():
        if not seen[start]:  # a ring: rows rise, so its first pixel is the topmost
            steps = _walk(start, neighbours[start][0], neighbours, degrees)
            seen[steps] = True
            paths.append(points[steps])
    return paths


def _walk(start: int, first: int, neighbours: list[list[int]], degrees: list[int]) -> list[int]:
    """From pixel to pixel until a node, or the start again."""
    steps = [start, first]
    while degrees[steps[-1]] == 2 and steps[-1] != start:
        one, other = neighbours[steps[-1]]
        steps.append(other if one == steps[-2] else one)
    return steps


def _neighbours(skeleton_HW: NDArray[np.bool_], points: Path) -> list[list[int]]:
    """Which pixels each is linked to, by their place in `points`.

    A diagonal link counts only where no pixel over an edge makes the same way: so every bend has
    two links and a junction of three ways is one pixel.
    """
    skeleton = np.pad(skeleton_HW, 1)
    number = np.full(skeleton.shape, -1, np.int64)
    row, col = points.T + 1
    number[row, col] = np.arange(len(points))
    links = [number[row + down, col + right] for down, right in _STRAIGHT]
    for down, right in _DIAGONAL:
        round_corner = skeleton[row + down, col] | skeleton[row, col + right]
        links.append(np.where(round_corner, -1, number[row + down, col + right]))
    return [[found for found in each if found >= 0] for each in np.stack(links, 1).tolist()]
