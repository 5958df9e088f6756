"""Pixels against a truth: the plain loop, and what must not be counted."""

from pathlib import Path

import geopandas as gpd
import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from orthotrace.mapping.errors import MappingError
from orthotrace.mapping.scoring.burnt import labels_of
from orthotrace.mapping.scoring.pixel_scores import (
    PixelCounts,
    as_labels,
    pixel_counts,
    pixel_counts_of_layers,
)
from orthotrace.tiling.grid import Cell, Grid, Window
from orthotrace.tiling.layer import Layer, Pixels

labels = arrays(np.uint8, (6, 7), elements=st.sampled_from([0, 1, 255]))


@settings(deadline=None)
@given(labels, labels)
def test_counts_are_those_of_the_plain_loop(
    found_HW: NDArray[np.uint8], truth_HW: NDArray[np.uint8]
) -> None:
    counted = {"tp": 0, "fp": 0, "fn": 0, "tn": 0, "unknown": 0}
    names = {(1, 1): "tp", (1, 0): "fp", (0, 1): "fn", (0, 0): "tn"}
    for pair in zip(found_HW.ravel().tolist(), truth_HW.ravel().tolist(), strict=True):
        counted[names.get(pair, "unknown")] += 1
    assert pixel_counts(found_HW, truth_HW) == PixelCounts(**counted)


@given(labels, labels, st.integers(1, 5))
def test_parts_add_up_to_the_whole(
    found_HW: NDArray[np.uint8], truth_HW: NDArray[np.uint8], at: int
) -> None:
    parts = [pixel_counts(found_HW[rows], truth_HW[rows]) for rows in (slice(at), slice(at, None))]
    assert parts[0] + parts[1] == pixel_counts(found_HW, truth_HW)


def test_certainty_is_a_find_and_nodata_is_none() -> None:
    scores_HW = np.array([[0, 126, 127, 254, 255]], np.uint8)
    assert as_labels(scores_HW, 0.5).tolist() == [[0, 0, 1, 1, 255]]


def test_known_rates() -> None:
    counts = PixelCounts(tp=6, fp=2, fn=4, tn=100, unknown=9)
    assert counts.iou == 0.5
    assert counts.precision == 0.75
    assert counts.recall == 0.6
    assert counts.f1 == pytest.approx(2 / 3)
    assert counts.figures()["unknown"] == 9


def test_rates_over_nothing_are_none() -> None:
    empty = PixelCounts(tn=10)
    assert (empty.iou, empty.precision, empty.recall, empty.f1) == (None,) * 4
    missed = PixelCounts(fn=10)
    assert (missed.iou, missed.precision, missed.recall, missed.f1) == (0, None, 0, 0)


def test_a_mask_of_0_and_other_numbers_is_refused() -> None:
    with pytest.raises(MappingError, match="the truth holds the value 2"):
        pixel_counts(np.zeros((2, 2), bool), np.full((2, 2), 2, np.uint8))
    with pytest.raises(ValueError, match="the truth"):
        pixel_counts(np.zeros((2, 2), bool), np.zeros((2, 3), np.uint8))


# -- layers --------------------------------------------------------------------------------

GRID = Grid("EPSG:26918", (1.0, 1.0), cell=32, tile=16)
BANDS = ("road", "building")
HERE, BESIDE = Cell(-9, 7), Cell(-9, 8)


def layer(folder: Path, bands: tuple[str, ...], cells: dict[Cell, NDArray[np.uint8]]) -> Layer:
    made = Layer(folder, GRID, bands, nodata=255).save()
    for cell, data_CHW in cells.items():
        made.write(cell, Pixels(data_CHW, (data_CHW != 255).any(axis=0)))
    return made


def test_layers_are_counted_by_class_cell_by_cell(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    cells = [HERE, BESIDE]
    scores = {c: random.integers(0, 256, (2, 32, 32), np.uint8) for c in cells}
    truths = {c: random.choice(np.array([0, 1, 255], np.uint8), (2, 32, 32)) for c in cells}
    found = layer(tmp_path / "scores", BANDS, scores)
    truth = layer(tmp_path / "truth", BANDS[::-1], {c: t[::-1] for c, t in truths.items()})

    windows = [GRID.window(cell) for cell in cells]
    counts = pixel_counts_of_layers(found, truth, windows, {"road": 0.25})

    for band, (name, probability) in enumerate({"road": 0.25, "building": 0.5}.items()):
        whole_found = np.hstack([as_labels(scores[c][band], probability) for c in cells])
        whole_truth = np.hstack([truths[c][band] for c in cells])
        assert counts[name] == pixel_counts(whole_found, whole_truth)
    by_call = pixel_counts_of_layers(
        found, lambda window: truth.read(window).data_CHW[::-1], windows, {"road": 0.25}
    )
    assert by_call == counts


def test_a_cell_that_was_not_looked_at_is_unknown_and_not_missed(tmp_path: Path) -> None:
    ones = np.ones((1, 32, 32), np.uint8)
    left, right = GRID.window(HERE), GRID.window(BESIDE)
    both = Window(left.top, left.left, right.bottom, right.right)
    found = layer(tmp_path / "scores", ("road",), {HERE: ones * 200})
    truth = layer(tmp_path / "truth", ("road",), {HERE: ones, BESIDE: 0 * ones})
    counts = pixel_counts_of_layers(found, truth, [both], {})
    assert counts == {"road": PixelCounts(tp=1024, unknown=1024)}


def test_labels_are_held_against_labels_without_a_threshold(tmp_path: Path) -> None:
    ones = np.ones((1, 32, 32), np.uint8)
    made = layer(tmp_path / "labels", ("road",), {HERE: ones})
    counts = pixel_counts_of_layers(made, made, [GRID.window(HERE)])
    assert counts["road"].iou == 1


def test_layers_of_two_grids_or_without_a_class_are_refused(tmp_path: Path) -> None:
    found = layer(tmp_path / "a", BANDS, {})
    other = Layer(tmp_path / "b", Grid("EPSG:26918", (2.0, 2.0), cell=32, tile=16), BANDS)
    with pytest.raises(MappingError, match="wanted Grid"):
        pixel_counts_of_layers(found, other, [])
    with pytest.raises(MappingError, match="holds the classes"):
        pixel_counts_of_layers(found, layer(tmp_path / "c", ("road",), {}), [])


# -- vector features -----------------------------------------------------------------------


def test_vector_features_are_burnt_as_labels() -> None:
    window = Window(-9, 10, -5, 30)  # 4 rows, 20 columns of 1 m
    left, bottom, right, top = GRID.bounds(window)
    road = shapely.LineString([(left - 50, top - 1), (right + 50, top - 1)])
    roads = gpd.GeoDataFrame({"width_m": [2.0]}, geometry=[road], crs=GRID.crs).to_crs(4326)
    known = gpd.GeoSeries([shapely.box(left, bottom, left + 10, top)], crs=GRID.crs).to_crs(3857)
    labels_KHW = labels_of({"roads": roads}, GRID, area=known)(window)
    assert labels_KHW[0, :, :10].tolist() == [[1] * 10] * 2 + [[0] * 10] * 2
    assert (labels_KHW[0, :, 10:] == 255).all()
    assert (labels_KHW[1] == 255).all()


def test_a_road_without_a_width_gets_the_one_given() -> None:
    window = Window(-9, 10, -1, 30)
    left, bottom, right, top = GRID.bounds(window)
    road = shapely.LineString([(left - 50, top - 4), (right + 50, top - 4)])
    roads = gpd.GeoDataFrame(geometry=[road], crs=GRID.crs)
    labels_KHW = labels_of({"roads": roads}, GRID, ("road",), road_width_m=4)(window)
    assert labels_KHW[0].sum(axis=0).tolist() == [4] * 20
