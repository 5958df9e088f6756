"""Layers: what is written is read, in any window, by us and by GDAL."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasterio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from orthotrace.tiling.errors import TilingError
from orthotrace.tiling.grid import Cell, Grid, Window
from orthotrace.tiling.layer import Layer, Pixels
from rasterio.enums import ColorInterp

Array = NDArray[Any]

GRID = Grid("EPSG:26918", (0.6, 0.6), (0.25, 0.5), cell=64, tile=32)
CELLS = [Cell(-1, 0), Cell(-1, 1), Cell(0, 0)]  # (0, 1) is not there.
WHOLE = Window(-64, 0, 64, 128)


def imagery(folder: Path, dtype: str = "uint8") -> tuple[Layer, Pixels]:
    """A layer with a mask, three of four cells of it, and the whole as an array."""
    rng = np.random.default_rng(0)
    layer = Layer(folder, GRID, ("red", "green", "blue", "nir"), dtype).save()
    valid_HW = rng.random(WHOLE.shape) < 0.8
    valid_HW[GRID.window(Cell(0, 1)).slices(WHOLE)] = False
    data_CHW = np.where(valid_HW, rng.integers(0, 256, (4, *WHOLE.shape)), 0).astype(dtype)
    return layer, _write(layer, Pixels(data_CHW, valid_HW))


def labels(folder: Path) -> tuple[Layer, Pixels]:
    """The same of labels, with a nodata value."""
    rng = np.random.default_rng(1)
    layer = Layer(folder, GRID, ("road", "building"), nodata=255).save()
    data_CHW = rng.choice(np.array([0, 1, 255], np.uint8), (2, *WHOLE.shape))
    data_CHW[:, *GRID.window(Cell(0, 1)).slices(WHOLE)] = 255
    return layer, _write(layer, Pixels(data_CHW, (data_CHW != 255).any(axis=0)))


def _write(layer: Layer, whole: Pixels) -> Pixels:
    for cell in CELLS:
        at = GRID.window(cell).slices(WHOLE)
        layer.write(cell, Pixels(whole.data_CHW[:, *at], whole.valid_HW[at]))
    return whole


@pytest.fixture(scope="module", params=["imagery", "labels"])
def written(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Layer, Pixels]:
    folder = tmp_path_factory.mktemp(request.param)
    return imagery(folder) if request.param == "imagery" else labels(folder)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    top=st.integers(-90, 80),
    left=st.integers(-30, 140),
    height=st.integers(1, 150),
    width=st.integers(1, 150),
)
def test_any_window_is_what_slicing_gives(
    written: tuple[Layer, Pixels], top: int, left: int, height: int, width: int
) -> None:
    layer, whole = written
    margin = 200
    nodata = layer.nodata or 0
    padding = ((0, 0), (margin, margin), (margin, margin))
    data_CHW = np.pad(whole.data_CHW, padding, constant_values=nodata)
    valid_HW = np.pad(whole.valid_HW, margin)
    window = Window(top, left, top + height, left + width)
    at = window.slices(WHOLE.grown(margin))
    found = layer.read(window)
    assert np.array_equal(found.data_CHW, data_CHW[:, *at])
    assert np.array_equal(found.valid_HW, valid_HW[at])


def test_gdal_reads_the_index_as_one_raster(written: tuple[Layer, Pixels]) -> None:
    layer, whole = written
    with rasterio.open(layer.write_index()) as source:
        assert np.array_equal(source.read(), whole.data_CHW)
        assert np.array_equal(source.read_masks(1) > 0, _mask(layer, whole))
        assert source.transform.almost_equals(GRID.transform(WHOLE))
        assert source.crs == rasterio.CRS.from_user_input(GRID.crs)
        assert source.descriptions == layer.bands
        assert ColorInterp.alpha not in source.colorinterp


def _mask(layer: Layer, whole: Pixels) -> Array:
    return whole.valid_HW if layer.nodata is None else whole.data_CHW[0] != layer.nodata


def test_a_tile_is_one_block_with_all_bands(written: tuple[Layer, Pixels]) -> None:
    layer, _ = written
    with rasterio.open(layer.path(CELLS[0])) as source:
        assert set(source.block_shapes) == {(GRID.tile, GRID.tile)}
        assert source.interleaving.name == "pixel"
        assert source.overviews(1)


def test_the_same_pixels_are_the_same_bytes(tmp_path: Path) -> None:
    def digests(name: str) -> list[str]:
        layer, _ = imagery(tmp_path / name)
        layer.write_index()
        paths = sorted(path for path in layer.folder.iterdir())
        return [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths]

    assert digests("one") == digests("other")


@pytest.mark.parametrize("dtype", ["uint16", "int16", "float32"])
def test_other_types_are_kept(tmp_path: Path, dtype: str) -> None:
    layer, whole = imagery(tmp_path, dtype)
    found = layer.read(WHOLE)
    assert found.data_CHW.dtype == dtype
    assert np.array_equal(found.data_CHW, whole.data_CHW)
    layer.write_index()
    with rasterio.open(tmp_path / "index.vrt") as source:
        assert source.dtypes[0] == dtype


def test_a_layer_is_opened_as_it_was_saved(tmp_path: Path) -> None:
    layer, _ = labels(tmp_path)
    assert Layer.open(tmp_path) == layer.save() == layer
    assert layer.cells() == CELLS


def test_tags_are_kept(tmp_path: Path) -> None:
    layer, whole = labels(tmp_path)
    at = GRID.window(CELLS[0]).slices(WHOLE)
    layer.write(
        CELLS[0], Pixels(whole.data_CHW[:, *at], whole.valid_HW[at]), {"dates": "2016-06-20"}
    )
    with rasterio.open(layer.path(CELLS[0])) as file:
        assert file.tags()["dates"] == "2016-06-20"


def test_a_layer_on_another_grid_is_refused(tmp_path: Path) -> None:
    layer, _ = labels(tmp_path)
    other = Layer(tmp_path, Grid("EPSG:26918", (0.6, 0.6), cell=64, tile=32), layer.bands)
    found = r"stands on the grid .*; wanted EPSG:26918 \(pixels of 0.6 x 0.6 from 0, 0; cells of 64"
    with pytest.raises(TilingError, match=found):
        other.save()
    assert Layer.open(tmp_path) == layer and layer.cells()


@pytest.mark.parametrize(("bands", "nodata"), [(("road",), 255), (("road", "building"), None)])
def test_a_layer_of_other_bands_begins_anew(
    tmp_path: Path, bands: tuple[str, ...], nodata: int | None
) -> None:
    layer, _ = labels(tmp_path)
    layer.write_index()
    other = Layer(tmp_path, GRID, bands, nodata=nodata).save()
    assert Layer.open(tmp_path) == other
    assert [path.name for path in tmp_path.iterdir()] == ["layer.json"]


@pytest.mark.parametrize("text", ["", "\0\0", '{"grid": {'])
def test_a_damaged_layer_file_is_written_anew(tmp_path: Path, text: str) -> None:
    layer, _ = labels(tmp_path)
    (tmp_path / "layer.json").write_text(text)
    assert Layer.open(layer.save().folder) == layer and layer.cells()


@pytest.mark.parametrize("text", [None, "", "{}", '{"grid": {}}', "[1]"])
def test_what_is_no_layer_is_refused(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "layer.json").write_text(text)
    with pytest.raises(TilingError, match="is no layer .* wanted a folder with a layer.json"):
        Layer.open(tmp_path)


def test_arrays_that_are_not_the_cells_are_refused(tmp_path: Path) -> None:
    layer = Layer(tmp_path, GRID, ("road",), nodata=255).save()
    for shape, dtype in (((2, 64, 64), "uint8"), ((1, 64, 32), "uint8"), ((1, 64, 64), "int16")):
        with pytest.raises(TilingError, match=r"a cell of .* is \(1, 64, 64\) of uint8, got"):
            layer.write(Cell(0, 0), Pixels(np.zeros(shape, dtype), np.ones(shape[1:], bool)))
    assert layer.cells() == []


def test_layers_that_cannot_be_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TilingError, match="holds one of .* got complex64"):
        Layer(tmp_path, GRID, ("red",), "complex64")
    with pytest.raises(TilingError, match="at least one band"):
        Layer(tmp_path, GRID, ())
    with pytest.raises(TilingError, match="no cell yet"):
        Layer(tmp_path, GRID, ("road",)).write_index()
    with pytest.raises(ValueError, match="two sizes"):
        Pixels(np.zeros((1, 4, 4)), np.zeros((4, 5), bool))


def test_a_torn_cell_is_an_error_and_never_zeros(tmp_path: Path) -> None:
    layer, _ = imagery(tmp_path)
    path = layer.path(CELLS[0])
    whole = path.read_bytes()
    for size in (len(whole) - 200, len(whole) // 2, 100, 0):
        path.write_bytes(whole[:size])
        with pytest.raises(TilingError, match=rf"{path.name} cannot be read .* remove it"):
            layer.read(GRID.window(CELLS[0]))


def test_a_file_of_another_name_is_no_cell(tmp_path: Path) -> None:
    layer = Layer(tmp_path, Grid("EPSG:26986", (1.0, 1.0), cell=16, tile=16), ("red",))
    for name in ("r1_cX.tif", "r1_c2.tif", "r000001_c000002 copy.tif"):
        (tmp_path / name).touch()
    assert layer.cells() == []
    (tmp_path / "r000001_c000002.tif").touch()
    assert layer.cells() == [Cell(1, 2)]
