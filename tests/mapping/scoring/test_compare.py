"""A map against OSM: known places, and laws that hold for any lines and boxes."""

from typing import Any

import geopandas as gpd
import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from orthotrace.mapping.scoring.compare import Comparison, Rules, compare
from orthotrace.mapping.scoring.matching import cut_in_pieces
from orthotrace.mapping.scoring.metres import to_metric
from orthotrace.mapping.scoring.stretches import cut_by_state, part_of_line
from shapely import LineString, Polygon, box

UTM = "EPSG:26918"
EAST, NORTH = 400_000.0, 4_100_000.0  # a place in Virginia, where all of these tests are


def at(shape: Any, crs: str = UTM) -> Any:
    """A shape in metres, moved to the tests' place."""
    return shapely.transform(shape, lambda xy: xy + [EAST, NORTH])


def ours(shapes: list[Any], prefix: str) -> gpd.GeoDataFrame:
    ids = [f"{prefix}/{number}" for number in range(len(shapes))]
    data = {"id": ids, "score": [0.9] * len(shapes)}
    return gpd.GeoDataFrame(data, geometry=[at(s) for s in shapes], crs=UTM)


def theirs(shapes: list[Any], label: str | list[str] = "yes") -> gpd.GeoDataFrame:
    labels = [label] * len(shapes) if isinstance(label, str) else label
    data = {"osm_id": [f"way/{number}" for number in range(len(shapes))], "label": labels}
    return gpd.GeoDataFrame(data, geometry=[at(s) for s in shapes], crs=UTM).to_crs(4326)


def roads(
    found: list[Any], osm: list[Any], label: str | list[str] = "yes", **rest: Any
) -> Comparison:
    return compare(
        {"roads": ours(found, "road"), "buildings": ours([], "building")},
        {"roads": theirs(osm, label), "buildings": theirs([])},
        **rest,
    )


def buildings(
    found: list[Any], osm: list[Any], label: str | list[str] = "yes", **rest: Any
) -> Comparison:
    return compare(
        {"roads": ours([], "road"), "buildings": ours(found, "building")},
        {"roads": theirs([]), "buildings": theirs(osm, label)},
        **rest,
    )


# -- buildings -----------------------------------------------------------------------------


def test_a_shifted_building_is_the_same_and_the_others_are_new_or_missing() -> None:
    found = [box(0, 0, 10, 10), box(50, 0, 60, 10)]
    osm = [box(3, -2, 13, 8), box(200, 0, 210, 10)]
    told = buildings(found, osm)
    assert told.buildings["osm"].tolist() == ["same", "new"]
    assert told.buildings["osm_id"].iloc[0] == "way/0"
    assert told.buildings["osm_id"].isna().tolist() == [False, True]
    assert told.osm_buildings["map"].tolist() == ["same", "missing"]
    assert told.osm_buildings["map_id"].iloc[0] == "building/0"
    assert told.counts["buildings"] == {"same": 1, "new": 1}
    assert told.counts["osm_buildings"] == {"same": 1, "missing": 1}


def test_one_polygon_is_the_same_as_the_several_ways_of_a_terrace() -> None:
    terrace = [box(x, 0, x + 6, 10) for x in range(0, 30, 6)]
    told = buildings([box(0, 0, 30, 10)], terrace)
    assert told.osm_buildings["map"].tolist() == ["same"] * 5
    assert told.buildings["osm_id"].tolist() == ["way/0;way/1;way/2;way/3;way/4"]


def test_a_common_wall_or_a_corner_is_not_enough() -> None:
    told = buildings([box(0, 0, 10, 10)], [box(10, 0, 20, 10), box(9, 9, 19, 19)])
    assert told.buildings["osm"].tolist() == ["new"]
    assert told.osm_buildings["map"].tolist() == ["missing", "missing"]


def test_a_small_building_inside_a_large_one_is_the_same() -> None:
    told = buildings([box(0, 0, 100, 100)], [box(1, 1, 5, 5)])
    assert told.buildings["osm"].tolist() == ["same"]


def test_a_find_on_something_unlabelled_is_neither_same_nor_new() -> None:
    told = buildings(
        [box(0, 0, 10, 10), box(50, 0, 60, 10)],
        [box(0, 0, 10, 10), box(50, 0, 60, 10), box(51, 1, 61, 11)],
        ["unknown", "unknown", "yes"],
    )
    assert told.buildings["osm"].tolist() == ["unknown", "same"]
    assert told.osm_buildings["map"].tolist() == ["unknown", "unknown", "same"]


def test_what_osm_has_where_nobody_looked_is_not_missing() -> None:
    told = buildings([], [box(0, 0, 10, 10), box(500, 0, 510, 10)], looked_at=at(box(0, 0, 99, 99)))
    assert told.osm_buildings["map"].tolist() == ["missing", "not looked at"]


# -- roads ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("offset", "state"), [(4.0, "same"), (6.0, "new")])
def test_a_road_is_the_same_within_the_tolerance(offset: float, state: str) -> None:
    told = roads([LineString([(0, offset), (200, offset)])], [LineString([(0, 0), (200, 0)])])
    assert told.roads["osm"].tolist() == [state]
    assert told.roads["length_m"].iloc[0] == pytest.approx(200, rel=1e-3)


def test_a_road_that_osm_has_in_part_is_cut_where_osm_ends() -> None:
    told = roads([LineString([(0, 1), (300, 1)])], [LineString([(0, 0), (100, 0)])])
    assert told.roads["osm"].tolist() == ["same", "new"]
    assert told.roads["id"].tolist() == ["road/0", "road/0"]
    assert told.roads["length_m"].tolist() == pytest.approx([105, 195], abs=1.5)
    same, new = told.roads.geometry
    assert same.coords[-1] == new.coords[0]
    assert told.counts["roads_km"]["new"] == pytest.approx(0.195, abs=0.002)
    assert told.osm_roads["map"].tolist() == ["same"]


def test_a_crossing_road_is_new_as_a_whole() -> None:
    """Ten metres of it lie near OSM's road, too little for a stretch of its own."""
    told = roads([LineString([(50, -100), (50, 100)])], [LineString([(0, 0), (100, 0)])])
    assert told.roads["osm"].tolist() == ["new"]
    assert told.roads["osm_id"].isna().all()
    assert told.osm_roads["map"].tolist() == ["missing"]


def test_a_road_names_the_ways_that_it_follows_and_none_that_it_crosses() -> None:
    ways = [
        LineString([(0, 0), (100, 0)]),
        LineString([(100, 0), (200, 0)]),
        LineString([(50, -80), (50, 80)]),
    ]
    told = roads([LineString([(0, 1), (200, 1)])], ways)
    assert told.roads["osm_id"].tolist() == ["way/0;way/1"]
    assert told.osm_roads["map"].tolist() == ["same", "same", "missing"]


def test_a_tunnel_is_neither() -> None:
    line = LineString([(0, 0), (100, 0)])
    told = roads([line], [line], "unknown")
    assert told.roads["osm"].tolist() == ["unknown"]
    assert told.osm_roads["map"].tolist() == ["unknown"]


def test_a_way_is_cut_where_the_imagery_ends() -> None:
    told = roads([], [LineString([(0, 0), (300, 0)])], looked_at=at(box(-10, -50, 200, 50)))
    assert told.osm_roads["map"].tolist() == ["missing", "not looked at"]
    assert told.osm_roads["length_m"].tolist() == pytest.approx([200, 100], abs=1.5)


def test_a_square_of_osm_is_the_same_when_a_road_crosses_it() -> None:
    squares = [box(0, 0, 50, 50), box(500, 0, 550, 50)]
    told = roads([LineString([(10, 10), (40, 40)])], squares)
    assert told.roads["osm"].tolist() == ["same"]
    assert told.osm_roads["map"].tolist() == ["same", "missing"]
    assert told.osm_roads["length_m"].isna().all()


def test_tolerances_are_metres_on_the_ground_in_web_mercator() -> None:
    """There a metre of the map is 0.8 m of the ground, so 5.5 on the map are 4.4 on the ground."""
    found = ours([LineString([(0, 0), (200, 0)])], "road").to_crs(3857)
    osm = found.rename(columns={"id": "osm_id"}).assign(label="yes")
    osm = osm.set_geometry(osm.translate(0, 5.5)).to_crs(4326)
    none = {"ours": ours([], "building").to_crs(3857), "theirs": theirs([])}
    told = compare(
        {"roads": found, "buildings": none["ours"]}, {"roads": osm, "buildings": none["theirs"]}
    )
    assert told.roads["osm"].tolist() == ["same"]


def test_nothing_against_nothing_keeps_the_columns() -> None:
    told = roads([], [])
    assert {"id", "osm", "osm_id", "length_m"} <= set(told.roads.columns)
    assert {"osm_id", "map", "map_id"} <= set(told.osm_buildings.columns)
    assert told.roads.crs == UTM and told.osm_roads.crs == "EPSG:4326"
    assert told.counts["roads_km"] == {}


def test_rules_are_checked() -> None:
    with pytest.raises(ValueError, match="positive"):
        Rules(tolerance_m=0)


# -- laws ----------------------------------------------------------------------------------

point = st.tuples(st.integers(0, 300), st.integers(0, 300))
lines = st.lists(
    st.lists(point, min_size=2, max_size=5, unique=True).map(LineString), min_size=1, max_size=4
)


@settings(max_examples=12, deadline=None)
@given(lines, lines)
def test_stretches_add_up_to_their_roads(found: list[LineString], osm: list[LineString]) -> None:
    told = roads(found, osm)
    for number, line in enumerate(found):
        parts = told.roads[told.roads["id"] == f"road/{number}"]
        assert parts.length.sum() == pytest.approx(line.length, rel=1e-9)
        vertices = shapely.get_coordinates(parts.geometry).tolist()
        assert all(vertex in vertices for vertex in shapely.get_coordinates(at(line)).tolist())
        if len(parts) > 1:
            assert (parts["length_m"] >= 19.9).all()
            assert (parts["osm"].iloc[1:].to_numpy() != parts["osm"].iloc[:-1].to_numpy()).all()


@settings(max_examples=12, deadline=None)
@given(lines)
def test_a_map_against_itself_is_all_the_same(found: list[LineString]) -> None:
    told = roads(found, found)
    assert set(told.roads["osm"]) == {"same"}
    assert set(told.osm_roads["map"]) == {"same"}


@settings(max_examples=20, deadline=None)
@given(
    st.lists(point, min_size=2, max_size=6, unique=True),
    st.integers(0, 2**32),
    st.floats(0, 60),
)
def test_a_line_is_cut_at_the_same_places_in_another_crs(
    points: list[tuple[int, int]], bits: int, least_m: float
) -> None:
    line = gpd.GeoDataFrame(geometry=[at(LineString(points))], crs=UTM).to_crs(4326)
    (metric,) = to_metric(line)
    pieces = cut_in_pieces(metric.geometry.to_numpy())
    state = np.array([bits >> (n % 32) & 1 for n in range(len(pieces.line))], np.int8)
    degrees, metres = line.geometry.iloc[0], metric.geometry.iloc[0]
    for stretch in cut_by_state(pieces, state, least_m):
        here = part_of_line(degrees, pieces, stretch)
        there = part_of_line(metres, pieces, stretch)
        (moved,) = to_metric_like(here, metric.crs)
        assert shapely.hausdorff_distance(moved, there) < 0.01
        length_m = pieces.length_m[stretch.start : stretch.stop].sum()
        assert there.length == pytest.approx(length_m, abs=1e-6)


def to_metric_like(shape: LineString, crs: Any) -> Any:
    return gpd.GeoSeries([shape], crs=4326).to_crs(crs)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(point, st.integers(4, 60), st.integers(4, 60)), max_size=8))
def test_buildings_agree_on_who_is_the_same(made: list[tuple[Any, int, int]]) -> None:
    boxes: list[Polygon] = [box(x, y, x + w, y + h) for (x, y), w, h in made]
    told = buildings(boxes[::2], boxes[1::2])
    back = buildings(boxes[1::2], boxes[::2])
    assert (told.buildings["osm"] == "same").tolist() == (
        back.osm_buildings["map"] == "same"
    ).tolist()
    named = {name for ids in told.buildings["osm_id"].dropna() for name in ids.split(";")}
    same = told.osm_buildings["map"] == "same"
    assert named == set(told.osm_buildings["osm_id"][same])
