"""Roads from scores: every awkward skeleton, and the same network whatever the cells."""

from collections import Counter

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from orthotrace.mapping.errors import MappingError
from orthotrace.mapping.tracing.centrelines import Piece, Road
from orthotrace.mapping.tracing.roads import (
    Crossings,
    RoadRecipe,
    cut,
    join_roads,
    road_margin,
    trace_roads,
)
from orthotrace.tiling.grid import Cell, Grid, Window
from rasterio.features import rasterize
from scipy import ndimage

Scores = NDArray[np.uint8]

NO, YES, NODATA = 20, 200, 255
GRID = Grid("EPSG:26986", (1.0, 1.0), cell=1024, tile=16)
HOME = (-900096, 230400)
"""The corner of a cell where a metre of the CRS is a metre."""


def traced(
    scores_HW: Scores,
    cell: int = 1024,
    corner: tuple[int, int] = HOME,
    recipe: RoadRecipe | None = None,
) -> tuple[list[Road], Crossings]:
    """All roads of an array whose first pixel is `corner`; around it is nodata."""
    recipe = recipe or RoadRecipe()
    grid = Grid(GRID.crs, GRID.pixel, cell=cell, tile=16)
    height, width = scores_HW.shape
    whole = Window(corner[0], corner[1], corner[0] + height, corner[1] + width)
    found: list[Road] = []
    opened: dict[Cell, list[Piece]] = {}
    for place in grid.cells(whole):
        core = grid.window(place)
        view = core.grown(road_margin(grid, core, recipe))
        seen_HW = np.full(view.shape, NODATA, np.uint8)
        part = view.overlap(whole)
        assert part is not None
        seen_HW[part.slices(view)] = scores_HW[part.slices(whole)]
        done, opened[place] = trace_roads(seen_HW, view, core, grid, recipe)
        found += done
    joined, crossings = join_roads(opened, grid)
    return found + joined, crossings


def rows(roads: list[Road]) -> list[tuple[object, ...]]:
    """Everything that is told of the roads, exactly, sorted."""
    return sorted((r.place, r.line.tobytes(), r.score, r.width_m, r.length_m) for r in roads)


def drawn(*lines: list[tuple[float, float]], width: float = 7, size: int = 200) -> Scores:
    """Scores in which lines of (column, row) are roads of this width."""
    areas = [shapely.LineString(line).buffer(width / 2, cap_style="flat") for line in lines]
    return np.where(rasterize(areas, (size, size)), YES, NO).astype(np.uint8)


def degrees(roads: list[Road]) -> list[int]:
    """How many roads end at each node, sorted."""
    return sorted(Counter(tuple(road.line[end]) for road in roads for end in (0, -1)).values())


def town(seed: int, size: int = 350) -> Scores:
    """Crossing, curving and ending roads of several widths with ragged edges and gaps."""
    rng = np.random.default_rng(seed)
    mask_HW = np.zeros((size, size), bool)
    for _ in range(9):
        x, y = np.cumsum(rng.normal(0, 1, (2, 40)).cumsum(axis=1) + rng.normal(0, 6, (2, 1)), 1)
        line = shapely.LineString(np.column_stack([x, y]) + rng.uniform(0, size, 2))
        mask_HW |= rasterize([line.buffer(rng.uniform(1.5, 6))], (size, size)).astype(bool)
    ragged_HW = ndimage.gaussian_filter(rng.standard_normal((size, size)), 2) * 7
    near_HW = ndimage.gaussian_filter(mask_HW.astype(float), 1.5)
    return np.clip((near_HW + 0.2 * ragged_HW) * 220, 0, 254).astype(np.uint8)


@settings(max_examples=4, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    off=st.tuples(st.integers(0, 600), st.integers(0, 600)),
)
def test_cells_change_nothing(seed: int, off: tuple[int, int]) -> None:
    scores_HW = town(seed)
    scores_HW[:90, 200:230] = NODATA
    corner = (HOME[0] + off[0], HOME[1] + off[1])
    whole, none = traced(scores_HW, 1024, corner)
    parts, crossings = traced(scores_HW, 256, corner)
    assert crossings.unmatched == crossings.snapped == none.unmatched == 0
    assert rows(parts) == rows(whole)
    assert len({road.place for road in whole}) == len(whole)


def test_a_made_network_is_the_same_over_seams() -> None:
    lines = [[(0.0, 40.0 + 90 * k), (400.0, 55.0 + 90 * k)] for k in range(4)]
    lines += [[(45.0 + 100 * k, 0.0), (30.0 + 100 * k, 400.0)] for k in range(4)]
    scores_HW = drawn(*lines, size=400)
    whole, _ = traced(scores_HW, 1024)
    parts, crossings = traced(scores_HW, 128)
    assert rows(parts) == rows(whole)
    assert crossings == Crossings(met=crossings.met) and crossings.met >= 16
    assert degrees(whole) == [1] * 16 + [4] * 16
    # The true length, less what a skeleton falls short at each of 16 ends.
    assert sum(road.length_m for road in whole) == pytest.approx(8 * 400, rel=0.03)


# -- skeletons that are hard -----------------------------------------------------------------


@pytest.mark.parametrize("scores", [NO, NODATA])
def test_an_empty_tile_has_no_roads(scores: int) -> None:
    assert traced(np.full((64, 64), scores, np.uint8)) == ([], Crossings())


def test_a_single_pixel_is_no_road() -> None:
    scores_HW = np.full((64, 64), NO, np.uint8)
    scores_HW[30, 30] = YES
    assert traced(scores_HW, recipe=RoadRecipe(min_length_m=0))[0] == []


@pytest.mark.parametrize("cell", [64, 1024])
def test_a_ring_without_a_junction_is_one_closed_road(cell: int) -> None:
    ring = shapely.Point(100, 100).buffer(60).exterior
    (road,), _ = traced(drawn(list(ring.coords)), cell)
    assert (road.line[0] == road.line[-1]).all()
    assert road.length_m == pytest.approx(2 * np.pi * 60, rel=0.03)


def test_a_tile_full_of_road_ends_well() -> None:
    roads, _ = traced(np.full((64, 64), YES, np.uint8))
    assert all(shapely.LineString(road.line).is_simple for road in roads)
    assert traced(np.full((300, 300), YES, np.uint8))[0] == []  # wider than any road


@pytest.mark.parametrize("width", [1, 2, 7, 12])
def test_a_bar_is_one_road_of_its_width(width: int) -> None:
    scores_HW = np.full((64, 160), NO, np.uint8)
    scores_HW[30 : 30 + width, 10:150] = YES
    (road,), _ = traced(scores_HW)
    assert len(road.line) == 2 or width % 2 == 0
    assert road.length_m == pytest.approx(140, abs=width + 2)
    assert road.width_m == pytest.approx(width, abs=1.01)
    assert road.score == pytest.approx(YES / 254)


def test_parallel_lanes_stay_two() -> None:
    scores_HW = np.full((64, 160), NO, np.uint8)
    scores_HW[[30, 33], 10:150] = YES
    roads, _ = traced(scores_HW)
    assert [road.length_m for road in roads] == pytest.approx([139, 139], rel=1e-3)


def test_two_roads_between_the_same_junctions_are_kept() -> None:
    scores_HW = drawn([(0, 100), (60, 100), (100, 60), (140, 100), (200, 100)])
    scores_HW |= drawn([(60, 100), (100, 140), (140, 100)]) & YES
    roads, _ = traced(np.minimum(scores_HW, YES))
    assert degrees(roads) == [1, 1, 3, 3]


# -- spurs, junctions, gaps --------------------------------------------------------------------


def test_spurs_are_pruned_and_side_roads_kept() -> None:
    spurs = [[(x, 100.0), (x, 90.0)] for x in (40.0, 120.0, 160.0)]
    roads, _ = traced(drawn([(0, 100), (200, 100)], [(80, 100), (80, 40)], *spurs))
    assert degrees(roads) == [1, 1, 1, 3]


def test_a_wide_road_has_no_stubs_to_its_corners() -> None:
    (road,), _ = traced(drawn([(0, 100), (200, 100)], width=40))
    assert np.ptp(road.line[:, 0]) < 3


def test_a_skewed_crossing_is_one_junction() -> None:
    roads, _ = traced(drawn([(0, 50), (200, 150)], [(0, 160), (200, 40)], width=8))
    assert degrees(roads) == [1, 1, 1, 1, 4]


def test_isolated_bits_are_dropped() -> None:
    scores_HW = drawn([(0, 100), (200, 100)], [(50, 20), (72, 20)], [(50, 160), (100, 160)])
    assert len(traced(scores_HW)[0]) == 2


@pytest.mark.parametrize(("gap", "between", "parts"), [(12, 90, 1), (12, 20, 2), (40, 90, 2)])
def test_a_gap_is_closed_where_the_scores_allow(gap: int, between: int, parts: int) -> None:
    scores_HW = drawn([(0, 100), (200, 100)])
    scores_HW[:, 100 : 100 + gap] = np.where(scores_HW[:, 100 : 100 + gap] == YES, between, NO)
    assert len(traced(scores_HW)[0]) == parts


def test_a_gap_of_nodata_or_round_a_corner_stays() -> None:
    scores_HW = drawn([(0, 100), (200, 100)])
    scores_HW[:, 100:106] = NODATA
    assert len(traced(scores_HW)[0]) == 2
    bent = drawn([(0, 100), (95, 100)], [(105, 90), (105, 0)])
    bent[bent == NO] = 90
    assert len(traced(bent)[0]) == 2


@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_no_road_lies_on_nodata(seed: int) -> None:
    scores_HW = town(seed, 200)
    rng = np.random.default_rng(seed)
    for row, col in rng.integers(0, 200, (25, 2)):
        scores_HW[row : row + 6, col : col + 4] = NODATA
    roads, _ = traced(scores_HW, 256)
    rows_, cols = np.nonzero(scores_HW == NODATA)
    blank = shapely.union_all(shapely.box(cols, rows_, cols + 1, rows_ + 1))
    lines = [shapely.LineString((road.line - HOME)[:, ::-1] + 0.5) for road in roads]
    assert sum(line.intersection(blank).length for line in lines) == 0


# -- over edges, by hand -------------------------------------------------------------------------


def test_each_step_belongs_to_one_cell() -> None:
    grid = Grid("EPSG:26986", (1.0, 1.0), cell=16, tile=16)
    path = np.column_stack([np.arange(-5, 40), np.abs(np.arange(-5, 40) - 16)])
    parts = [
        (part, cuts)
        for cell in grid.cells(Window(-16, 0, 48, 48))
        for part, cuts in cut([path], grid.window(cell))
    ]
    assert sum(len(part) - 1 for part, _ in parts) == len(path) - 1
    assert sum(before + behind for _, (before, behind) in parts) == 2 * (len(parts) - 1)


def piece(path: list[tuple[int, int]], cuts: tuple[bool, bool]) -> Piece:
    count = len(path)
    return Piece(
        np.array(path),
        np.full(count, 127, np.uint8),
        np.full(count, 2, np.float32),
        np.zeros(count, bool),
        cuts,
    )


def test_ends_that_nearly_meet_are_snapped_and_others_counted() -> None:
    west = piece([(5, col) for col in range(10, 17)], (False, True))
    east = piece([(7, col) for col in range(16, 30)], (True, True))
    far = piece([(20, col) for col in range(30, 40)], (True, False))
    roads, crossings = join_roads({Cell(0, 0): [west], Cell(0, 1): [east], Cell(0, 2): [far]}, GRID)
    assert crossings == Crossings(met=0, snapped=1, unmatched=2)
    assert sorted(road.length_m for road in roads) == pytest.approx([9, 19], abs=0.5)


@pytest.mark.parametrize("told", [{"threshold": 0}, {"spur_m": -1}, {"max_width_m": 0}])
def test_a_recipe_that_cannot_be_is_refused(told: dict[str, float]) -> None:
    with pytest.raises(MappingError, match="got"):
        RoadRecipe(**told)
