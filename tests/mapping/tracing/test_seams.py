"""Labels along sides and chains of lines, against the whole."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from orthotrace.mapping.tracing.seams import NONE, Chain, Sides, chains, components, follow, groups
from orthotrace.tiling.grid import Cell
from scipy import ndimage

SIDE = 8


@given(st.integers(0, 2**32 - 1), st.floats(0.3, 0.7))
def test_groups_are_the_components_of_the_whole(seed: int, share: float) -> None:
    mask_HW = np.random.default_rng(seed).random((3 * SIDE, 4 * SIDE)) < share
    whole_HW, _ = ndimage.label(mask_HW)
    sides, counts, wholes = {}, {}, {}
    for row in range(3):
        for col in range(4):
            at = np.s_[row * SIDE : (row + 1) * SIDE, col * SIDE : (col + 1) * SIDE]
            labels_HW, count = ndimage.label(mask_HW[at])
            cell = Cell(row, col)
            sides[cell], counts[cell] = Sides.of(labels_HW - 1), count
            wholes[cell] = ndimage.maximum(whole_HW[at], labels_HW, range(1, count + 1))
    found = groups(sides, counts)
    pairs = {
        (int(group), int(whole))
        for cell in counts
        for group, whole in zip(found[cell], np.atleast_1d(wholes[cell]), strict=True)
    }
    assert len({group for group, _ in pairs}) == len({whole for _, whole in pairs}) == len(pairs)


def test_cells_that_are_not_neighbours_share_nothing() -> None:
    labels_HW = np.zeros((2, 2), np.int32)
    sides = {Cell(0, 0): Sides.of(labels_HW), Cell(1, 1): Sides.of(labels_HW)}
    found = groups(sides, {Cell(0, 0): 1, Cell(1, 1): 1})
    assert found[Cell(0, 0)] != found[Cell(1, 1)]


def test_sides_are_renumbered_and_kept_as_an_array() -> None:
    labels_HW = np.array([[3, 5, NONE], [7, 7, 7], [9, NONE, 3]], np.int32)
    sides = Sides.of(labels_HW)
    assert sides.numbers().tolist() == [3, 5, 7, 9]
    told = sides.renumbered(np.array([3, 9], np.int32))
    assert told.array().tolist() == [[0, -1, -1], [0, -1, 1], [1, -1, 0], [-1, -1, 0]]
    assert Sides.of_array(told.array()).array().tolist() == told.array().tolist()
    nothing = sides.renumbered(np.empty(0, np.int32))
    assert (nothing.array() == NONE).all() and not len(nothing.numbers())


def test_components_without_links() -> None:
    none = np.empty(0, int)
    assert components(3, none, none).tolist() == [0, 1, 2]
    assert not len(components(0, none, none))


def test_chains_follow_lines_in_either_sense() -> None:
    linked = {(0, -1): (2, -1), (2, -1): (0, -1), (2, 0): (1, 0), (1, 0): (2, 0)}
    (found,) = chains(3, linked)
    assert found == Chain(((0, False), (2, True), (1, False)), closed=False)
    lines = [np.array([0, 1]), np.array([4, 5]), np.array([3, 2])]
    assert follow(found, lines).tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_ring_of_lines_is_one_closed_chain(count: int) -> None:
    linked = {}
    for number in range(count):
        one, other = (number, -1), ((number + 1) % count, 0)
        linked[one], linked[other] = other, one
    (found,) = chains(count, linked)
    assert found.closed and [number for number, _ in found.links] == list(range(count))
