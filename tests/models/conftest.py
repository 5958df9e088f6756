"""A made-up place, small enough to train on in seconds: red roads and green buildings."""

import numpy as np
import pytest
from orthotrace.models.recipe import Recipe
from orthotrace.tiling.grid import Cell, Grid
from orthotrace.tiling.layer import Layer, Pixels

GRID = Grid("EPSG:26986", (1.0, 1.0), cell=128, tile=32)
BLANK_ROWS = 40
"""At the top of each cell there is no imagery: a row of tiles, and a part of the next."""


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> tuple[Layer, Layer]:
    """Imagery and labels of two neighbouring cells of 4 x 4 tiles; do not write to them."""
    folder = tmp_path_factory.mktemp("place")
    imagery = Layer(folder / "imagery", GRID, ("red", "green", "blue")).save()
    labels = Layer(folder / "labels", GRID, ("road", "building"), nodata=255).save()
    random = np.random.default_rng(0)
    for cell in (Cell(-1, 0), Cell(-1, 1)):
        data_CHW = random.integers(60, 90, (3, 128, 128)).astype(np.uint8)
        labels_KHW = np.zeros((2, 128, 128), np.uint8)
        for _ in range(6):
            y, x = random.integers(0, 116, 2)
            labels_KHW[0, y : y + 4] = 1
            labels_KHW[1, y : y + 12, x : x + 12] = 1
        data_CHW[0][labels_KHW[0] == 1] = 200
        data_CHW[1][labels_KHW[1] == 1] = 220
        valid_HW = np.arange(128)[:, None].repeat(128, axis=1) >= BLANK_ROWS
        data_CHW[:, ~valid_HW] = 0
        imagery.write(cell, Pixels(data_CHW, valid_HW))
        labels.write(cell, Pixels(labels_KHW, np.ones((128, 128), bool)))
    return imagery, labels


@pytest.fixture
def tiny() -> Recipe:
    """The smallest training that has all parts: six steps, figures after three and six."""
    return Recipe(
        encoder="tu-mobilenetv3_small_050",
        decoder=(8, 8, 8, 8),
        weights="none",
        steps=6,
        crop=32,
        batch=2,
        warmup=2,
        evaluations=2,
        window=32,
        margin=16,
    )
