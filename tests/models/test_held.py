"""What is held back: a pure choice, whole cells where there are many, tiles that polygons touch."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from orthotrace.models.errors import ModelError
from orthotrace.models.held import hold_back, touching
from orthotrace.tiling.grid import Cell, Grid
from shapely import box

GRID = Grid("EPSG:26986", (1.0, 1.0), cell=64, tile=16)


def cells(count: int) -> list[Cell]:
    return [Cell(-1 - number // 4, number % 4) for number in range(count)]


@given(st.integers(1, 9), st.floats(0.01, 0.99), st.integers(0, 5))
def test_few_cells_hold_back_a_share_of_their_tiles(count: int, share: float, seed: int) -> None:
    held = hold_back(GRID, cells(count), share, seed)
    assert len(held) == min(max(round(share * count * 16), 1), count * 16 - 1)
    assert held == hold_back(GRID, reversed(cells(count)), share, seed)


@given(st.integers(10, 20), st.floats(0.1, 0.9), st.integers(0, 5))
def test_many_cells_are_held_back_whole(count: int, share: float, seed: int) -> None:
    held = hold_back(GRID, cells(count), share, seed)
    touched = {cell for tile in held for cell in GRID.cells(tile)}
    assert len(touched) == round(share * count) and len(held) == 16 * len(touched)


def test_another_seed_chooses_others() -> None:
    assert hold_back(GRID, cells(4), 0.2, 0) != hold_back(GRID, cells(4), 0.2, 1)


def test_no_share_and_no_cells_hold_back_nothing() -> None:
    assert hold_back(GRID, cells(4), 0.0, 0) == hold_back(GRID, [], 0.5, 0) == frozenset()


def test_all_cannot_be_held_back() -> None:
    with pytest.raises(ModelError, match=r"in \[0, 1\), got 1"):
        hold_back(GRID, cells(4), 1.0, 0)


def test_tiles_that_a_polygon_touches_are_held_back() -> None:
    area = box(20, 20, 40, 30)  # columns 1 and 2, row -2, in tiles of 16
    found = touching(GRID, [Cell(-1, 0)], [area])
    assert sorted((tile.top, tile.left) for tile in found) == [(-32, 16), (-32, 32)]
    assert touching(GRID, [Cell(-1, 0)], []) == frozenset()
