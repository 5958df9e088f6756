"""Areas, lines and whole files against a truth: figures checked by hand, laws, real places."""

from pathlib import Path
from typing import Any

import geopandas as gpd
import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from orthotrace.mapping.errors import MappingError
from orthotrace.mapping.scoring.evaluate import evaluate_file
from orthotrace.mapping.scoring.features import read_features
from orthotrace.mapping.scoring.metres import to_metric
from orthotrace.mapping.scoring.vector_scores import (
    LineScores,
    ObjectScores,
    line_scores,
    object_scores,
)
from shapely import LineString, MultiLineString, Polygon, box
from shapely.affinity import translate

UTM = "EPSG:26918"
EAST, NORTH = 400_000.0, 4_100_000.0
PLACES = ("99", "990", "991", "995", "997", "998", "999")


def frame(*shapes: Any, crs: str = UTM) -> gpd.GeoDataFrame:
    moved = [shapely.transform(shape, lambda xy: xy + [EAST, NORTH]) for shape in shapes]
    return gpd.GeoDataFrame(geometry=gpd.GeoSeries(moved, crs=UTM)).to_crs(crs)


# -- objects -------------------------------------------------------------------------------


def test_known_squares() -> None:
    """Half of a 10 m square covered by its like has an IoU of 1/3; four fifths one of 2/3."""
    truth = frame(box(0, 0, 10, 10), box(100, 0, 110, 10), box(200, 0, 210, 10))
    found = frame(box(2, 0, 12, 10), box(105, 0, 115, 10), box(300, 0, 310, 10))
    scores = object_scores(found, truth)
    assert (scores.tp, scores.fp, scores.fn) == (1, 2, 2)
    assert scores.precision == scores.recall == scores.f1 == pytest.approx(1 / 3)
    assert scores.mean_iou == pytest.approx(2 / 3, rel=1e-6)
    assert object_scores(found, truth, iou=0.3).tp == 2


def test_a_terrace_found_as_one_is_found_at_most_once() -> None:
    houses = frame(*(box(x, 0, x + 6, 10) for x in range(0, 18, 6)))
    scores = object_scores(frame(box(0, 0, 18, 10)), houses, iou=0.3)
    assert (scores.tp, scores.fp, scores.fn) == (1, 0, 2)


def test_the_best_pair_comes_first() -> None:
    truth = frame(box(0, 0, 10, 10))
    found = frame(box(3, 0, 13, 10), box(1, 0, 11, 10))
    scores = object_scores(found, truth)
    assert (scores.tp, scores.fp, scores.fn) == (1, 1, 0)
    assert scores.mean_iou == pytest.approx(9 / 11, rel=1e-6)


def test_an_empty_side() -> None:
    some, none = frame(box(0, 0, 10, 10)), frame()
    missed, wrong, neither = (
        object_scores(none, some),
        object_scores(some, none),
        object_scores(none, none),
    )
    assert (missed.fn, missed.recall, missed.precision, missed.f1) == (1, 0, None, 0)
    assert (wrong.fp, wrong.recall, wrong.precision, wrong.mean_iou) == (1, None, 0, None)
    assert (neither.precision, neither.recall, neither.f1) == (None, None, None)


def test_only_what_stands_in_the_area_counts() -> None:
    truth = frame(box(0, 0, 10, 10), box(95, 0, 104, 10), box(300, 0, 310, 10))
    found = frame(box(0, 0, 10, 10), box(97, 0, 106, 10), box(400, 0, 410, 10))
    area = frame(box(-50, -50, 100, 50), crs="EPSG:4326").geometry
    scores = object_scores(found, truth, area=area)
    assert (scores.tp, scores.fp, scores.fn) == (2, 0, 0)


def test_a_bow_tie_is_repaired() -> None:
    bow_tie = Polygon([(0, 0), (10, 10), (10, 0), (0, 10)])
    assert object_scores(frame(bow_tie), frame(bow_tie)).mean_iou == pytest.approx(1)


@st.composite
def apart(draw: st.DrawFn) -> list[Polygon]:
    """Some boxes that do not overlap."""
    places = draw(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), unique=True))
    sides = st.tuples(*[st.integers(a, a + 12) for a in (0, 0, 15, 15)])
    return [translate(box(*draw(sides)), 30 * column, 30 * row) for column, row in places]


@settings(max_examples=10, deadline=None)
@given(apart(), apart())
def test_the_other_way_round_wrong_is_missed(one: list[Polygon], other: list[Polygon]) -> None:
    there = object_scores(frame(*one), frame(*other))
    back = object_scores(frame(*other), frame(*one))
    assert (there.tp, there.fp, there.fn) == (back.tp, back.fn, back.fp)
    assert there.tp + there.fn == len(other) and there.tp + there.fp == len(one)
    assert object_scores(frame(*one), frame(*one)).tp == len(one)


# -- lines ---------------------------------------------------------------------------------


@pytest.mark.parametrize("crs", ["EPSG:4326", "EPSG:3857", "EPSG:26917", "EPSG:2284"])
@pytest.mark.parametrize(("shift", "rate"), [(2.0, 1.0), (4.0, 0.0)])
def test_three_metres_are_metres_on_the_ground(crs: str, shift: float, rate: float) -> None:
    for across, along in [((0, shift), (200, 0)), ((shift, 0), (0, 200))]:
        truth = frame(LineString([(0, 0), along]))
        found = frame(translate(LineString([(0, 0), along]), *across), crs=crs)
        scores = line_scores(found, truth)
        assert (scores.precision, scores.recall, scores.f1) == (rate, rate, rate)
        assert scores.found_m == pytest.approx(200, rel=1e-3)


def test_a_road_found_by_half() -> None:
    truth = frame(LineString([(0, 0), (200, 0)]))
    scores = line_scores(frame(LineString([(0, 1), (100, 1)])), truth)
    assert scores.precision == 1
    assert scores.seen_m == pytest.approx(103, abs=1)


def test_a_truth_found_twice_counts_once() -> None:
    truth = frame(LineString([(0, 0), (200, 0)]))
    found = frame(LineString([(0, 1), (200, 1)]), LineString([(0, -1), (200, -1)]))
    scores = line_scores(found, truth)
    assert scores.seen_m == pytest.approx(200, rel=1e-3)
    assert scores.right_m == pytest.approx(400, rel=1e-3)
    assert scores.recall == 1


def test_lines_in_several_parts_and_an_area() -> None:
    truth = frame(MultiLineString([[(0, 0), (100, 0)], [(0, 50), (100, 50)]]))
    area = frame(box(0, -10, 50, 60)).geometry
    scores = line_scores(frame(LineString([(0, 0), (100, 0)])), truth, area=area)
    assert scores.found_m == pytest.approx(50, abs=0.6)
    assert scores.truth_m == pytest.approx(100, abs=1.1)
    assert scores.recall == pytest.approx(0.5)


def test_no_lines() -> None:
    some, none = frame(LineString([(0, 0), (100, 0)])), frame()
    missed, neither = line_scores(none, some), line_scores(none, none)
    assert (missed.precision, missed.recall, missed.f1) == (None, 0, 0)
    assert (neither.precision, neither.recall, neither.f1) == (None, None, None)


def test_other_geometries_are_refused() -> None:
    with pytest.raises(MappingError, match="hold Polygon; wanted lines"):
        line_scores(frame(box(0, 0, 1, 1)), frame())
    with pytest.raises(MappingError, match="no CRS"):
        line_scores(frame().set_crs(None, allow_override=True), frame())


point = st.tuples(st.integers(0, 200), st.integers(0, 200))
lines = st.lists(
    st.lists(point, min_size=2, max_size=5, unique=True).map(LineString), min_size=1, max_size=4
)


@settings(max_examples=10, deadline=None)
@given(lines, lines)
def test_lines_the_other_way_round(one: list[LineString], other: list[LineString]) -> None:
    there = line_scores(frame(*one), frame(*other))
    back = line_scores(frame(*other), frame(*one))
    assert (there.precision, there.recall) == (back.recall, back.precision)
    assert line_scores(frame(*one), frame(*one)).f1 == 1


@settings(max_examples=10, deadline=None)
@given(lines, lines, st.floats(1, 20))
def test_lengths_are_those_of_buffers(
    one: list[LineString], other: list[LineString], tolerance_m: float
) -> None:
    ours, theirs = to_metric(frame(*one), frame(*other))
    near = shapely.union_all(shapely.buffer(theirs.geometry.to_numpy(), tolerance_m, quad_segs=64))
    exact = sum(shapely.intersection(line, near).length for line in ours.geometry)
    scores = line_scores(frame(*one), frame(*other), tolerance_m=tolerance_m)
    crossings = sum(1 + len(line.coords) for line in other) * len(one) * 2
    assert scores.right_m == pytest.approx(exact, abs=crossings)


# -- files ---------------------------------------------------------------------------------


def save(path: Path, **layers: gpd.GeoDataFrame) -> Path:
    for name, features in layers.items():
        features.to_file(path, layer=name, driver="GPKG")
    return path


def test_a_file_is_scored_as_exported(tmp_path: Path) -> None:
    truth = save(
        tmp_path / "truth.gpkg",
        roads=frame(LineString([(0, 0), (100, 0)]), LineString([(500, 0), (600, 0)])),
        buildings=frame(box(0, 20, 10, 30)),
        area=frame(box(-100, -100, 200, 200), crs="EPSG:3857"),
    )
    found = save(
        tmp_path / "map.gpkg",
        roads=frame(LineString([(0, 1), (100, 1)]), crs="EPSG:4326"),
        buildings=frame(box(0, 20, 10, 30), box(50, 50, 60, 60), crs="EPSG:4326"),
        roads_vs_osm=frame(LineString([(0, 50), (100, 50)]), crs="EPSG:4326"),
    )
    scores = evaluate_file(found, truth)
    assert scores["roads"].f1 == 1
    assert scores["buildings"].precision == 0.5


def test_a_class_that_only_one_side_tells_of_is_not_scored(tmp_path: Path) -> None:
    roads, houses = frame(LineString([(0, 0), (100, 0)])), frame(box(0, 0, 9, 9))
    truth = save(tmp_path / "truth.gpkg", roads=roads)
    found = save(tmp_path / "map.gpkg", roads=roads.iloc[:0], buildings=houses)
    scores = evaluate_file(found, truth)
    assert list(scores) == ["roads"]
    assert scores["roads"].recall == 0
    with pytest.raises(MappingError, match="wanted roads or buildings in both"):
        evaluate_file(save(tmp_path / "houses.gpkg", buildings=houses), truth)


def test_a_truth_of_another_place_is_refused(tmp_path: Path) -> None:
    truth = save(tmp_path / "truth.gpkg", buildings=frame(box(0, 0, 9, 9)))
    found = save(tmp_path / "map.gpkg", buildings=frame(box(90_000, 0, 90_009, 9)))
    with pytest.raises(MappingError) as refused:
        evaluate_file(found, truth)
    told = str(refused.value)
    assert "\n" not in told and "-76.1" in told and "-75.1" in told and str(truth) in told


@pytest.mark.parametrize("suffix", ["parquet", "fgb", "geojson"])
def test_single_layers_are_known_by_name_or_geometry(tmp_path: Path, suffix: str) -> None:
    made = frame(LineString([(0, 0), (100, 0)]), crs="EPSG:4326")
    for name in ("roads", "centrelines"):
        path = tmp_path / f"{name}.{suffix}"
        made.to_parquet(path) if suffix == "parquet" else made.to_file(path)
        assert list(read_features(path)) == ["roads"]


def test_files_that_are_no_map_are_refused(tmp_path: Path) -> None:
    for name in ("no.gpkg", "no.parquet"):
        with pytest.raises(MappingError, match="is not there"):
            read_features(tmp_path / name)
        (tmp_path / name).write_bytes(b"nothing")
        with pytest.raises(MappingError, match="cannot be read"):
            read_features(tmp_path / name)
    trees = save(
        tmp_path / "trees.gpkg", trees=frame(box(0, 0, 1, 1)), lakes=frame(box(0, 0, 1, 1))
    )
    with pytest.raises(MappingError, match="trees, lakes"):
        read_features(trees)


# -- real places ---------------------------------------------------------------------------


@pytest.mark.real
def test_real_buildings(real_data: Path) -> None:
    folder = real_data / "metrics" / "polygons"
    pred, truth = folder / "pred.geojson", folder / "gt.geojson"
    itself = evaluate_file(truth, truth)["buildings"]
    assert isinstance(itself, ObjectScores)
    assert itself.f1 == 1 and itself.mean_iou == pytest.approx(1)
    told = evaluate_file(pred, truth)["buildings"]
    assert isinstance(told, ObjectScores)
    # SpaceNet's own scorer counts the same.
    assert (told.tp, told.fp, told.fn) == (8, 20, 20)


@pytest.mark.real
def test_real_roads_of_osm_and_of_a_survey_agree_for_the_most_part(real_data: Path) -> None:
    folder = real_data / "metrics" / "roads_osm_vs_spacenet"
    lengths = np.zeros(4)
    for number in PLACES:
        name = f"AOI_2_Vegas_img{number}.geojson"
        osm, truth = folder / "osm" / name, folder / "spacenet" / name
        assert evaluate_file(truth, truth)["roads"].f1 == 1
        told = evaluate_file(osm, truth)["roads"]
        assert isinstance(told, LineScores)
        lengths += [told.found_m, told.right_m, told.truth_m, told.seen_m]
    found_m, right_m, truth_m, seen_m = lengths
    assert 0.6 < right_m / found_m < 0.95
    assert 0.6 < seen_m / truth_m < 0.95
