"""Real awkward files, one by one: each gives the right pixels or one clear sentence."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import rasterio
from orthotrace.tiling.errors import TilingError
from orthotrace.tiling.imagery import SceneReader, footprint, open_scene, scene_grid
from orthotrace.tiling.layer import Pixels
from orthotrace.tiling.scene import Scene
from rasterio.vrt import WarpedVRT
from rasterio.warp import Resampling

pytestmark = pytest.mark.real

FOLDERS = ("awkward_rasters", "oam/raw_chips_jpeg_in_tif")


@dataclass(frozen=True)
class Copied:
    """Read pixel by pixel, as rasterio reads the file's bands."""

    bands: tuple[int, ...]
    """The file's bands in the order of the scene's."""

    valid: float = 1.0
    """Share of pixels that are data."""


@dataclass(frozen=True)
class Resampled:
    """Read onto a north-up lattice of pixels that are square on the ground."""

    valid: float
    """Share of pixels of the footprint that are data."""

    pixel_m: float


RGB, GRAY = (1, 2, 3), (1,)
NO_CRS, NO_PLACE = "a transform but no CRS", "no place; wanted a georeferenced image"

WANTED: dict[str, Copied | Resampled | str] = {
    "derived/bgr_order.tif": Copied((3, 2, 1)),
    "derived/big_endian.tif": Copied(RGB),
    "derived/bigtiff.tif": Copied(RGB),
    "derived/epsg2249_us_feet.tif": Copied(RGB),
    "derived/epsg3857.tif": Copied(RGB, 0.9888),
    "derived/epsg4326.tif": Resampled(0.978, 0.88),
    "derived/far_from_any_osm_null_island.tif": Copied(RGB),
    "derived/float32_0_1.tif": Copied(RGB),
    "derived/internal_mask.tif": Copied(RGB, 0.7656),
    "derived/jpeg_named.tif": NO_PLACE,
    "derived/jpeg_ycbcr_tiled.tif": Copied(RGB),
    # Nothing tells that its axes are swapped: it is read in Antarctica, where it says it is.
    "derived/lonlat_swapped_epsg4326.tif": Resampled(0.999, 0.361),
    "derived/multi_page_two_ifds.tif": NO_PLACE,
    "derived/naip_like_rgbn_undefined_4th.tif": Copied((1, 2, 3, 4)),
    "derived/naïve name – with spaces & ünicode.TIF": Copied(RGB),
    "derived/no_crs.tif": NO_CRS,
    "derived/no_georef_at_all.tif": NO_PLACE,
    "derived/non_square_pixels_1x2m.tif": Resampled(0.992, 1.0),
    "derived/odd_block_16x32.tif": Copied(RGB),
    "derived/ok_reference.tif": Copied(RGB),
    "derived/palette_64.tif": Copied(GRAY),
    "derived/smaller_than_a_chip_100x70.tif": Copied(RGB),
    "derived/text_named.tif": "not recognized as being in a supported file format",
    "derived/truncated_last_100_bytes.tif": "cannot be read .* wanted a whole image file",
    "derived/two_band_gray_alpha.tif": Copied(GRAY),
    "derived/uint16_full_range.tif": Copied(RGB),
    "derived/utm19n.tif": Copied(RGB, 0.9476),
    "derived/vrt_missing_source.vrt": "not_here.tif: No such file .* all it refers to",
    "derived/worldfile_no_crs.pgw": "not recognized as being in a supported file format",
    "derived/worldfile_no_crs.png": NO_CRS,
    # As with swapped axes: at 82 degrees south, where it says it is.
    "derived/wrong_hemisphere_epsg32719.tif": Copied(RGB),
    "derived/zstd.tif": Copied(RGB),
    "other/2d_test.tif": Resampled(0.449, 17.0),
    "other/cint16.tif": "complex_int16: raw radar",
    "other/umbra_rotated_crop.tif": Resampled(0.68, 0.594),
    "rasterio/RGBA.uint16.tif": Copied((3, 2, 1), 0.4886),
    "rasterio/alpha.tif": Copied(RGB, 0.0152),
    "rasterio/byte.tif": Copied(GRAY),
    "rasterio/float32.tif": NO_CRS,
    "rasterio/float_raster_with_nodata.tif": Resampled(0.54, 494.0),
    "rasterio/goes.tif": Copied(RGB, 0.7831),
    "rasterio/rgb-byte-tenth.tif": Copied(RGB, 0.6762),
    "rasterio/rotated.tif": NO_CRS,
    "rasterio/test_esri_wkt.tif": Copied(GRAY),
    # No tag tells what its black edge is, so it is taken for a collar.
    "rasterio/world.byte.tif": Copied(GRAY, 0.3009),
    "rasterio/world.rgb.tif": Copied(RGB),
    "rio-cogeo/image_51px.tif": Copied(RGB),
    "rio-cogeo/image_colormap.tif": Resampled(0.287, 2955.0),
    "rio-cogeo/image_missing_nodata.tif": Copied(GRAY),
    "rio-cogeo/image_rgb_mask.tif": Copied(RGB, 0.9046),
    "rio-cogeo/nontiff.jpg": NO_PLACE,
    "rio-tiler/cog_dateline.tif": Copied(GRAY),
    "rio-tiler/cog_gcps_ovr.tif": Resampled(0.70, 200.0),
    "rio-tiler/cog_hirise_mars.tif": "body of 3396 km radius.* the Earth",
    "rio-tiler/cog_nonearth.tif": "body of 1561 km radius.* the Earth",
    "rio-tiler/cog_ovr.tif": Copied(GRAY),
    "rio-tiler/cog_rgba.tif": Copied(RGB, 0.8870),
    "rio-tiler/cog_scale.tif": Copied((1, 2), 0.9999),
    "rio-tiler/cog_uint8_rgb_mask.tif": Copied(RGB, 0.75),
    "rio-tiler/inverted_lat.tif": "no data in any pixel",
    "rio-tiler/no_geo2.jpg": NO_PLACE,
    "OAM-386690-220241-19.tif": Copied(RGB),
    "OAM-386690-220242-19.tif": Copied(RGB),
    "OAM-386691-220241-19.tif": Copied(RGB),
    "OAM-386691-220242-19.tif": Copied(RGB),
}


def files_in(real_data: Path) -> dict[str, Path]:
    """Every image of the folders by its name in the table."""
    return {
        path.relative_to(real_data / folder).as_posix(): path
        for folder in FOLDERS
        for path in (real_data / folder).rglob("*")
        if path.is_file() and not path.name.endswith(".aux.xml")
    }


def read_whole(scene: Scene) -> tuple[Pixels, float]:
    """All pixels of a scene on its grid, and their width in metres on the ground."""
    grid = scene_grid(scene)
    with SceneReader(scene, grid) as reader:
        return reader.read(reader.window), grid.ground_pixel(reader.window)[0]


def close_to_gdal(scene: Scene, found: Pixels) -> bool:
    """Whether GDAL's own warper gives nearly the same but beside what is no data."""
    grid = scene_grid(scene)
    at = footprint(scene, grid)
    place = {
        "crs": grid.crs,
        "transform": grid.transform(at),
        "width": at.width,
        "height": at.height,
    }
    kernel = {"resampling": Resampling.bilinear, "XSCALE": 1, "YSCALE": 1}
    with rasterio.open(scene.path) as source:
        with WarpedVRT(source, **kernel, **place) as warped:
            data_CHW = scene.channels.read(warped)
    off_CN = np.abs(data_CHW.astype(float) - found.data_CHW)[:, found.valid_HW]
    return bool((off_CN > 0.02 * np.ptp(found.data_CHW)).mean() < 0.02)


def test_every_file_is_in_the_table(real_data: Path) -> None:
    assert files_in(real_data).keys() == WANTED.keys()


@pytest.mark.parametrize("name", [n for n, wanted in WANTED.items() if isinstance(wanted, str)])
def test_a_sentence_says_what_is_wrong(real_data: Path, name: str) -> None:
    path = files_in(real_data)[name]
    with pytest.raises(TilingError, match=str(WANTED[name])) as refusal:
        read_whole(open_scene(path))
    said = str(refusal.value)
    assert path.name in said and "wanted" in said and "\n" not in said


@pytest.mark.parametrize("name", [n for n, wanted in WANTED.items() if isinstance(wanted, Copied)])
def test_pixels_are_those_of_the_file(real_data: Path, name: str) -> None:
    wanted = WANTED[name]
    assert isinstance(wanted, Copied)
    path = files_in(real_data)[name]
    scene = open_scene(path)
    found, _ = read_whole(scene)
    with rasterio.open(path) as source:
        data_CHW = source.read(list(wanted.bands))
        if scene.channels.palette:
            table = np.array([source.colormap(1)[index][:3] for index in range(256)], np.uint8)
            data_CHW = table[data_CHW[0]].transpose(2, 0, 1)
    assert found.valid_HW.mean() == pytest.approx(wanted.valid, abs=5e-4)
    assert np.array_equal(found.data_CHW[:, found.valid_HW], data_CHW[:, found.valid_HW])
    assert not found.data_CHW[:, ~found.valid_HW].any()


@pytest.mark.parametrize(
    "name", [n for n, wanted in WANTED.items() if isinstance(wanted, Resampled)]
)
def test_pixels_are_square_on_the_ground(real_data: Path, name: str) -> None:
    wanted = WANTED[name]
    assert isinstance(wanted, Resampled)
    scene = open_scene(files_in(real_data)[name])
    found, width_m = read_whole(scene)
    assert scene.channels.palette or close_to_gdal(scene, found)  # GDAL mixes a palette's indices.
    assert width_m == pytest.approx(wanted.pixel_m, rel=0.03)
    assert found.valid_HW.mean() == pytest.approx(wanted.valid, abs=0.01)
    assert np.isfinite(found.data_CHW).all()
    assert not found.data_CHW[:, ~found.valid_HW].any()
