"""Pixels against a truth: the plain loop, and what must not be counted."""

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
)
from orthotrace.tiling.grid import Grid, Window

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


GRID = Grid("EPSG:26918", (1.0, 1.0), cell=32, tile=16)


# -- vector features -----------------------------------------------------------------------


def test_vector_features_are_burnt_as_labels() -> None:
    window = Window(-9, 10, -5, 30)  # 4 rows, 20 columns of 1 m
    left, bottom, right, top = GRID.bounds(window)
    road = shapely.LineString([(left - 50, top - 1), (right + 50, top - 1)])
    roads = gpd.GeoDataFrame({"width_m": [2.0]}, geometry=[road], crs=GRID.crs).to_crs(4326)
    labels_KHW = labels_of({"roads": roads}, GRID)(window)
    assert labels_KHW[0].tolist() == [[1] * 20] * 2 + [[0] * 20] * 2
    assert (labels_KHW[1] == 255).all()


def test_a_road_without_a_width_gets_the_one_given() -> None:
    window = Window(-9, 10, -1, 30)
    left, bottom, right, top = GRID.bounds(window)
    road = shapely.LineString([(left - 50, top - 4), (right + 50, top - 4)])
    roads = gpd.GeoDataFrame(geometry=[road], crs=GRID.crs)
    labels_KHW = labels_of({"roads": roads}, GRID, ("road",), road_width_m=4)(window)
    assert labels_KHW[0].sum(axis=0).tolist() == [4] * 20
