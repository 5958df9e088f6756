"""Where a region was looked at: never on what has no data, and all of what was wholly seen."""

from pathlib import Path

import numpy as np
import rasterio
import shapely
from affine import Affine
from numpy.typing import NDArray
from orthotrace.mapping.progress import Silent
from orthotrace.mapping.region import read_region
from orthotrace.mapping.seen import SIDE, looked_at, seen_area
from orthotrace.mapping.session import Settings
from orthotrace.mapping.site import resolve
from orthotrace.mapping.stages import run_to
from orthotrace.tiling.grid import Cell, Grid, Window
from orthotrace.tiling.layer import Layer, Pixels
from shapely.geometry.base import BaseGeometry

GRID = Grid("EPSG:26918", (0.6, 0.5), (0.25, 0.5), cell=64, tile=32)
CELLS = (Cell(-1, 0), Cell(-1, 1), Cell(0, 0))


def layer_of(folder: Path, valid: dict[Cell, NDArray[np.bool_]]) -> Layer:
    """Imagery of one band; cells without validity have no file."""
    layer = Layer(folder, GRID, ("red",)).save()
    for cell, valid_HW in valid.items():
        layer.write(cell, Pixels(valid_HW[None].astype(np.uint8), valid_HW))
    return layer


def holds(area: BaseGeometry, grid: Grid, window: Window) -> NDArray[np.bool_]:
    """Which pixels of a window have their middle in the area."""
    at = grid.transform(window)
    x = at.c + (np.arange(window.width) + 0.5) * at.a
    y = at.f + (np.arange(window.height) + 0.5) * at.e
    shapely.prepare(area)
    return np.asarray(shapely.contains_xy(area, *np.meshgrid(x, y)), bool)


def test_what_was_seen_is_all_squares_that_are_valid_throughout(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    valid = {cell: rng.random((64, 64)) < 0.99 for cell in CELLS[:2]}
    area = seen_area(layer_of(tmp_path, valid), CELLS)
    assert area.is_valid
    for cell, valid_HW in valid.items():
        squares = valid_HW.reshape(64 // SIDE, SIDE, 64 // SIDE, SIDE).all(axis=(1, 3))
        assert 0 < squares.sum() < squares.size
        found_HW = holds(area, GRID, GRID.window(cell))
        assert np.array_equal(found_HW, squares.repeat(SIDE, axis=0).repeat(SIDE, axis=1))
    assert not holds(area, GRID, GRID.window(CELLS[2])).any(), "a cell that is not there was seen"


def test_whole_cells_side_by_side_are_one_rectangle_whatever_the_pixel(tmp_path: Path) -> None:
    valid = dict.fromkeys(CELLS[:2], np.ones((64, 64), bool))
    area = seen_area(layer_of(tmp_path, valid), CELLS)
    both = shapely.box(*GRID.bounds(Window(-64, 0, 0, 128)))
    assert shapely.get_num_coordinates(area) == 5
    assert area.symmetric_difference(both).area < 1e-6


def test_nothing_was_seen_where_no_cell_is(tmp_path: Path) -> None:
    assert seen_area(layer_of(tmp_path, {}), CELLS).is_empty
    assert seen_area(layer_of(tmp_path, {CELLS[0]: np.zeros((64, 64), bool)}), CELLS).is_empty


def test_what_lies_beside_a_turned_scene_was_not_looked_at(tmp_path: Path) -> None:
    """A scene's box in the grid's CRS holds corners in which the scene has no pixel."""
    turned = Affine(1, 0.5, 400_000, 0.5, -1, 4_000_000)
    told = {"driver": "GTiff", "count": 3, "height": 200, "width": 200, "dtype": "uint8"}
    with rasterio.open(
        tmp_path / "turned.tif", "w", crs=GRID.crs, transform=turned, **told
    ) as scene:
        scene.write(np.random.default_rng(0).integers(1, 255, (3, 200, 200), np.uint8))
    (tmp_path / "none.osm.pbf").touch()
    region = tmp_path / "turned.toml"
    region.write_text(
        '[sources]\nimagery = ["turned.tif"]\nosm = "none.osm.pbf"\n'
        f'[grid]\ncrs = "{GRID.crs}"\npixel = 1.0\ncell = 128\ntile = 64\n[recipe]\ncrop = 64\n'
    )
    run_to("tile", region, tmp_path, Settings(), Silent())
    site = resolve(read_region(region), tmp_path)
    valid_HW = site.imagery.read(site.window).valid_HW
    seen_HW = holds(looked_at(site), site.grid, site.window)
    assert 0.3 < valid_HW.mean() < 0.7
    assert not (seen_HW & ~valid_HW).any()
    assert seen_HW.sum() > 0.9 * valid_HW.sum()
