"""The lattice: its laws, and known values on the ground."""

import math
from typing import Any

import pytest
from affine import Affine
from hypothesis import given
from hypothesis import strategies as st
from orthotrace.tiling.errors import TilingError
from orthotrace.tiling.grid import Cell, Grid, Window, known_crs, same_crs, short_crs
from pyproj import CRS

INDEX = st.integers(-5_000_000, 5_000_000)
SIDE = st.integers(1, 20_000)


@st.composite
def windows(draw: st.DrawFn) -> Window:
    top, left = draw(INDEX), draw(INDEX)
    return Window(top, left, top + draw(SIDE), left + draw(SIDE))


@st.composite
def grids(draw: st.DrawFn) -> Grid:
    crs, pixel = draw(
        st.sampled_from(
            [("EPSG:26986", 1.0), ("EPSG:26918", 0.6), ("EPSG:3857", 0.2986), ("EPSG:4326", 1e-5)]
        )
    )
    # An anchor within ALIGNED of the next pixel's is that one's.
    anchor = draw(st.tuples(*[st.floats(0, 0.998)] * 2))
    return Grid(crs, (pixel, pixel * draw(st.sampled_from([1.0, 1.3]))), anchor, 1024, 256)


@given(grids(), windows())
def test_the_cover_of_a_windows_bounds_is_the_window(grid: Grid, window: Window) -> None:
    assert grid.covering(grid.bounds(window)) == window


@given(grids(), windows())
def test_what_covers_holds_and_no_smaller_one_does(grid: Grid, window: Window) -> None:
    left, bottom, right, top = grid.bounds(window)
    width, height = grid.pixel
    inside = (left + 0.3 * width, bottom + 0.3 * height, right - 0.3 * width, top - 0.3 * height)
    assert grid.covering(inside) == window


@given(grids(), windows())
def test_a_window_of_the_grid_stands_on_it(grid: Grid, window: Window) -> None:
    at = grid.transform(window)
    assert grid.stands_on(grid.crs, at)
    again = Grid.of_raster(grid.crs, at, grid.cell, grid.tile)
    assert again.stands_on(grid.crs, grid.transform(Window(0, 0, 1, 1)))
    width, height = grid.pixel
    for x, y in ((0.4 * width, 0), (0, 0.4 * height)):
        assert not grid.stands_on(grid.crs, Affine(at.a, 0, at.c + x, 0, at.e, at.f + y))


@pytest.mark.parametrize(
    "at",
    [
        Affine(1, 0.1, 0, 0, -1, 0),
        Affine(1, 0, 0, 0.1, -1, 0),
        Affine(1, 0, 0, 0, 1, 0),
        Affine(1.00001, 0, 0, 0, -1, 0),
        Affine(2, 0, 0, 0, -2, 0),
    ],
)
def test_other_pixels_do_not_stand_on_the_grid(at: Affine) -> None:
    grid = Grid("EPSG:26918", (1.0, 1.0))
    assert not grid.stands_on("EPSG:26918", at)
    assert not grid.stands_on("EPSG:26917", grid.transform(Window(0, 0, 1, 1)))


@given(grids(), INDEX, INDEX, st.integers(1, 5000), st.integers(1, 5000))
def test_cells_part_a_window(grid: Grid, top: int, left: int, height: int, width: int) -> None:
    window = Window(top, left, top + height, left + width)
    parts = [grid.window(cell).overlap(window) for cell in grid.cells(window)]
    assert None not in parts
    assert sum(part.height * part.width for part in parts if part) == height * width
    assert len(set(parts)) == len(parts)
    assert grid.cells(window) == sorted(grid.cells(window))


@given(st.integers(-(10**7), 10**7), st.integers(-(10**7), 10**7))
def test_a_cells_name_is_undone(row: int, col: int) -> None:
    assert Cell.parse(Cell(row, col).name) == Cell(row, col)


@pytest.mark.parametrize("name", ["", "r1", "index", "r000001_c000002.tif", "rx_c1"])
def test_other_names_are_no_cells(name: str) -> None:
    with pytest.raises(ValueError, match="no cell's name"):
        Cell.parse(name)


@given(windows(), windows())
def test_overlap_is_what_both_hold(one: Window, other: Window) -> None:
    both = one.overlap(other)
    assert both == other.overlap(one)
    if both is not None:
        assert both.overlap(one) == both == both.overlap(other)
    assert one.overlap(one) == one
    assert one.grown(7).overlap(one) == one


@given(grids())
def test_a_grid_is_undone_from_data(grid: Grid) -> None:
    assert Grid.from_dict(grid.to_dict()) == grid


def test_indices_do_not_depend_on_where_one_starts() -> None:
    """512 px of 0.6 m: edges are those of the integers, far from the origin too."""
    grid = Grid("EPSG:26918", (0.6, 0.6), cell=4096, tile=512)
    at = grid.transform(Window(-6789 * 512, 12345 * 512, 0, 12346 * 512))
    assert (at.c, at.f) == (12345 * 512 * 0.6, 6789 * 512 * 0.6)


@pytest.mark.parametrize("lat", [0.0, 42.0, 60.0])
def test_web_mercator_is_shorter_on_the_ground(lat: float) -> None:
    y = math.log(math.tan(math.pi / 4 + math.radians(lat) / 2)) * 6_378_137
    grid = Grid("EPSG:3857", (1.0, 1.0))
    for metres in grid.ground_pixel(grid.covering((0, y, 1, y + 1))):
        assert metres == pytest.approx(math.cos(math.radians(lat)), rel=0.008)  # The ellipsoid's.


def test_feet_and_degrees_are_measured_in_metres() -> None:
    feet = Grid("EPSG:2249", (3.28083333, 3.28083333))
    at = feet.covering((761_761, 2_964_465, 761_762, 2_964_466))
    assert feet.ground_pixel(at) == pytest.approx((1, 1), rel=1e-3)
    degrees = Grid("EPSG:4326", (1e-5, 1e-5))
    wide, high = degrees.ground_pixel(degrees.covering((-71, 42, -70.9, 42.1)))
    assert (wide, high) == pytest.approx((0.8285, 1.1107), rel=1e-3)


def test_a_place_off_the_map_is_refused() -> None:
    grid = Grid("EPSG:32618", (1.0, 1.0))
    with pytest.raises(TilingError, match="outside what EPSG:32618 can map"):
        grid.ground_pixel(grid.covering((1e9, 1e9, 1e9 + 1, 1e9 + 1)))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"pixel": (0.0, 1.0)}, "positive size"),
        ({"pixel": (1.0, -1.0)}, "positive size"),
        ({"pixel": (math.inf, 1.0)}, "positive size"),
        ({"anchor": (1.0, 0.0)}, "anchor"),
        ({"anchor": (0.0, -0.1)}, "anchor"),
        ({"tile": 100, "cell": 100}, "multiple of 16"),
        ({"tile": 0}, "multiple of 16"),
        ({"cell": 1000}, "multiple of the tile's 512"),
        ({"cell": 256}, "multiple of the tile's 512"),
    ],
)
def test_a_wrong_grid_is_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(TilingError, match=said):
        Grid(**{"crs": "EPSG:26918", "pixel": (1.0, 1.0), **wrong})


@pytest.mark.parametrize(
    "at", [Affine(1, 0.1, 0, 0, -1, 0), Affine(1, 0, 0, 0, 1, 0), Affine(-1, 0, 0, 0, -1, 0)]
)
def test_only_a_north_up_raster_has_a_grid(at: Affine) -> None:
    with pytest.raises(TilingError, match="north-up"):
        Grid.of_raster("EPSG:26918", at)


@pytest.mark.parametrize("edges", [(0, 0, 0, 1), (0, 0, 1, 0), (5, 0, 4, 1)])
def test_a_window_holds_a_pixel(edges: tuple[int, int, int, int]) -> None:
    with pytest.raises(ValueError, match="at least one pixel"):
        Window(*edges)


def test_crs_are_compared_by_meaning() -> None:
    assert same_crs("EPSG:26918", CRS(26918).to_wkt())
    assert not same_crs("EPSG:26918", "EPSG:32618")
    assert short_crs(CRS(26918).to_wkt()) == "EPSG:26918"


@pytest.mark.parametrize(
    "told",
    [
        "foo",
        "EPSG:999999",
        "EPSG:5703",
        "EPSG:4978",
        "EPSG:4979",
        "IAU_2015:30100",
        "EPSG:6347+5703",
    ],
)
def test_what_is_no_crs_of_maps_of_earth_is_refused(told: str) -> None:
    with pytest.raises(ValueError, match=r"is no CRS .*; wanted one such as EPSG:26918"):
        known_crs(told)


@pytest.mark.parametrize("told", ["EPSG:26918", "EPSG:4326", "ESRI:102003", "+proj=ortho +lat_0=0"])
def test_a_crs_of_maps_of_earth_is_taken_as_told(told: str) -> None:
    assert known_crs(told) == told
