"""Skeletons to paths, and paths made clean, on small networks drawn by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from orthotrace.mapping.tracing.network import (
    Terrain,
    bridged,
    ends_by_node,
    merged,
    pruned,
    rotated,
    spliced,
    straight,
    without_bits,
)
from orthotrace.mapping.tracing.skeleton import Path, skeleton_paths

PLAIN = Terrain(
    pixel_m=lambda node: (1.0, 1.0),
    width_m=lambda node: 6.0,
    passable=lambda path: True,
    known=lambda path: True,
)


def picture(text: str) -> NDArray[np.bool_]:
    return np.array([[letter == "#" for letter in row] for row in text.split()])


def told(paths: list[Path]) -> list[list[tuple[int, int]]]:
    """Paths as lists, each in the sense that sorts first."""
    lists = [[(int(row), int(col)) for row, col in path] for path in paths]
    return sorted(min(path, path[::-1]) for path in lists)


@pytest.mark.parametrize(
    ("text", "count", "nodes"),
    [
        (". ", 0, []),
        ("#", 0, []),
        ("##", 1, [1, 1]),
        (".#. #.# .#.", 1, [2]),
        ("#.# .#. #.#", 4, [1, 1, 1, 1, 4]),
        ("##### ..#.. ..#..", 3, [1, 1, 1, 3]),
        ("##.. .##. ..##", 1, [1, 1]),
        (".#### #...# #...# .####", 1, [2]),
    ],
)
def test_small_skeletons(text: str, count: int, nodes: list[int]) -> None:
    paths = skeleton_paths(picture(text))
    assert len(paths) == count
    assert sorted(map(len, ends_by_node(paths).values())) == nodes


def test_a_ring_starts_at_the_leftmost_of_its_topmost_pixels() -> None:
    (ring,) = skeleton_paths(picture("...##. ..#..# ..#..# ...##."))
    assert ring[0].tolist() == ring[-1].tolist() == [0, 3]
    assert told([rotated(np.concatenate([ring[2:], ring[1:3]]))])[0][0] == (0, 3)


@given(st.integers(0, 2**32 - 1), st.floats(0.1, 0.6))
def test_every_pixel_with_a_neighbour_is_on_a_path(seed: int, share: float) -> None:
    mask_HW = np.random.default_rng(seed).random((9, 9)) < share
    paths = skeleton_paths(mask_HW)
    seen_HW = np.zeros_like(mask_HW)
    for path in paths:
        assert (np.abs(np.diff(path, axis=0)).max(axis=1) == 1).all()
        seen_HW[tuple(path.T)] = True
    padded = np.pad(mask_HW, 1)
    around_HW = sum(
        padded[1 + down : 10 + down, 1 + right : 10 + right].astype(int)
        for down in (-1, 0, 1)
        for right in (-1, 0, 1)
    )
    assert np.array_equal(seen_HW, mask_HW & (around_HW > 1))


def test_paths_are_spliced_where_two_meet() -> None:
    parts = [straight((0, 9), (0, 5)), straight((0, 0), (0, 5)), straight((0, 9), (5, 9))]
    (path,) = spliced(parts)
    assert told([path])[0][0] == (0, 0) and len(path) == 15


def test_of_a_star_of_spurs_the_two_longest_stay() -> None:
    star = [straight((50, 50), end) for end in ((50, 60), (50, 38), (45, 50), (53, 50))]
    assert told(pruned(star, PLAIN, 15)) == told([straight((50, 38), (50, 60))])


def test_a_spur_is_shorter_than_the_limit_or_than_the_road_is_wide() -> None:
    road = [straight((0, 0), (0, 40)), straight((0, 40), (0, 80))]
    branch = straight((0, 40), (10, 40))
    assert len(pruned([*road, branch], PLAIN, 10)) == 3
    assert len(pruned([*road, branch], PLAIN, 11)) == 1
    wide = Terrain(PLAIN.pixel_m, lambda node: 12.0, PLAIN.passable, PLAIN.known)
    assert len(pruned([*road, branch], wide, 5)) == 1


def crossing(apart: int) -> list[Path]:
    one, other = (50, 50), (50, 50 + apart)
    arms = [straight(one, (0, 40)), straight(one, (99, 40))]
    arms += [straight(other, (0, 70)), straight(other, (99, 70))]
    return [*arms, straight(one, other)]


def test_near_junctions_are_merged_and_far_ones_kept() -> None:
    assert sorted(map(len, ends_by_node(merged(crossing(8), PLAIN, 0)).values()))[-1] == 4
    assert sorted(map(len, ends_by_node(merged(crossing(9), PLAIN, 0)).values()))[-1] == 3


def test_junctions_round_nodata_are_not_merged() -> None:
    unknown = Terrain(PLAIN.pixel_m, PLAIN.width_m, PLAIN.passable, lambda path: False)
    assert told(merged(crossing(4), unknown, 0)) == told(crossing(4))


def test_small_loops_are_islands() -> None:
    loop = np.array([(0, 5), (1, 4), (2, 5), (1, 6), (0, 5)])
    roads = [straight((0, 0), (0, 5)), straight((0, 5), (0, 30)), loop]
    assert told(merged(roads, PLAIN, 10)) == told([straight((0, 0), (0, 30))])
    assert len(merged(roads, PLAIN, 5)) == 3


@pytest.mark.parametrize(
    ("other", "count"),
    [
        (((0, 50), (0, 80)), 1),  # straight on
        (((0, 61), (0, 80)), 2),  # too far
        (((20, 45), (40, 45)), 2),  # round a corner
        (((5, 55), (5, 80)), 1),  # a little aside
        (((14, 50), (14, 80)), 2),  # beside
    ],
)
def test_gaps_are_bridged_straight_on(
    other: tuple[tuple[int, int], tuple[int, int]], count: int
) -> None:
    assert len(bridged([straight((0, 0), (0, 40)), straight(*other)], PLAIN, 20)) == count


def test_a_gap_that_cannot_be_passed_stays() -> None:
    wall = Terrain(PLAIN.pixel_m, PLAIN.width_m, lambda path: False, PLAIN.known)
    paths = [straight((0, 0), (0, 40)), straight((0, 50), (0, 80))]
    assert len(bridged(paths, wall, 20)) == 2
    assert len(bridged(paths, PLAIN, 0)) == 2


def test_bits_are_measured_with_all_they_are_connected_to() -> None:
    paths = [straight((0, 0), (0, 20)), straight((0, 20), (15, 20)), straight((50, 0), (50, 25))]
    assert len(without_bits(paths, PLAIN, 30)) == 2
    assert without_bits([], PLAIN, 30) == []


def test_metres_are_those_of_the_ground() -> None:
    flat = Terrain(lambda node: (0.5, 2.0), PLAIN.width_m, PLAIN.passable, PLAIN.known)
    assert flat.length_m(np.array([(0, 0), (0, 8), (3, 8)])) == pytest.approx(4 + 6)
