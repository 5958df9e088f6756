"""What is held back: a pure choice, whole cells where there are many, tiles that polygons touch."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from orthotrace.models.errors import ModelError
from orthotrace.models.held import hold_back, touching
from orthotrace.tiling.grid import Cell, Grid
from shapely import box

GRID = Grid("EPSG:26986", (1.0, 1.0), cell=64, tile=16)
EVERYWHERE = box(-1000, -1000, 1000, 1000)


def cells(count: int) -> list[Cell]:
    return [Cell(-1 - number // 4, number % 4) for number in range(count)]


@given(st.integers(1, 9), st.floats(0.01, 0.99), st.integers(0, 5))
def test_few_cells_hold_back_a_share_of_their_tiles(count: int, share: float, seed: int) -> None:
    held = hold_back(GRID, cells(count), EVERYWHERE, share, seed)
    assert len(held) == min(max(round(share * count * 16), 1), count * 16 - 1)
    assert held == hold_back(GRID, reversed(cells(count)), EVERYWHERE, share, seed)


@given(st.integers(10, 20), st.floats(0.1, 0.9), st.integers(0, 5))
def test_many_cells_are_held_back_whole(count: int, share: float, seed: int) -> None:
    held = hold_back(GRID, cells(count), EVERYWHERE, share, seed)
    touched = {cell for tile in held for cell in GRID.cells(tile)}
    assert len(touched) == round(share * count) and len(held) == 16 * len(touched)


def test_another_seed_chooses_others() -> None:
    assert hold_back(GRID, cells(4), EVERYWHERE, 0.2, 0) != hold_back(
        GRID, cells(4), EVERYWHERE, 0.2, 1
    )


def test_no_share_and_no_cells_hold_back_nothing() -> None:
    assert (
        hold_back(GRID, cells(4), EVERYWHERE, 0.0, 0)
        == hold_back(GRID, [], EVERYWHERE, 0.5, 0)
        == frozenset()
    )


def test_all_cannot_be_held_back() -> None:
    with pytest.raises(ModelError, match=r"in \[0, 1\), got 1"):
        hold_back(GRID, cells(4), EVERYWHERE, 1.0, 0)


@given(st.floats(0.01, 0.99), st.integers(0, 5))
def test_only_what_has_labels_is_held_back(share: float, seed: int) -> None:
    """Four tiles of the cell have their middle in it: two columns, two rows."""
    known = box(0, -100, 32, 35)
    held = hold_back(GRID, [Cell(-1, 0)], known, share, seed)
    assert held <= frozenset(touching(GRID, [Cell(-1, 0)], [box(1, 1, 31, 31)]))
    assert len(held) == min(max(round(share * 4), 1), 3)


def test_a_place_smaller_than_a_tile_is_half_held_back() -> None:
    known = box(15, 20, 17, 22)  # on the edge of two tiles, in the middle of none
    held = hold_back(GRID, [Cell(-1, 0)], known, 0.1, 0)
    assert len(held) == 1 and held < touching(GRID, [Cell(-1, 0)], [known])


def test_tiles_that_a_polygon_touches_are_held_back() -> None:
    area = box(20, 20, 40, 30)  # columns 1 and 2, row -2, in tiles of 16
    found = touching(GRID, [Cell(-1, 0)], [area])
    assert sorted((tile.top, tile.left) for tile in found) == [(-32, 16), (-32, 32)]
    assert touching(GRID, [Cell(-1, 0)], []) == frozenset()
