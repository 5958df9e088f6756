"""Scores layers to maps: files, columns, cells, and the same bytes whatever the order."""

import pickle
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import rasterio
import shapely
from geopandas import GeoDataFrame
from numpy.typing import NDArray
from orthotrace.mapping.errors import MappingError
from orthotrace.mapping.tracing.open_file import read_open
from orthotrace.mapping.tracing.roads import Crossings
from orthotrace.mapping.tracing.trace import (
    BUILDING_COLUMNS,
    ROAD_COLUMNS,
    TraceJob,
    TraceRecipe,
    join,
    open_path,
    read_map,
    trace_cell,
)
from orthotrace.tiling.grid import Cell, Grid, Window
from orthotrace.tiling.layer import Layer, Pixels

CORNER = (-900096, 230400)
NO, YES, NODATA = 20, 200, 255


def layer_of(
    folder: Path, bands: Mapping[str, NDArray[np.uint8]], cell: int, grid: Grid | None = None
) -> Layer:
    """Bands of one size, whose first pixel is CORNER, as a layer; around them is nodata."""
    grid = grid or Grid("EPSG:26986", (1.0, 1.0), cell=cell, tile=64)
    layer = Layer(folder, grid, tuple(bands), nodata=NODATA).save()
    data_CHW = np.stack(list(bands.values()))
    bottom, right = CORNER[0] + data_CHW.shape[1], CORNER[1] + data_CHW.shape[2]
    whole = Window(*CORNER, bottom, right)
    for place in grid.cells(whole):
        core = grid.window(place)
        part = core.overlap(whole)
        assert part is not None
        cell_CHW = np.full((len(bands), *core.shape), NODATA, np.uint8)
        cell_CHW[:, *part.slices(core)] = data_CHW[:, *part.slices(whole)]
        layer.write(place, Pixels(cell_CHW, (cell_CHW != NODATA).any(axis=0)))
    return layer


def traced(
    layer: Layer, folder: Path, backwards: bool = False
) -> tuple[GeoDataFrame, GeoDataFrame, Crossings]:
    cells = layer.cells()
    dates = {cell.name: f"20{abs(cell.col) % 100:02d}" for cell in cells}
    for cell in reversed(cells) if backwards else cells:
        job = TraceJob(layer, cell, folder, TraceRecipe(), dates[cell.name])
        trace_cell(pickle.loads(pickle.dumps(job)))
    crossings = join(folder, cells, layer.grid, TraceRecipe(), dates)
    return *read_map(folder, cells), crossings


def hamlet() -> dict[str, NDArray[np.uint8]]:
    """A road through 300 x 300 m with a side road, and houses along it."""
    road_HW = np.full((300, 300), NO, np.uint8)
    road_HW[150:157] = YES
    road_HW[20:150, 100:105] = YES
    building_HW = np.full((300, 300), NO, np.uint8)
    for col in range(10, 290, 25):
        building_HW[165:177, col : col + 15] = 254
        building_HW[120:132, col : col + 11] = YES
    return {"road": road_HW, "building": building_HW}


def test_features_have_their_columns_and_lie_where_they_should(tmp_path: Path) -> None:
    layer = layer_of(tmp_path / "scores", hamlet(), 128)
    buildings, roads, crossings = traced(layer, tmp_path / "trace")
    assert tuple(buildings.columns) == (*BUILDING_COLUMNS, "geometry")
    assert tuple(roads.columns) == (*ROAD_COLUMNS, "geometry")
    assert buildings.crs == roads.crs == "EPSG:26986"
    assert len(buildings) == 24 and len(roads) == 3
    assert crossings.unmatched == 0
    assert buildings["id"].is_unique and roads["id"].is_unique
    first = buildings.iloc[0]
    assert first["id"] == f"building/{CORNER[0] + 120}_{CORNER[1] + 10}"
    x, y = CORNER[1] + 10, -CORNER[0] - 120
    assert first.geometry.equals(shapely.box(x, y - 12, x + 11, y))
    assert first["area_m2"] == pytest.approx(11 * 12, rel=1e-3)
    assert first["score"] == pytest.approx(200 / 254)
    cell = Cell.parse(first["cell"])
    left, bottom, right, top = layer.grid.bounds(layer.grid.window(cell))
    assert shapely.box(left, bottom, right, top).contains(first.geometry.representative_point())
    assert first["date"] == f"20{abs(cell.col) % 100:02d}"
    assert roads["width_m"].tolist() == pytest.approx([6, 8, 8], abs=1)
    assert roads["length_m"].sum() == pytest.approx(300 + 130, abs=12)


def test_cells_and_order_change_nothing(tmp_path: Path) -> None:
    whole = traced(layer_of(tmp_path / "one", hamlet(), 512), tmp_path / "trace-one")
    parts = traced(layer_of(tmp_path / "many", hamlet(), 128), tmp_path / "trace-many")
    for frame, other in zip(whole[:2], parts[:2], strict=True):
        assert frame.drop(columns=["cell", "date"]).equals(other.drop(columns=["cell", "date"]))
    again = tmp_path / "again"
    traced(Layer.open(tmp_path / "many"), again, backwards=True)
    files = sorted(path.name for path in again.iterdir())
    assert files == sorted(path.name for path in (tmp_path / "trace-many").iterdir())
    for name in files:
        assert (again / name).read_bytes() == (tmp_path / "trace-many" / name).read_bytes()


def test_a_class_without_a_band_gives_an_empty_frame(tmp_path: Path) -> None:
    layer = layer_of(tmp_path / "scores", {"road": hamlet()["road"]}, 128)
    buildings, roads, _ = traced(layer, tmp_path / "trace")
    assert tuple(buildings.columns) == (*BUILDING_COLUMNS, "geometry")
    assert len(buildings) == 0 and len(roads) == 3
    assert read_open(open_path(tmp_path / "trace", layer.cells()[0]))[0] is None


def test_nothing_found_is_two_empty_frames(tmp_path: Path) -> None:
    blank_HW = np.full((100, 100), NODATA, np.uint8)
    layer = layer_of(tmp_path / "scores", {"road": blank_HW, "building": blank_HW}, 64)
    buildings, roads, _ = traced(layer, tmp_path / "trace")
    assert len(buildings) == len(roads) == 0
    assert buildings.crs == roads.crs == layer.grid.crs


def test_another_layer_or_a_missing_cell_is_refused(tmp_path: Path) -> None:
    grid = Grid("EPSG:26986", (1.0, 1.0), cell=64, tile=64)
    imagery = Layer(tmp_path / "imagery", grid, ("red",))
    with pytest.raises(MappingError, match="wanted scores"):
        trace_cell(TraceJob(imagery, Cell(0, 0), tmp_path, TraceRecipe()))
    with pytest.raises(MappingError, match=r"r000000_c000000.open.npz cannot be read"):
        join(tmp_path, [Cell(0, 0)], grid, TraceRecipe())
    for damaged in (b"", b"\0\0", b"PK cut short"):
        open_path(tmp_path, Cell(0, 0)).write_bytes(damaged)
        with pytest.raises(MappingError, match=f"remove {tmp_path} and trace again"):
            join(tmp_path, [Cell(0, 0)], grid, TraceRecipe())
    with pytest.raises(MappingError, match="traced and joined"):
        read_map(tmp_path, [Cell(0, 0)])


@pytest.mark.real
def test_real_masks_are_the_same_over_seams(tmp_path: Path, real_data: Path) -> None:
    bands = {}
    for name in ("road", "building"):
        path = real_data / "massachusetts" / f"{name}_masks" / "23429155_15.tif"
        if name == "road":
            path = path.with_name("23279080_15.tif")
        with rasterio.open(path) as source:
            mask_HW = source.read(1)[:700, 700:1400]
        height, width = mask_HW.shape
        band_HW = np.full((700, 700), NODATA, np.uint8)
        band_HW[:height, :width] = np.where(mask_HW == 255, 255, np.where(mask_HW == 1, YES, NO))
        bands[name] = band_HW
    whole = traced(layer_of(tmp_path / "one", bands, 1024), tmp_path / "trace-one")
    parts = traced(layer_of(tmp_path / "many", bands, 256), tmp_path / "trace-many")
    assert parts[2].unmatched == 0
    for frame, other in zip(whole[:2], parts[:2], strict=True):
        assert len(frame) > 40
        assert frame.geometry.is_valid.all()
        assert frame.drop(columns=["cell", "date"]).equals(other.drop(columns=["cell", "date"]))
