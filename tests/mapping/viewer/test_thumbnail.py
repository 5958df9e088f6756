from pathlib import Path

import numpy as np
import pytest
from orthotrace.mapping.errors import MappingError
from orthotrace.mapping.viewer.palette import class_colours, rgb
from orthotrace.mapping.viewer.thumbnail import thumbnail
from orthotrace.tiling.grid import Cell, Grid, Window
from orthotrace.tiling.layer import Layer, Pixels

GRID = Grid("EPSG:32618", (1.0, 1.0), cell=64, tile=16)
CELL = Cell(-4000 // 64, 300 // 64)
WINDOW = GRID.window(CELL)


def layer(folder: Path, bands: tuple[str, ...], data_CHW: np.ndarray, nodata: int | None) -> Layer:
    valid_HW = np.ones((64, 64), bool) if nodata is None else (data_CHW != nodata).any(axis=0)
    made = Layer(folder, GRID, bands, str(data_CHW.dtype), nodata).save()
    made.write(CELL, Pixels(data_CHW, valid_HW))
    return made


def test_imagery_is_averaged_and_keeps_its_place(tmp_path: Path) -> None:
    data_CHW = np.random.default_rng(1).integers(0, 255, (4, 64, 64), np.uint8)
    made = thumbnail(
        layer(tmp_path, ("nir", "red", "green", "blue"), data_CHW, None), WINDOW, "imagery", 16
    )
    expected = np.stack(
        [
            [
                [data_CHW[band, r : r + 4, c : c + 4].mean() for c in range(0, 64, 4)]
                for r in range(0, 64, 4)
            ]
            for band in (1, 2, 3)
        ],
        axis=-1,
    )
    np.testing.assert_allclose(made.rgba_HWC[..., :3], expected, atol=0.51)
    assert (made.rgba_HWC[..., 3] == 255).all()
    assert made.bounds == GRID.bounds(WINDOW)


def test_a_window_over_the_edge_of_the_data_is_transparent_there(tmp_path: Path) -> None:
    made = layer(tmp_path, ("red", "green", "blue"), np.full((3, 64, 64), 9, np.uint8), None)
    half = Window(WINDOW.top, WINDOW.left + 32, WINDOW.bottom, WINDOW.right + 32)
    alpha_HW = thumbnail(made, half, "imagery").rgba_HWC[..., 3]
    assert (alpha_HW[:, :32] == 255).all()
    assert (alpha_HW[:, 32:] == 0).all()


def test_the_reduction_is_the_same_however_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data_CHW = np.random.default_rng(2).integers(0, 256, (2, 64, 64), np.uint8)
    made = layer(tmp_path, ("road", "building"), data_CHW, 255)
    odd = Window(WINDOW.top + 3, WINDOW.left + 5, WINDOW.bottom, WINDOW.right)
    whole = thumbnail(made, odd, "scores", 21)
    monkeypatch.setattr("orthotrace.mapping.viewer.thumbnail._BLOCK", 7)
    np.testing.assert_array_equal(thumbnail(made, odd, "scores", 21).rgba_HWC, whole.rgba_HWC)


def test_a_thin_road_survives_and_unknown_is_hatched(tmp_path: Path) -> None:
    data_CHW = np.zeros((2, 64, 64), np.uint8)
    data_CHW[0, :, 10] = 1
    data_CHW[:, :, 32:] = 255
    rgba_HWC = thumbnail(
        layer(tmp_path, ("road", "building"), data_CHW, 255), WINDOW, "labels", 16
    ).rgba_HWC
    road, _ = map(rgb, class_colours(("road", "building")))
    assert (rgba_HWC[:, 2, :3] == road).all()
    assert (rgba_HWC[:, 3:8, 3] == 0).all()
    hatched_HW = rgba_HWC[:, 8:, 3] > 0
    assert 0 < hatched_HW.mean() < 0.5


def test_scores_grow_denser_and_not_looked_at_is_transparent(tmp_path: Path) -> None:
    data_CHW = np.zeros((2, 64, 64), np.uint8)
    data_CHW[1] = np.arange(64) * 3
    data_CHW[:, :5] = 255
    rgba_HWC = thumbnail(
        layer(tmp_path, ("road", "building"), data_CHW, 255), WINDOW, "scores"
    ).rgba_HWC
    assert (rgba_HWC[:5, :, 3] == 0).all()
    assert (np.diff(rgba_HWC[5, :, 3].astype(int)) >= 0).all()
    assert (rgba_HWC[5, 10:, :3] == rgb(class_colours(("building",))[0])).all()


def test_sixteen_bits_are_stretched(tmp_path: Path) -> None:
    data_CHW = np.broadcast_to(np.arange(64, dtype=np.uint16) * 100 + 3000, (1, 64, 64)).copy()
    rgba_HWC = thumbnail(layer(tmp_path, ("pan",), data_CHW, None), WINDOW, "imagery").rgba_HWC
    assert rgba_HWC[..., 0].min() == 0 and rgba_HWC[..., 0].max() == 255
    assert (rgba_HWC[..., 0] == rgba_HWC[..., 2]).all()


def test_no_size_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MappingError, match="at least one pixel"):
        thumbnail(Layer(tmp_path, GRID, ("road",), nodata=255), WINDOW, "labels", 0)
