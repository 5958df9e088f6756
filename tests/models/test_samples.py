"""Samples: what is counted is there, what is drawn is pure, labels stay with their pixels."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from orthotrace.models.errors import ModelError
from orthotrace.models.samples import Samples, build_samples, in_order, read_tile
from orthotrace.tiling.grid import Cell, Window
from orthotrace.tiling.layer import Layer, Pixels
from orthotrace.tiling.values import UNKNOWN

Place = tuple[Layer, Layer]


def drawn(place: Place, crop: int = 32, aimed: float = 0.5, jitter: float = 0.0) -> Samples:
    samples, _ = build_samples(
        *place, held_back=lambda tile: tile.left == 0, crop=crop, aimed=aimed, jitter=jitter, seed=7
    )
    return samples


def test_the_index_counts_what_a_read_of_everything_finds(place: Place) -> None:
    imagery, labels = place
    index = build_samples(imagery, labels, held_back=lambda tile: False, crop=32)[0].index
    pixels = imagery.read(Window(-128, 0, 0, 256))
    labels_KHW = labels.read(Window(-128, 0, 0, 256)).data_CHW
    labels_KHW[:, ~pixels.valid_HW] = UNKNOWN
    assert index.yes_TK.sum(axis=0).tolist() == (labels_KHW == 1).sum(axis=(1, 2)).tolist()
    assert index.known_TK.sum(axis=0).tolist() == [pixels.valid_HW.sum()] * 2
    valid = pixels.data_CHW[:, pixels.valid_HW].astype(float)
    np.testing.assert_allclose(index.mean, valid.mean(axis=1))
    np.testing.assert_allclose(index.std, valid.std(axis=1))


def test_every_tile_is_trained_on_held_back_or_left_out_with_its_reason(place: Place) -> None:
    samples, held = build_samples(*place, held_back=lambda tile: tile.left == 0, crop=32)
    assert len(samples.index.tiles) == 21 and len(held.tiles) == 3
    assert samples.index.left_out == {"without imagery": 7}
    assert held.left_out == {"without imagery": 1}
    assert all(tile.left > 0 for tile in samples.index.tiles)
    assert all(tile.left == 0 for tile in held.tiles)


def test_a_sample_is_a_pure_function_of_seed_step_and_place(place: Place) -> None:
    samples = drawn(place, jitter=0.3)
    one, same = samples.batch(5, 3), samples.batch(5, 3)
    assert np.array_equal(one.data_NCHW, same.data_NCHW)
    assert np.array_equal(one.labels_NKHW, same.labels_NKHW)
    assert not np.array_equal(one.data_NCHW, samples.batch(6, 3).data_NCHW)
    assert not np.array_equal(one.data_NCHW, replace(samples, seed=8).batch(5, 3).data_NCHW)


def test_the_labels_of_a_sample_are_those_of_its_pixels(place: Place) -> None:
    """Roads are 200 in red and buildings 220 in green, whatever the crop and the view."""
    for number in range(10):
        batch = drawn(place, crop=16 if number % 2 else 32).batch(number, 4)
        assert batch.data_NCHW.shape[-1] == (16 if number % 2 else 32)
        seen = batch.valid_NHW
        road, building = batch.labels_NKHW[:, 0], batch.labels_NKHW[:, 1]
        assert np.array_equal(road[seen] == 1, batch.data_NCHW[:, 0][seen] > 150)
        assert np.array_equal(building[seen] == 1, batch.data_NCHW[:, 1][seen] > 150)
        assert (road[~seen] == UNKNOWN).all()


def test_aimed_samples_hold_a_class_and_the_others_fall_anywhere(place: Place) -> None:
    aimed = drawn(place, crop=16, aimed=1.0).batch(0, 60)
    assert (aimed.labels_NKHW == 1).any(axis=(1, 2, 3)).all()
    anywhere = drawn(place, crop=16, aimed=0.0).batch(0, 60)
    assert not (anywhere.labels_NKHW == 1).any(axis=(1, 2, 3)).all()
    assert (anywhere.labels_NKHW != UNKNOWN).any(axis=(1, 2, 3)).all()


def test_rare_classes_are_aimed_at_as_often_as_common_ones(place: Place) -> None:
    samples = drawn(place)
    rare = np.zeros_like(samples.index.yes_TK)
    rare[:, 0] = samples.index.yes_TK[:, 0]
    rare[3, 1] = 1
    samples = replace(samples, aimed=1.0, index=replace(samples.index, yes_TK=rare))
    wanted = [samples._aim(np.random.default_rng(seed))[1] for seed in range(200)]
    assert 70 < wanted.count(1) < 130


def test_batches_drawn_ahead_are_the_same_in_the_same_order(place: Place) -> None:
    samples = drawn(place, jitter=0.2)
    found = list(in_order(partial(samples.batch, size=2), range(3, 9)))
    assert len(found) == 6
    for step, batch in zip(range(3, 9), found, strict=True):
        assert np.array_equal(batch.data_NCHW, samples.batch(step, 2).data_NCHW)


@given(st.lists(st.integers(), max_size=20), st.integers(1, 4))
def test_work_in_threads_is_a_map(items: list[int], readers: int) -> None:
    assert list(in_order(lambda item: item * 2, items, readers)) == [item * 2 for item in items]


def test_a_failure_comes_out_at_its_place_and_nothing_hangs() -> None:
    results = in_order(lambda item: 6 // item, [1, 2, 0, 3])
    assert [next(results), next(results)] == [6, 3]
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_who_takes_may_stop_early() -> None:
    begun: list[int] = []
    results = in_order(begun.append, range(1000))
    next(results)
    results.close()
    assert len(begun) < 10


def test_labels_are_unknown_where_there_is_no_imagery(place: Place) -> None:
    pixels, labels_KHW = read_tile(*place, Window(-96, 0, -64, 32))
    assert not pixels.valid_HW.all() and pixels.valid_HW.any()
    assert (labels_KHW[:, ~pixels.valid_HW] == UNKNOWN).all()


def test_labels_that_are_all_unknown_are_refused(place: Place, tmp_path: Path) -> None:
    imagery, labels = place
    blank = replace(labels, folder=tmp_path / "labels-g0").save()
    unknown = np.full((2, 128, 128), UNKNOWN, np.uint8)
    blank.write(Cell(-1, 0), Pixels(unknown, np.zeros((128, 128), bool)))
    with pytest.raises(ModelError, match=r"labels-g0 has no tile to train on .*is OSM mapped\?"):
        build_samples(imagery, blank, held_back=lambda tile: False, crop=32)


def test_layers_of_two_grids_are_refused(place: Place) -> None:
    imagery, labels = place
    other = replace(labels, grid=replace(labels.grid, cell=256))
    with pytest.raises(ModelError, match="wanted the grid of"):
        build_samples(imagery, other, held_back=lambda tile: False, crop=32)


def test_a_crop_larger_than_a_tile_is_refused(place: Place) -> None:
    with pytest.raises(ModelError, match="at most a tile of 32 pixels, got 64"):
        drawn(place, crop=64)
