"""Burning features into windows: ground metres, guards, unknown, and independence of the window."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pytest
import rasterio
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from orthotrace.tiling.errors import TilingError
from orthotrace.tiling.grid import Grid, Window, transformer
from orthotrace.tiling.labels import LabelRules, burn, on_grid
from orthotrace.tiling.osm import Extract, read_osm
from orthotrace.tiling.values import NO, UNKNOWN, YES
from shapely import LineString, Point, Polygon, box

UTM = "EPSG:32618"
GRID = Grid(UTM, (1.0, 1.0), cell=512, tile=64)
EAST, NORTH = 500_000, 4_260_000
"""A corner of pixels near which shapes are drawn, on the middle meridian: scale 0.9996."""


def at(*places: tuple[float, float]) -> list[tuple[float, float]]:
    """Places in metres east and south of the corner."""
    return [(EAST + x, NORTH - y) for x, y in places]


def window(top: int, left: int, bottom: int, right: int) -> Window:
    """A window in pixels from the corner."""
    return Window(top - NORTH, left + EAST, bottom - NORTH, right + EAST)


def frame(
    shapes: list[Any], labels: list[str] | None = None, width_m: float | None = None
) -> geopandas.GeoDataFrame:
    columns: dict[str, Any] = {"label": labels or ["yes"] * len(shapes)}
    if width_m is not None:
        columns["width_m"] = [width_m] * len(shapes)
    return geopandas.GeoDataFrame(columns, geometry=shapes, crs=UTM)


def burnt(
    features: Mapping[str, geopandas.GeoDataFrame],
    where: Window,
    guard_m: float = 0.0,
    mapped: Mapping[str, Any] | None = None,
    valid_HW: NDArray[np.bool_] | None = None,
) -> NDArray[np.uint8]:
    rules = LabelRules(classes=tuple(features), guard_m=guard_m)
    return burn(rules, GRID, where, features, mapped or {}, valid_HW)


def centres(where: Window) -> NDArray[Any]:
    """Points at the middle of each pixel."""
    left, _, _, top = GRID.bounds(where)
    rows, cols = np.indices(where.shape)
    points: NDArray[Any] = shapely.points(left + cols + 0.5, top - rows - 0.5)
    return points


# -- metres ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("crs", "pixel"),
    [("EPSG:4326", 1e-6), ("EPSG:3857", 0.1), ("EPSG:26986", 0.1), (UTM, 0.1), ("EPSG:5070", 0.1)]
    + [("EPSG:2249", 0.3)],
)
@pytest.mark.parametrize("heading", ["east", "north"])
def test_a_road_of_8_m_is_8_m_wide_on_the_ground_in_any_crs(
    crs: str, pixel: float, heading: str
) -> None:
    lon, lat = -77.0, 38.5
    grid = Grid(crs, (pixel, pixel))
    to_crs = transformer("EPSG:4326", crs)
    x, y = to_crs.transform(lon, lat)
    # Along the axes of the map, so that a row or column of pixels cuts the road squarely.
    far = 5000 * pixel
    ends = [(x - far, y), (x + far, y)] if heading == "east" else [(x, y - far), (x, y + far)]
    road = geopandas.GeoDataFrame(
        {"label": ["yes"], "width_m": [8.0]}, geometry=[LineString(ends)], crs=crs
    )
    reach = 300 * pixel
    where = grid.covering((x - reach, y - reach, x + reach, y + reach))
    rules = LabelRules(classes=("road",), guard_m=0)
    labels_HW = burn(rules, grid, where, {"road": road}, {})[0]
    across = labels_HW[:, where.width // 2] if heading == "east" else labels_HW[where.height // 2]
    width, height = grid.ground_pixel(where)
    breadth_m = np.count_nonzero(across == YES) * (height if heading == "east" else width)
    assert breadth_m == pytest.approx(8.0, abs=0.3)


def test_the_guard_is_in_metres_on_the_ground_too() -> None:
    grid = Grid("EPSG:3857", (0.25, 0.25))
    x, y = transformer("EPSG:4326", "EPSG:3857").transform(25.0, 60.0)
    house = geopandas.GeoDataFrame(
        {"label": ["yes"]}, geometry=[box(x - 40, y - 40, x + 40, y + 40)], crs="EPSG:3857"
    )
    where = grid.covering((x - 60, y - 60, x + 60, y + 60))
    labels_HW = burn(LabelRules(classes=("building",)), grid, where, {"building": house}, {})[0]
    row = labels_HW[where.height // 2]
    breadth_m = np.count_nonzero(row == UNKNOWN) * grid.ground_pixel(where)[0]
    assert breadth_m == pytest.approx(4 * 2.0, abs=0.3)  # two metres on both sides of two walls


# -- what a pixel gets -------------------------------------------------------------------------


def test_a_pixel_belongs_to_a_building_if_its_centre_does() -> None:
    yard = Polygon(
        at((3.2, 3.4), (40.1, 7.3), (35.7, 44.6), (6.3, 38.8)),
        [at((15.1, 15), (25, 16), (20.3, 28))],
    )
    where = window(0, 0, 50, 50)
    labels_HW = burnt({"building": frame([yard])}, where)[0]
    expected_HW = np.where(shapely.contains(yard, centres(where)), YES, NO)
    np.testing.assert_array_equal(labels_HW, expected_HW)
    assert labels_HW[18, 20] == NO  # the courtyard


def test_a_road_is_what_lies_within_half_its_width() -> None:
    line = LineString(at((5.3, 8.1), (30.2, 20.7), (44.4, 61.9)))
    where = window(0, 0, 70, 60)
    labels_HW = burnt({"road": frame([line], width_m=7.0)}, where)[0]
    distance_HW = shapely.distance(line, centres(where))
    assert (labels_HW[distance_HW < 3.4] == YES).all()
    assert (labels_HW[distance_HW > 3.52] == NO).all()
    assert set(np.unique(labels_HW)) == {NO, YES}  # guard 0: nothing is unknown


def test_the_guard_is_unknown_on_both_sides_of_an_edge() -> None:
    house = box(*at((10.1, 40.2))[0], *at((40.3, 10.4))[0])
    where = window(0, 0, 50, 50)
    labels_HW = burnt({"building": frame([house])}, where, guard_m=2.0)[0]
    distance_HW = shapely.distance(house.exterior, centres(where))
    inside_HW = shapely.contains(house, centres(where))
    assert (labels_HW[distance_HW < 1.9] == UNKNOWN).all()
    assert (labels_HW[inside_HW & (distance_HW > 2.1)] == YES).all()
    assert (labels_HW[~inside_HW & (distance_HW > 2.1)] == NO).all()


def test_a_narrow_feature_keeps_a_core_within_its_guard() -> None:
    lane = frame([LineString(at((0, 10.2), (60, 10.2)))], width_m=4.0)
    shed = frame([box(*at((20, 36))[0], *at((24, 30))[0])])
    labels_KHW = burnt({"road": lane, "building": shed}, window(0, 0, 60, 60), guard_m=5.0)
    assert np.count_nonzero(labels_KHW[0, :, 30] == YES) == 2
    assert np.count_nonzero(labels_KHW[1] == YES) > 0


def test_roads_that_meet_leave_no_gap() -> None:
    ways = [LineString(at((0, 20), (30, 20))), LineString(at((30, 20), (60, 35)))]
    labels_HW = burnt({"road": frame(ways, width_m=7.0)}, window(0, 5, 60, 55), guard_m=2.0)[0]
    assert (labels_HW == YES).any(axis=0).all()


def test_what_is_unknown_is_masked_but_never_over_a_yes() -> None:
    tunnel = LineString(at((0, 20), (60, 20)))
    street = LineString(at((30, 0), (30, 60)))
    for order in (1, -1):
        ways = frame([tunnel, street][::order], ["unknown", "yes"][::order], width_m=8.0)
        labels_HW = burnt({"road": ways}, window(0, 0, 60, 60))[0]
        assert labels_HW[20, 10] == UNKNOWN
        assert labels_HW[20, 30] == YES
        assert labels_HW[40, 10] == NO


def test_outside_what_is_mapped_and_where_imagery_is_blank_all_is_unknown() -> None:
    road = frame([LineString(at((0, 20), (60, 20)))], width_m=8.0)
    house = frame([box(*at((35, 50))[0], *at((50, 35))[0])])
    where = window(0, 0, 60, 60)
    valid_HW = np.ones(where.shape, bool)
    valid_HW[:10] = False
    west = box(*at((-100, 100))[0], *at((30, -100))[0])
    labels_KHW = burnt(
        {"road": road, "building": house}, where, mapped={"road": west}, valid_HW=valid_HW
    )
    assert (labels_KHW[0, :, 30:] == UNKNOWN).all()
    assert labels_KHW[0, 20, 29] == YES and labels_KHW[0, 50, 29] == NO
    assert labels_KHW[1, 40, 40] == YES and labels_KHW[1, 50, 10] == NO
    assert (labels_KHW[:, :10] == UNKNOWN).all()


def test_a_place_that_is_not_mapped_at_all_is_unknown() -> None:
    elsewhere = box(0, 0, 1, 1)
    features = {"building": frame([])}
    labels_KHW = burnt(features, window(0, 0, 9, 9), mapped={"building": elsewhere})
    assert (labels_KHW == UNKNOWN).all()
    assert (burnt(features, window(0, 0, 9, 9), mapped={"building": None}) == NO).all()


def test_a_building_that_holds_the_whole_window_fills_it() -> None:
    warehouse = frame([Point(EAST, NORTH).buffer(3000)])
    assert (burnt({"building": warehouse}, window(0, 0, 40, 40), guard_m=2.0) == YES).all()


# -- windows -----------------------------------------------------------------------------------

LATTICE = Grid(UTM, (0.6, 0.6), anchor=(0.436, 0.025), cell=512, tile=64)
"""A pixel that binary fractions cannot hold, so that its centres are rounded."""

CORNER = LATTICE.covering((EAST, NORTH, EAST + 1, NORTH + 1))

steps = st.integers(-60, 700)
places = st.tuples(steps, steps)


def on_lattice(*steps_down_across: tuple[int, int]) -> list[tuple[float, float]]:
    """Places in half pixels from a corner: every other one is the very centre of a pixel."""
    to_crs = LATTICE.transform(CORNER)
    return [
        (to_crs.c + to_crs.a * across / 2, to_crs.f + to_crs.e * down / 2)
        for down, across in steps_down_across
    ]


@st.composite
def houses(draw: st.DrawFn) -> Polygon:
    (down, across), tall, broad = draw(places), draw(st.integers(1, 90)), draw(st.integers(1, 90))
    (left, top), (right, bottom) = on_lattice((down, across), (down + tall, across + broad))
    return box(left, bottom, right, top)


@settings(max_examples=20, deadline=None)
@given(
    st.lists(houses(), min_size=1, max_size=12),
    st.lists(st.lists(places, min_size=2, max_size=5, unique=True), max_size=3),
    st.sampled_from([0.0, 1.5]),
    st.lists(st.integers(-40, 380), min_size=2, max_size=2, unique=True).map(sorted),
    st.lists(st.integers(-40, 380), min_size=2, max_size=2, unique=True).map(sorted),
)
def test_a_pixel_is_the_same_whatever_the_window(
    shapes: list[Polygon],
    lines: list[list[tuple[int, int]]],
    guard_m: float,
    rows: list[int],
    cols: list[int],
) -> None:
    roads = frame([LineString(on_lattice(*line)) for line in lines], width_m=6.0)
    features = {"road": roads, "building": frame(shapes)}
    mapped = {"building": Polygon(on_lattice((0, 0), (40, 600), (680, 400), (600, 20)))}
    rules = LabelRules(classes=("road", "building"), guard_m=guard_m)

    def seen(top: int, left: int, bottom: int, right: int) -> tuple[Window, NDArray[np.uint8]]:
        where = Window(
            top + CORNER.top, left + CORNER.left, bottom + CORNER.top, right + CORNER.left
        )
        return where, burn(rules, LATTICE, where, features, mapped)

    whole, of_whole = seen(-40, -40, 380, 380)
    part, of_part = seen(rows[0], cols[0], rows[1], cols[1])
    np.testing.assert_array_equal(of_part, of_whole[:, *part.slices(whole)])


def test_cells_of_two_sizes_hold_the_same_pixels() -> None:
    rng = np.random.default_rng(3)
    lines = [LineString(at(*rng.uniform(0, 1024, (4, 2)))) for _ in range(12)]
    features = {"road": frame(lines, width_m=7.0)}
    whole = window(0, 0, 1024, 1024)
    expected = burnt(features, whole, 2.0)
    small = Grid(UTM, (1.0, 1.0), cell=256, tile=64)
    rules = LabelRules(classes=("road",), guard_m=2.0)
    for cell in small.cells(whole):
        if (part := small.window(cell).overlap(whole)) is not None:
            labels_KHW = burn(rules, small, part, features, {})
            np.testing.assert_array_equal(labels_KHW, expected[:, *part.slices(whole)])


# -- rules and extracts ------------------------------------------------------------------------


def extract() -> Extract:
    road = {"osm_id": "way/1", "kind": "residential", "label": "yes"}
    tags = ['{"highway": "residential", "width": "5"}', '{"highway": "service", "area": "yes"}']
    plaza = {**road, "osm_id": "way/2", "kind": "service"}
    roads = geopandas.GeoDataFrame(
        [{**road, "tags": tags[0]}, {**plaza, "tags": tags[1]}],
        geometry=[LineString([(-75, 38.5), (-75, 38.6)]), box(-75.1, 38.5, -75.09, 38.51)],
        crs="EPSG:4326",
    )
    buildings = geopandas.GeoDataFrame(
        {"osm_id": ["way/3"], "kind": ["yes"], "tags": ["{}"], "label": ["yes"]},
        geometry=[box(-75, 38.5, -74.99, 38.51)],
        crs="EPSG:4326",
    )
    columns = ["osm_id", "kind", "tags", "label", "geometry"]
    return Extract(roads[columns], buildings)


def test_a_region_changes_widths_without_reading_osm_again() -> None:
    told = extract()
    for rules, wanted in [
        (LabelRules(widths={"residential": 9}), 5.0),
        (LabelRules(widths={"residential": 9}, use_tags=False), 9.0),
        (LabelRules(use_tags=False), 7.0),
    ]:
        roads = on_grid(told, rules, GRID)["road"]
        assert roads["width_m"].iloc[0] == wanted
        assert np.isnan(roads["width_m"].iloc[1])  # an area has none
        assert roads.crs == UTM
    assert "width_m" not in told.roads  # what was given stays as it was


def test_an_extract_without_roads_or_buildings_burns_to_no() -> None:
    told = extract()
    empty = Extract(told.roads.iloc[:0], told.buildings.iloc[:0])
    rules = LabelRules()
    features = on_grid(empty, rules, GRID)
    assert (burn(rules, GRID, window(0, 0, 8, 8), features, {}) == NO).all()


def test_classes_give_the_bands_in_their_order() -> None:
    rules = LabelRules(classes=("building",), guard_m={"road": 1.0})
    assert list(on_grid(extract(), rules, GRID)) == ["building"]
    assert rules.guard("building") == 2.0
    assert LabelRules(guard_m={"road": 1.0}).guard("road") == 1.0


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"classes": ("street",)}, "labels are of road or building, got"),
        ({"classes": ()}, "labels are of road or building, got"),
        ({"guard_m": -1}, "a guard is 0 m or more, got -1"),
        ({"guard_m": {"roads": 1}}, "guards are of road or building"),
        ({"widths": {"motorwai": 12}}, "wanted motorway"),
    ],
)
def test_rules_that_make_no_sense_are_refused(rules: dict[str, Any], message: str) -> None:
    with pytest.raises(TilingError, match=message):
        LabelRules(**rules)


def test_validity_of_another_size_is_refused() -> None:
    with pytest.raises(ValueError, match="for a window of"):
        burnt({"building": frame([])}, window(0, 0, 8, 8), valid_HW=np.ones((8, 9), bool))


# -- real data ---------------------------------------------------------------------------------

HELD_BACK = ["10078735", "18628795", "20429005", "22229080", "23279080", "24629305", "26129290"]


@cache
def massachusetts(folder: Path) -> tuple[Extract, LabelRules]:
    return read_osm(folder / "massachusetts.osm.pbf"), LabelRules(
        widths={"default": 7.0}, guard_m=0
    )


def agreement(folder: Path, kind: str, name: str, band: int) -> tuple[int, int]:
    """Pixels in both, and in either, of a label burnt from the extract and the given mask."""
    told, rules = massachusetts(folder)
    with rasterio.open(folder / f"{kind}_masks" / f"{name}.tif") as source:
        mask_HW = source.read(1)
        grid = Grid.of_raster("EPSG:26986", source.transform)
        where = grid.covering(tuple(source.bounds))
    labels_KHW = burn(rules, grid, where, on_grid(told, rules, grid), {}, mask_HW != UNKNOWN)
    ours, theirs = labels_KHW[band] == YES, mask_HW == 1
    return int((ours & theirs).sum()), int((ours | theirs).sum())


@pytest.mark.real
def test_roads_of_massachusetts_agree_with_the_masks(real_data: Path) -> None:
    folder = real_data / "massachusetts"
    pairs = [agreement(folder, "road", f"{name}_15", 0) for name in HELD_BACK]
    both, either = np.sum(pairs, axis=0)
    assert both / either >= 0.90


@pytest.mark.real
@pytest.mark.parametrize("name", ["23429020_15_west", "23429155_15"])
def test_buildings_of_massachusetts_agree_with_the_masks(real_data: Path, name: str) -> None:
    both, either = agreement(real_data / "massachusetts", "building", name, 1)
    assert both / either >= 0.99
