"""The scores GeoTIFF: written block by block, equal to an array written at once."""

import random
from pathlib import Path

import numpy as np
import pytest
import rasterio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from orthotrace.mapping.errors import MappingError
from orthotrace.mapping.prediction.scores_file import scores_file
from orthotrace.tiling.grid import Grid, Window

GRID = Grid("EPSG:26986", (0.5, 0.5), cell=512, tile=512)


@settings(
    deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    top=st.integers(-700, 700),
    height=st.integers(1, 1500),
    side=st.sampled_from([64, 192, 512]),
    chance=st.randoms(use_true_random=False),
)
def test_what_is_put_is_read_back(
    tmp_path: Path, top: int, height: int, side: int, chance: random.Random
) -> None:
    area = Window(top, 5, top + height, 305)
    path, values = tmp_path / "scores.tif", np.random.default_rng(1)
    wanted = values.integers(0, 256, (2, *area.shape), dtype=np.uint8)
    squares = list(area.lattice(side))
    chance.shuffle(squares)
    with scores_file(path, GRID, area, ("road", "building"), {}) as file:
        for square in squares:
            kept = square.overlap(area)
            assert kept is not None
            file.put(kept, wanted[:, *kept.slices(area)])
    with rasterio.open(path) as found:
        assert np.array_equal(found.read(), wanted)


def test_a_file_that_does_not_read_back_never_takes_its_name(tmp_path: Path) -> None:
    area, path = Window(0, 0, 64, 40), tmp_path / "scores.tif"
    with (
        pytest.raises(MappingError, match=r"scores\.tif does not read back"),
        scores_file(path, GRID, area, ("road",), {}) as file,
    ):
        file.put(Window(0, 0, 64, 40), np.zeros((1, 64, 40), np.uint8))
        file.checksum += 1
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_not_covered_never_takes_its_name(tmp_path: Path) -> None:
    with (
        pytest.raises(ValueError, match="got 40 pixels without"),
        scores_file(tmp_path / "scores.tif", GRID, Window(0, 0, 65, 40), ("road",), {}) as file,
    ):
        file.put(Window(0, 0, 64, 40), np.zeros((1, 64, 40), np.uint8))
    assert list(tmp_path.iterdir()) == []
