"""Which files are found, in which order they count, and the grid that most of them stand on."""

from pathlib import Path

import numpy as np
import pytest
import rasterio
from affine import Affine
from orthotrace.tiling.catalogue import common_grid, find_scenes, order, rooted
from orthotrace.tiling.errors import TilingError
from orthotrace.tiling.imagery import open_scene
from orthotrace.tiling.scene import Scene


def image(
    path: Path,
    side: int = 16,
    *,
    crs: str = "EPSG:26918",
    x: float = 500_000,
    pixel: float = 1.0,
) -> Path:
    """Write a small gray image."""
    path.parent.mkdir(parents=True, exist_ok=True)
    driver = "PNG" if path.suffix.lower() == ".png" else "GTiff"
    told = {"width": side, "height": side, "count": 1, "dtype": "uint8", "driver": driver}
    at = Affine(pixel, 0, x, 0, -pixel, 4_000_000)
    with rasterio.open(path, "w", crs=crs, transform=at, **told) as file:
        file.write(np.full((1, side, side), 100, np.uint8))
    return path


def names(scenes: list[Scene]) -> list[str]:
    return [scene.path.name for scene in scenes]


def test_files_folders_and_globs_find_each_file_once(tmp_path: Path) -> None:
    image(tmp_path / "a" / "one.TIF")
    image(tmp_path / "a" / "two.tiff")
    image(tmp_path / "a" / ".part-two-1.tiff")
    image(tmp_path / "a" / "deeper" / "three.tif")
    image(tmp_path / "four.dat")
    (tmp_path / "a" / "notes.txt").write_text("no image")
    assert names(find_scenes(["a"], tmp_path)) == ["one.TIF", "two.tiff"]
    assert names(find_scenes(["four.dat", tmp_path / "a"], tmp_path)) == [
        "one.TIF",
        "two.tiff",
        "four.dat",
    ]
    assert names(find_scenes(["a/*.tiff", "a/**/t*.tif*", "a"], tmp_path)) == [
        "three.tif",
        "one.TIF",
        "two.tiff",
    ]


def test_a_name_with_brackets_is_a_name(tmp_path: Path) -> None:
    image(tmp_path / "scene[1].tif")
    assert names(find_scenes(["scene[1].tif"], tmp_path)) == ["scene[1].tif"]


@pytest.mark.parametrize("source", ["naip/*.tif", "**/a*.tif", "naip", "naip/a[1].tif"])
def test_a_folder_with_brackets_is_no_glob(tmp_path: Path, source: str) -> None:
    folder = tmp_path / "br [2022] x"
    image(folder / "naip" / "a[1].tif")
    assert names(find_scenes([source], folder)) == ["a[1].tif"]
    assert names(find_scenes([rooted(source, folder)], Path())) == ["a[1].tif"]


@pytest.mark.parametrize("source", ["", "a\0.tif", "**x"])
def test_what_can_be_no_source_is_refused(tmp_path: Path, source: str) -> None:
    with pytest.raises(TilingError):
        find_scenes([source], tmp_path)


@pytest.mark.parametrize("source", ["none", "none/*.tif", "empty"])
def test_a_source_that_finds_nothing_is_refused(tmp_path: Path, source: str) -> None:
    (tmp_path / "empty").mkdir()
    image(tmp_path / "one.tif")
    with pytest.raises(TilingError, match=f"{source.rstrip('*.tif/')}.*; wanted"):
        find_scenes(["one.tif", source], tmp_path)


def test_no_source_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TilingError, match="no source of imagery"):
        find_scenes([], tmp_path)


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    image(tmp_path / "one.tif")
    (tmp_path / "broken.tif").write_text("no image")
    with pytest.raises(TilingError, match=r"broken\.tif cannot be read"):
        find_scenes(["."], tmp_path)


def test_the_newest_counts_then_the_largest_then_the_name(tmp_path: Path) -> None:
    image(tmp_path / "undated.tif", 64)
    image(tmp_path / "m_3607824_se_17_1_20160620.tif", 64)
    image(tmp_path / "m_3607824_se_17_1_20180620.tif", 16)
    image(tmp_path / "m_3607824_sw_17_1_20180620.tif", 32)
    image(tmp_path / "m_3607825_sw_17_1_20180620.tif", 16)
    found = find_scenes(["."], tmp_path)
    wanted = [
        "m_3607824_sw_17_1_20180620.tif",
        "m_3607824_se_17_1_20180620.tif",
        "m_3607825_sw_17_1_20180620.tif",
        "m_3607824_se_17_1_20160620.tif",
        "undated.tif",
    ]
    assert names(order(found)) == wanted
    assert names(order(reversed(found))) == wanted


def test_the_grid_is_that_of_most_ground(tmp_path: Path) -> None:
    scenes = [
        open_scene(image(tmp_path / "a.tif", 72, crs="EPSG:26917")),
        open_scene(image(tmp_path / "b.tif", 50, x=500_000.25)),
        open_scene(image(tmp_path / "c.tif", 50, x=500_100.25)),
        open_scene(image(tmp_path / "d.tif", 60, x=500_200.5)),
        open_scene(image(tmp_path / "e.tif", 40, pixel=0.6)),
    ]
    grid = common_grid(scenes, cell=1024, tile=256)
    assert (grid.crs, grid.pixel, grid.cell, grid.tile) == ("EPSG:26918", (1.0, 1.0), 1024, 256)
    assert grid.anchor == (0.25, 0.0)
    assert common_grid(scenes[::-1], cell=1024, tile=256) == grid


def test_a_wanted_pixel_size_is_taken(tmp_path: Path) -> None:
    scenes = [open_scene(image(tmp_path / "a.tif", x=500_000.25))]
    assert common_grid(scenes, pixel_m=0.6).pixel == (0.6, 0.6)
    assert common_grid(scenes, pixel_m=1.0).anchor == (0.25, 0.0)


def test_no_scenes_have_no_grid() -> None:
    with pytest.raises(TilingError, match="no imagery"):
        common_grid([])
