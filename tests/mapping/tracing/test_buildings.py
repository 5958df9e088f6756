"""Buildings from scores: the same whatever the cells, valid, apart, none on nodata."""

from collections.abc import Callable

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from orthotrace.mapping.errors import MappingError
from orthotrace.mapping.tracing.buildings import (
    BuildingRecipe,
    Buildings,
    OpenBuildings,
    building_margin,
    join_buildings,
    trace_buildings,
)
from orthotrace.tiling.grid import Cell, Grid, Window
from rasterio.features import rasterize

Scores = NDArray[np.uint8]

NO, YES, NODATA = 20, 200, 255
CELLS = (64, 128, 1024)
EVERYTHING = BuildingRecipe(min_area_m2=0, hole_m2=0)
PIXELS = BuildingRecipe(min_area_m2=0, hole_m2=0, tolerance_px=0)


def traced(
    scores_HW: Scores,
    cell: int,
    corner: tuple[int, int] = (0, 0),
    recipe: BuildingRecipe = EVERYTHING,
    crs: str = "EPSG:26986",
    pixel: float = 1.0,
) -> list[Buildings]:
    """All buildings of an array whose first pixel is `corner`; around it is nodata."""
    grid = Grid(crs, (pixel, pixel), cell=cell, tile=16)
    height, width = scores_HW.shape
    whole = Window(corner[0], corner[1], corner[0] + height, corner[1] + width)
    found: list[Buildings] = []
    opened: dict[Cell, OpenBuildings] = {}
    for place in grid.cells(whole):
        core = grid.window(place)
        view = core.grown(building_margin(grid, core, recipe))
        seen_HW = np.full(view.shape, NODATA, np.uint8)
        part = view.overlap(whole)
        assert part is not None
        seen_HW[part.slices(view)] = scores_HW[part.slices(whole)]
        done, opened[place] = trace_buildings(seen_HW, view, core, grid, recipe)
        found.append(done)
    return [*found, join_buildings(opened, grid, recipe)]


def rows(parts: list[Buildings]) -> list[tuple[tuple[int, ...], str, float, float]]:
    """Everything that is told of the buildings, exactly, sorted."""
    return sorted(
        (tuple(place), shapely.to_wkb(outline, hex=True), score, area)
        for part in parts
        for place, outline, score, area in zip(
            part.places.tolist(), part.outlines, part.scores, part.areas_m2, strict=True
        )
    )


def outlines(parts: list[Buildings]) -> list[shapely.Polygon]:
    return [outline for part in parts for outline in part.outlines]


def scores_of(mask_HW: NDArray[np.bool_]) -> Scores:
    return np.where(mask_HW, YES, NO).astype(np.uint8)


@st.composite
def scenes(draw: st.DrawFn) -> tuple[Scores, tuple[int, int]]:
    """Blocks, specks and nodata, anywhere on the grid: awkward at every edge."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    size = draw(st.integers(20, 90))
    scores_HW = rng.integers(0, 255, (size, size)).astype(np.uint8)
    side = draw(st.sampled_from([1, 2, 5, 9]))
    coarse = rng.random((size // side + 1, size // side + 1)) < draw(st.floats(0.2, 0.8))
    mask_HW = np.kron(coarse, np.ones((side, side), bool))[:size, :size]
    mask_HW ^= rng.random((size, size)) < draw(st.sampled_from([0.0, 0.02, 0.2]))
    scores_HW = np.where(mask_HW, 127 + scores_HW // 2, scores_HW // 2).astype(np.uint8)
    if draw(st.booleans()):
        scores_HW[rng.random((size, size)) < 0.01] = NODATA
    return scores_HW, (draw(st.integers(-150, 150)), draw(st.integers(-150, 150)))


@settings(max_examples=12, deadline=None)
@given(scene=scenes(), recipe=st.sampled_from([BuildingRecipe(), EVERYTHING, PIXELS]))
def test_cells_change_nothing(
    scene: tuple[Scores, tuple[int, int]], recipe: BuildingRecipe
) -> None:
    scores_HW, corner = scene
    first, *others = [rows(traced(scores_HW, cell, corner, recipe)) for cell in CELLS]
    assert all(other == first for other in others)


@settings(max_examples=20, deadline=None)
@given(scene=scenes())
def test_pixel_outlines_cover_the_mask_and_sums_are_kept(
    scene: tuple[Scores, tuple[int, int]],
) -> None:
    scores_HW, (top, left) = scene
    parts = traced(scores_HW, 64, (top, left), PIXELS)
    drawn = [shapely.transform(outline, lambda xy: xy - [left, top]) for outline in outlines(parts)]
    mask_HW = (scores_HW >= 127) & (scores_HW != NODATA)
    again_HW = np.zeros(mask_HW.shape, bool)
    if drawn:
        again_HW = rasterize(drawn, mask_HW.shape).astype(bool)
    assert np.array_equal(again_HW, mask_HW)
    areas = shapely.area(np.array(drawn, object))
    totals = np.concatenate([part.scores for part in parts]) * areas * 254
    assert totals.sum() == pytest.approx(scores_HW[mask_HW].sum())


@settings(max_examples=20, deadline=None)
@given(scene=scenes())
def test_buildings_are_valid_apart_and_on_no_nodata(
    scene: tuple[Scores, tuple[int, int]],
) -> None:
    scores_HW, (top, left) = scene
    parts = traced(scores_HW, 1024, (top, left))
    found = np.array(outlines(parts), object)
    assert shapely.is_valid(found).all()
    assert (shapely.get_type_id(found) == shapely.GeometryType.POLYGON).all()
    assert shapely.area(shapely.union_all(found)) == pytest.approx(shapely.area(found).sum())
    rows_, cols = np.nonzero(scores_HW == NODATA)
    blank = shapely.box(left + cols, top + rows_, left + cols + 1, top + rows_ + 1)
    assert shapely.intersection(shapely.union_all(found), shapely.union_all(blank)).area == 0
    places = np.concatenate([part.places for part in parts]).tolist()
    assert len({tuple(place) for place in places}) == len(places)


def rectangle(scores_HW: Scores) -> None:
    scores_HW[40:90, 50:80] = YES


def ring(scores_HW: Scores) -> None:
    scores_HW[44:84, 44:84] = YES
    scores_HW[54:74, 54:74] = NO


def diagonal(scores_HW: Scores) -> None:
    scores_HW[54:64, 54:64] = YES
    scores_HW[64:74, 64:74] = YES


@pytest.mark.parametrize(
    ("draw", "areas", "holes"),
    [(rectangle, [1500], 0), (ring, [1200], 1), (diagonal, [100, 100], 0)],
)
@pytest.mark.parametrize("cell", CELLS)
def test_what_lies_at_a_corner_of_four_cells(
    draw: Callable[[Scores], None], areas: list[float], holes: int, cell: int
) -> None:
    scores_HW = np.full((128, 128), NO, np.uint8)
    draw(scores_HW)
    parts = traced(scores_HW, cell, recipe=BuildingRecipe())
    assert [outline.area for outline in outlines(parts)] == areas
    assert sum(len(outline.interiors) for outline in outlines(parts)) == holes


def test_a_large_roof_over_four_cells_is_one_building() -> None:
    scores_HW = np.full((400, 400), NO, np.uint8)
    scores_HW[50:350, 50:350] = YES
    (roof,) = outlines(traced(scores_HW, 128, recipe=BuildingRecipe()))
    assert roof.equals(shapely.box(50, 50, 350, 350))


def test_a_single_building_is_measured_on_the_ground() -> None:
    scores_HW = np.full((64, 64), NO, np.uint8)
    scores_HW[10:20, 10:30] = YES
    scores_HW[10:20, 30:40] = 254
    # 60 degrees north, where a metre of web Mercator is half a metre on the ground.
    corner = (-8399737, 0)
    (found,) = [
        part
        for part in traced(scores_HW, 1024, corner, BuildingRecipe(), "EPSG:3857")
        if len(part.scores)
    ]
    assert found.areas_m2[0] == pytest.approx(300 / 4, rel=0.01)
    assert found.scores[0] == pytest.approx((200 * 200 + 100 * 254) / (300 * 254))
    assert found.places.tolist() == [[corner[0] + 10, 10]]


def test_small_buildings_are_dropped_and_small_holes_filled() -> None:
    scores_HW = np.full((64, 64), NO, np.uint8)
    scores_HW[5:9, 5:8] = YES  # 12 m2
    scores_HW[20:40, 20:40] = YES
    scores_HW[25:27, 25:27] = NO  # 4 m2, filled
    scores_HW[30:33, 30:33] = NO  # 9 m2, kept
    (found,) = outlines(traced(scores_HW, 128, recipe=BuildingRecipe()))
    assert found.area == 400 - 9
    assert len(found.interiors) == 1


def test_a_small_hole_of_nodata_stays() -> None:
    scores_HW = np.full((64, 64), NO, np.uint8)
    scores_HW[20:40, 20:40] = YES
    scores_HW[30, 30:32] = [NO, NODATA]
    (found,) = outlines(traced(scores_HW, 128, recipe=BuildingRecipe()))
    assert found.area == 398


@pytest.mark.parametrize("angle_deg", [0, 7, 20, 45, 63])
def test_a_house_askew_to_the_grid_has_no_staircase(angle_deg: float) -> None:
    house = shapely.affinity.rotate(shapely.box(20, 20, 38, 32), angle_deg)
    scores_HW = scores_of(rasterize([house], (64, 64)).astype(bool))
    (found,) = outlines(traced(scores_HW, 128, recipe=BuildingRecipe()))
    assert found.intersection(house).area / found.union(house).area > 0.9
    assert len(found.exterior.coords) <= 15  # about 60 along its pixels


def test_a_terrace_with_gaps_stays_apart() -> None:
    terrace = [
        shapely.affinity.rotate(shapely.box(10 + 9 * k, 20, 17.5 + 9 * k, 32), 15, (50, 26))
        for k in range(9)
    ]
    scores_HW = scores_of(rasterize(terrace, (80, 110)).astype(bool))
    raw = np.array(outlines(traced(scores_HW, 64, recipe=PIXELS)), object)
    found = np.array(outlines(traced(scores_HW, 64)), object)
    assert len(found) == len(raw)
    assert shapely.get_num_coordinates(found).sum() < 0.6 * shapely.get_num_coordinates(raw).sum()
    assert shapely.union_all(found).area == pytest.approx(shapely.area(found).sum())


@pytest.mark.parametrize("scores", [NO, NODATA])
def test_nothing_gives_nothing(scores: int) -> None:
    assert not outlines(traced(np.full((64, 64), scores, np.uint8), 64))


def test_everything_is_one_building() -> None:
    (found,) = outlines(traced(np.full((100, 100), YES, np.uint8), 64))
    assert found.area == 100 * 100


@pytest.mark.parametrize(
    "told",
    [
        {"threshold": 0},
        {"threshold": 1.1},
        {"min_area_m2": -1},
        {"hole_m2": -1},
        {"tolerance_px": -1},
    ],
)
def test_a_recipe_that_cannot_be_is_refused(told: dict[str, float]) -> None:
    with pytest.raises(MappingError, match="got"):
        BuildingRecipe(**told)
