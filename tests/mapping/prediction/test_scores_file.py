"""The scores GeoTIFF: written row of blocks by row of blocks, equal to an array written at once."""

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
    left_out=st.sets(st.integers(0, 60)),
)
def test_what_is_put_is_read_back(
    tmp_path: Path, top: int, height: int, side: int, left_out: set[int]
) -> None:
    area = Window(top, 5, top + height, 75)
    wanted = np.full((2, *area.shape), 255, np.uint8)
    path, chance = tmp_path / "scores.tif", np.random.default_rng(1)
    with scores_file(path, GRID, area, ("road", "building"), {}) as file:
        for number, square in enumerate(area.lattice(side)):
            kept = square.overlap(area)
            if kept is not None and number not in left_out:
                scores = chance.integers(0, 255, (2, *kept.shape), dtype=np.uint8)
                file.put(kept, scores)
                wanted[:, *kept.slices(area)] = scores
    with rasterio.open(path) as found:
        assert np.array_equal(found.read(), wanted)


def test_a_file_that_does_not_read_back_never_takes_its_name(tmp_path: Path) -> None:
    area, path = Window(0, 0, 300, 40), tmp_path / "scores.tif"
    with (
        pytest.raises(MappingError, match=r"scores\.tif does not read back"),
        scores_file(path, GRID, area, ("road",), {}) as file,
    ):
        file.put(Window(0, 0, 64, 40), np.zeros((1, 64, 40), np.uint8))
        file.checksums.append((rasterio.windows.Window(0, 0, 40, 1), 12345))
    assert list(tmp_path.iterdir()) == []
