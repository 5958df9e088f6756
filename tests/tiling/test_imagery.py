"""Scenes, their readers and mosaics: what is copied, what is resampled, and where there is data."""

import pickle
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasterio
from affine import Affine
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from orthotrace.tiling import validity
from orthotrace.tiling.acquired import date_taken
from orthotrace.tiling.errors import TilingError
from orthotrace.tiling.grid import Grid, Window
from orthotrace.tiling.imagery import SceneReader, footprint, open_scene, scene_grid
from orthotrace.tiling.layer import Pixels
from orthotrace.tiling.mosaic import make_mosaic, read_mosaic
from orthotrace.tiling.scene import Scene
from pyproj import Transformer
from rasterio.control import GroundControlPoint
from rasterio.enums import ColorInterp

Array = NDArray[Any]

UTM = "EPSG:32618"
AT = Affine(1, 0, 500_000, 0, -1, 4_000_000)


def noise(shape: tuple[int, ...], dtype: str = "uint8", seed: int = 0) -> Array:
    """Values from 1 to 254, so that none is black or white."""
    return np.random.default_rng(seed).integers(1, 255, shape).astype(dtype)


def raster(
    path: Path,
    data_CHW: Array,
    *,
    crs: str | None = UTM,
    transform: Affine = AT,
    colorinterp: tuple[ColorInterp, ...] | None = None,
    mask: Array | None = None,
    tags: dict[str, str] | None = None,
    **profile: Any,
) -> Path:
    """Write a small GeoTIFF."""
    count, height, width = data_CHW.shape
    told = {"count": count, "height": height, "width": width, "dtype": data_CHW.dtype.name}
    if transform != Affine.identity():
        profile["transform"] = transform
    with (
        rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True),
        rasterio.open(path, "w", driver="GTiff", crs=crs, **told, **profile) as file,
    ):
        if colorinterp is not None:
            file.colorinterp = colorinterp
        file.write(data_CHW)
        file.update_tags(**(tags or {}))
        if mask is not None:
            file.write_mask(mask)
    return path


def vrt(source: str, told: str = "") -> str:
    """The text of a VRT of one band of 20 x 20 bytes."""
    return (
        f'<VRTDataset rasterXSize="20" rasterYSize="20"><SRS>{UTM}</SRS>'
        "<GeoTransform>500000, 1, 0, 4000000, 0, -1</GeoTransform>"
        f'<VRTRasterBand dataType="Byte" band="1">{told}<SimpleSource>'
        f'<SourceFilename relativeToVRT="1">{source}</SourceFilename>'
        "<SourceBand>1</SourceBand></SimpleSource></VRTRasterBand></VRTDataset>"
    )


def whole(scene: Scene, grid: Grid | None = None) -> Pixels:
    with SceneReader(scene, grid or scene_grid(scene)) as reader:
        return reader.read(reader.window)


def in_parts(read: Callable[[Window], Pixels], window: Window, side: int) -> Pixels:
    """The window put together from small reads."""
    parts = [(at, read(at)) for at in window.lattice(side)]
    first = parts[0][1].data_CHW
    shape = (len(first), *window.grown(side).shape)
    data_CHW, valid_HW = np.zeros(shape, first.dtype), np.zeros(shape[1:], bool)
    for at, found in parts:
        into = at.slices(window.grown(side))
        data_CHW[:, *into], valid_HW[into] = found.data_CHW, found.valid_HW
    core = window.slices(window.grown(side))
    return Pixels(data_CHW[:, *core], valid_HW[core])


def same(one: Pixels, other: Pixels) -> bool:
    return np.array_equal(one.data_CHW, other.data_CHW) and np.array_equal(
        one.valid_HW, other.valid_HW
    )


# -- a scene on the lattice is copied -------------------------------------------------------------


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    top=st.integers(-30, 70),
    left=st.integers(-30, 90),
    height=st.integers(1, 80),
    width=st.integers(1, 80),
)
def test_any_window_is_what_slicing_gives(
    tmp_path: Path, top: int, left: int, height: int, width: int
) -> None:
    path = tmp_path / "scene.tif"
    data_CHW = noise((3, 60, 80))
    if not path.exists():
        raster(path, data_CHW, transform=Affine(0.6, 0, 500_000.2, 0, -0.6, 4_000_000.3))
    scene = open_scene(path)
    grid = scene_grid(scene)
    origin = footprint(scene, grid)
    padded_CHW = np.pad(data_CHW, ((0, 0), (200, 200), (200, 200)))
    inside_HW = np.pad(np.ones((60, 80), bool), 200)
    rows, cols = slice(200 + top, 200 + top + height), slice(200 + left, 200 + left + width)
    at = Window(
        origin.top + top,
        origin.left + left,
        origin.top + top + height,
        origin.left + left + width,
    )
    with SceneReader(scene, grid) as reader:
        found = reader.read(at)
    assert np.array_equal(found.data_CHW, padded_CHW[:, rows, cols])
    assert np.array_equal(found.valid_HW, inside_HW[rows, cols])


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "float32"])
def test_types_are_kept(tmp_path: Path, dtype: str) -> None:
    data_CHW = noise((1, 20, 20), dtype)
    found = whole(open_scene(raster(tmp_path / "scene.tif", data_CHW)))
    assert found.data_CHW.dtype == dtype
    assert np.array_equal(found.data_CHW, data_CHW)


@pytest.mark.parametrize("dtype", ["float64", "int32", "uint32"])
def test_wider_types_become_float32(tmp_path: Path, dtype: str) -> None:
    data_CHW = noise((1, 20, 20), dtype)
    scene = open_scene(raster(tmp_path / "scene.tif", data_CHW))
    assert scene.dtype == "float32"
    assert np.array_equal(whole(scene).data_CHW, data_CHW)


def test_a_scene_survives_pickling(tmp_path: Path) -> None:
    scene = open_scene(raster(tmp_path / "scene.tif", noise((3, 20, 20)), nodata=0))
    assert pickle.loads(pickle.dumps(scene)) == scene


def test_bands_are_chosen_by_name(tmp_path: Path) -> None:
    data_CHW = noise((4, 20, 20))
    scene = open_scene(raster(tmp_path / "scene.tif", data_CHW, photometric="RGB"))
    with SceneReader(scene, scene_grid(scene), ["nir", "red"]) as reader:
        assert np.array_equal(reader.read(reader.window).data_CHW, data_CHW[[3, 0]])
    with pytest.raises(TilingError, match=r"scene\.tif has red, green, blue, nir; wanted .* pan"):
        SceneReader(scene, scene_grid(scene), ["pan"])


# -- which band is which --------------------------------------------------------------------------

RED, GREEN, BLUE = ColorInterp.red, ColorInterp.green, ColorInterp.blue
GRAY, NONE, ALPHA = ColorInterp.gray, ColorInterp.undefined, ColorInterp.alpha


@pytest.mark.parametrize(
    ("told", "names", "indexes"),
    [
        ((GRAY,), ("gray",), (1,)),
        ((RED, GREEN, BLUE), ("red", "green", "blue"), (1, 2, 3)),
        ((BLUE, GREEN, RED), ("red", "green", "blue"), (3, 2, 1)),
        ((GRAY, NONE, NONE), ("red", "green", "blue"), (1, 2, 3)),
        ((RED, GREEN, BLUE, NONE), ("red", "green", "blue", "nir"), (1, 2, 3, 4)),
        ((RED, GREEN, BLUE, ALPHA), ("red", "green", "blue", "nir"), (1, 2, 3, 4)),
        ((GRAY, NONE, NONE, NONE), ("red", "green", "blue", "nir"), (1, 2, 3, 4)),
        ((RED, GREEN, BLUE, NONE, NONE), ("red", "green", "blue", "nir", "band5"), (1, 2, 3, 4, 5)),
        ((GRAY, NONE), ("gray", "band2"), (1, 2)),
    ],
)
def test_bands_are_named(
    tmp_path: Path,
    told: tuple[ColorInterp, ...],
    names: tuple[str, ...],
    indexes: tuple[int, ...],
) -> None:
    data_CHW = noise((len(told), 40, 40))
    scene = open_scene(raster(tmp_path / "scene.tif", data_CHW, colorinterp=told))
    assert scene.bands == names
    assert scene.channels.indexes == indexes
    assert scene.channels.alpha is None
    assert np.array_equal(whole(scene).data_CHW, data_CHW[[index - 1 for index in indexes]])


def test_a_palette_is_expanded(tmp_path: Path) -> None:
    path = tmp_path / "scene.tif"
    colours = {0: (10, 20, 30, 255), 1: (200, 100, 50, 255)}
    index_HW = np.random.default_rng(0).integers(0, 2, (20, 20)).astype(np.uint8)
    with rasterio.open(
        path,
        "w",
        driver="GTiff",
        width=20,
        height=20,
        count=1,
        dtype="uint8",
        crs=UTM,
        transform=AT,
    ) as file:
        file.write(index_HW, 1)
        file.write_colormap(1, colours)
    scene = open_scene(path)
    table = np.array([colours[0][:3], colours[1][:3]], np.uint8)
    assert scene.bands == ("red", "green", "blue")
    assert np.array_equal(whole(scene).data_CHW, table[index_HW].transpose(2, 0, 1))


def test_the_first_of_many_pages_is_read(tmp_path: Path) -> None:
    path = tmp_path / "scene.tif"
    first = noise((1, 20, 20))
    raster(path, first)
    raster(path, noise((1, 20, 20), seed=1), APPEND_SUBDATASET="YES")
    assert np.array_equal(whole(open_scene(path)).data_CHW, first)


@pytest.mark.real
def test_naip_nir_marked_as_alpha_stays_nir(real_data: Path, tmp_path: Path) -> None:
    source = real_data / "naip/m_3607824_se_17_1_20160620_subset.tif"
    with rasterio.open(source) as file:
        data_CHW, crs, at = file.read(), file.crs, file.transform
    told = (RED, GREEN, BLUE, ALPHA)
    scene = open_scene(
        raster(tmp_path / "scene.tif", data_CHW, crs=crs, transform=at, colorinterp=told)
    )
    found = whole(scene)
    assert scene.bands == ("red", "green", "blue", "nir")
    assert found.valid_HW.all()
    assert np.array_equal(found.data_CHW, data_CHW)


@pytest.mark.parametrize("shore", [0, 12])
def test_dark_nir_of_water_marked_as_alpha_stays_nir(tmp_path: Path, shore: int) -> None:
    data_CHW = noise((4, 40, 900))
    data_CHW[3] = np.random.default_rng(1).integers(2, 24, (40, 900))
    data_CHW[3, :, 900 - shore :] = np.random.default_rng(2).integers(60, 240, (40, shore))
    told = (RED, GREEN, BLUE, ALPHA)
    scene = open_scene(raster(tmp_path / "scene.tif", data_CHW, colorinterp=told))
    assert scene.bands == ("red", "green", "blue", "nir")
    found = whole(scene)
    assert found.valid_HW.all()
    assert np.array_equal(found.data_CHW, data_CHW)


@pytest.mark.parametrize(("dtype", "full"), [("uint8", 255), ("uint16", 65535), ("float32", 1)])
def test_an_alpha_with_a_soft_edge_is_one(tmp_path: Path, dtype: str, full: int) -> None:
    data_CHW = noise((4, 200, 200), dtype)
    data_CHW[3] = full
    data_CHW[3, :, :70] = 0
    data_CHW[3, :, 70:72] = np.array([0.3, 0.6]) * full  # 1 % of the pixels
    told = (RED, GREEN, BLUE, ALPHA)
    scene = open_scene(raster(tmp_path / "scene.tif", data_CHW, colorinterp=told))
    assert scene.bands == ("red", "green", "blue")
    assert np.array_equal(whole(scene).valid_HW, np.arange(200) >= np.full((200, 1), 71))


# -- where there is no data -----------------------------------------------------------------------


def wedge(height: int = 120, width: int = 120) -> NDArray[np.bool_]:
    """Valid but for the upper left corner."""
    rows, cols = np.mgrid[:height, :width]
    return rows + cols >= 70  # type: ignore[no-any-return]


@pytest.mark.parametrize("way", ["mask", "alpha", "tag 0", "tag 255", "black", "white", "NaN"])
def test_all_ways_of_no_data_give_the_same(tmp_path: Path, way: str) -> None:
    valid_HW = wedge()
    dtype = "float32" if way == "NaN" else "uint8"
    data_CHW = noise((3, *valid_HW.shape), dtype)
    fill = {"tag 255": 255, "white": 255, "NaN": np.nan}.get(way, 0)
    filled_CHW = np.where(valid_HW, data_CHW, np.asarray(fill, dtype))
    path = tmp_path / "scene.tif"
    if way == "alpha":
        four = np.concatenate([filled_CHW, (valid_HW[None] * 255).astype(np.uint8)])
        raster(path, four, colorinterp=(RED, GREEN, BLUE, ALPHA))
    else:
        tagged = {"tag 0": 0, "tag 255": 255}.get(way)
        raster(path, filled_CHW, nodata=tagged, mask=valid_HW if way == "mask" else None)
    found = whole(open_scene(path))
    assert np.array_equal(found.valid_HW, valid_HW)
    assert np.array_equal(found.data_CHW, np.where(valid_HW, data_CHW, np.asarray(0, dtype)))


@pytest.mark.parametrize("tagged", [True, False])
@pytest.mark.parametrize("value", [0, 255])
def test_water_and_roofs_of_the_fill_stay_data(tmp_path: Path, tagged: bool, value: int) -> None:
    valid_HW = wedge()
    data_CHW = np.where(valid_HW, noise((3, 120, 120)), np.uint8(value))
    data_CHW[:, 80:100, 80:100] = value  # A lake or a roof inside.
    data_CHW[1, 110:, 110:] = value  # One band alone, at a corner.
    scene = open_scene(raster(tmp_path / "scene.tif", data_CHW, nodata=value if tagged else None))
    found = whole(scene)
    assert np.array_equal(found.valid_HW, valid_HW)
    assert np.array_equal(found.data_CHW[:, 80:100, 80:100], data_CHW[:, 80:100, 80:100])


def test_a_large_hole_is_empty_only_if_a_tag_names_its_colour(tmp_path: Path) -> None:
    data_CHW = noise((3, 120, 120))
    data_CHW[:, 20:100, 20:100] = 0
    tagged = whole(open_scene(raster(tmp_path / "tagged.tif", data_CHW, nodata=0)))
    plain = whole(open_scene(raster(tmp_path / "plain.tif", data_CHW)))
    assert not tagged.valid_HW[20:100, 20:100].any()
    assert plain.valid_HW.all()


def test_a_small_dark_patch_at_the_edge_is_data(tmp_path: Path) -> None:
    data_CHW = noise((3, 120, 120))
    data_CHW[:, :30, 40:70] = 0
    assert whole(open_scene(raster(tmp_path / "scene.tif", data_CHW))).valid_HW.all()


def test_a_nodata_value_outside_the_type_is_none(tmp_path: Path) -> None:
    data_CHW = noise((1, 20, 20))
    path = raster(tmp_path / "scene.tif", data_CHW)
    index = path.with_suffix(".vrt")
    index.write_text(vrt(path.name, "<NoDataValue>-9999</NoDataValue>"))
    assert whole(open_scene(index)).valid_HW.all()


def test_a_pixel_is_empty_where_all_bands_hold_the_tag(tmp_path: Path) -> None:
    data_CHW = noise((3, 20, 20), "int16")
    data_CHW[:, 5, 5] = -9999
    data_CHW[1, 7, 7] = -9999
    found = whole(open_scene(raster(tmp_path / "scene.tif", data_CHW, nodata=-9999)))
    assert not found.valid_HW[5, 5]
    assert found.valid_HW.sum() == 399


def test_a_collar_of_a_reduced_image_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    valid_HW = wedge(150, 130)
    valid_HW[:, :3] = False  # Narrower than a block.
    data_CHW = np.where(valid_HW, noise((3, 150, 130)), np.uint8(0))
    data_CHW[:, 90:110, 90:110] = 0
    path = raster(tmp_path / "scene.tif", data_CHW)
    monkeypatch.setattr(validity, "REDUCED_PX", 40)
    scene = open_scene(path)
    with SceneReader(scene, scene_grid(scene)) as reader:
        found = reader.read(reader.window)
        assert same(in_parts(reader.read, reader.window, 17), found)
    assert np.array_equal(found.valid_HW, valid_HW)


# -- another lattice ------------------------------------------------------------------------------


@pytest.mark.parametrize("pixel", [0.7, 3.0])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "float32"])
def test_nothing_is_darkened_or_invented_beside_no_data(
    tmp_path: Path, dtype: str, pixel: float
) -> None:
    valid_HW = wedge()
    data_CHW = np.where(valid_HW, 200, 0).astype(dtype)[None].repeat(3, axis=0)
    scene = open_scene(raster(tmp_path / "scene.tif", data_CHW, mask=valid_HW))
    grid = Grid(UTM, (pixel, pixel), (0.3, 0.6))
    with SceneReader(scene, grid) as reader:
        at, found = reader.window, reader.read(reader.window)
    assert found.valid_HW.any()
    assert (found.data_CHW[:, found.valid_HW] == 200).all()
    assert (found.data_CHW[:, ~found.valid_HW] == 0).all()
    # Each pixel is data where the scene's pixel under its middle is.
    rows, cols = np.mgrid[: at.height, : at.width] + 0.5
    left, _, _, top = grid.bounds(at)
    under = (
        np.floor(AT.f - (top - rows * pixel)).astype(int),
        np.floor(left + cols * pixel - AT.c).astype(int),
    )
    inside = (under[0] >= 0) & (under[0] < 120) & (under[1] >= 0) & (under[1] < 120)
    wanted = np.zeros(at.shape, bool)
    wanted[inside] = valid_HW[under[0][inside], under[1][inside]]
    assert np.array_equal(found.valid_HW, wanted)


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_a_resampled_scene_is_the_same_in_any_window(tmp_path: Path, dtype: str) -> None:
    data_CHW = np.where(wedge(300, 300), noise((3, 300, 300)), 0).astype(dtype)
    turned = _turned(AT, 20)
    scene = open_scene(raster(tmp_path / "scene.tif", data_CHW, transform=turned))
    grid = scene_grid(scene)
    with SceneReader(scene, grid) as reader:
        found = reader.read(reader.window)
    with SceneReader(scene, grid) as reader:
        assert same(in_parts(reader.read, reader.window, 61), found)
    assert 0.3 < found.valid_HW.mean() < 0.6


def _turned(at: Affine, degrees: float) -> Affine:
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    return Affine(at.a * c, at.a * s, at.c, at.a * s, -at.a * c, at.f)


def test_a_south_up_scene_is_turned(tmp_path: Path) -> None:
    data_CHW = noise((3, 50, 40))
    south_up = Affine(1, 0, 500_000.25, 0, 1, 4_000_000.5)
    scene = open_scene(raster(tmp_path / "scene.tif", data_CHW, transform=south_up))
    grid = scene_grid(scene)
    assert grid == Grid(UTM, (1.0, 1.0), (0.25, 0.5))
    found = whole(scene, grid)
    assert found.valid_HW.all()
    assert np.array_equal(found.data_CHW, data_CHW[:, ::-1])


def test_a_quarter_turn_moves_pixels_only(tmp_path: Path) -> None:
    data_CHW = noise((3, 50, 40))
    quarter = Affine(0, 1, 500_000, 1, 0, 4_000_000)
    found = whole(open_scene(raster(tmp_path / "scene.tif", data_CHW, transform=quarter)))
    assert found.data_CHW.shape == (3, 40, 50)
    assert np.array_equal(found.data_CHW, data_CHW.transpose(0, 2, 1)[:, ::-1])


def test_ground_control_points_place_a_scene(tmp_path: Path) -> None:
    data_CHW = noise((3, 50, 40))
    points = [
        GroundControlPoint(row, col, 500_000 + col, 4_000_000 - row)
        for row, col in ((0, 0), (0, 40), (50, 0), (50, 40), (25, 20))
    ]
    path = raster(
        tmp_path / "scene.tif", data_CHW, crs=UTM, transform=Affine.identity(), gcps=points
    )
    scene = open_scene(path)
    assert scene.crs == UTM
    grid = Grid(UTM, (1.0, 1.0))
    found = whole(scene, grid)
    assert footprint(scene, grid).shape == (50, 40)
    assert found.valid_HW.all()
    assert np.array_equal(found.data_CHW, data_CHW)


@pytest.mark.parametrize("factor", [2, 4])
def test_a_coarser_grid_averages(tmp_path: Path, factor: int) -> None:
    data_CHW = noise((1, 80, 80), "float32")
    scene = open_scene(raster(tmp_path / "scene.tif", data_CHW))
    grid = scene_grid(scene, pixel_m=float(factor))
    assert grid.pixel == (factor, factor)
    side = 80 // factor
    wanted = data_CHW[0].reshape(side, factor, side, factor).mean(axis=(1, 3))
    assert np.allclose(whole(scene, grid).data_CHW[0], wanted, rtol=1e-5)


def test_nad83_and_wgs84_are_taken_as_one(tmp_path: Path) -> None:
    """Without the grids of a survey (none are fetched) the shift between them is none."""
    data_CHW = noise((3, 50, 40))
    scene = open_scene(raster(tmp_path / "scene.tif", data_CHW, crs="EPSG:26918"))
    grid = Grid(UTM, (1.0, 1.0))
    found = whole(scene, grid)
    assert footprint(scene, grid) == footprint(scene, scene_grid(scene))
    assert np.array_equal(found.data_CHW, data_CHW)


def test_a_mark_is_found_in_the_neighbouring_zone(tmp_path: Path) -> None:
    data_CHW = noise((1, 90, 90)) // 4
    data_CHW[0, 40:43, 50:53] = 250
    scene = open_scene(raster(tmp_path / "scene.tif", data_CHW))
    grid = Grid("EPSG:32617", (1.0, 1.0))
    x, y = Transformer.from_crs(UTM, "EPSG:32617", always_xy=True).transform(
        AT.c + 51.5, AT.f - 41.5
    )
    with SceneReader(scene, grid) as reader:
        found = reader.read(grid.covering((x - 0.1, y - 0.1, x + 0.1, y + 0.1)))
    assert found.valid_HW.all()
    assert found.data_CHW.max() >= 240


def test_a_scene_in_degrees_gets_square_ground(tmp_path: Path) -> None:
    at = Affine(1e-5, 0, -71.1, 0, -1e-5, 42.4)
    scene = open_scene(
        raster(tmp_path / "scene.tif", noise((3, 60, 60)), crs="EPSG:4326", transform=at)
    )
    grid = scene_grid(scene)
    width, height = grid.ground_pixel(footprint(scene, grid))
    assert width == pytest.approx(height, rel=1e-3)
    assert width == pytest.approx(min(scene.ground_px_m), rel=1e-3)
    assert whole(scene).valid_HW.mean() > 0.95


@pytest.mark.parametrize("pixel_m", [0.0, -1.0, float("nan"), float("inf")])
def test_a_pixel_size_is_positive(tmp_path: Path, pixel_m: float) -> None:
    scene = open_scene(raster(tmp_path / "scene.tif", noise((3, 20, 20))))
    with pytest.raises(TilingError, match="positive size"):
        scene_grid(scene, pixel_m=pixel_m)


def test_bounds_go_on_over_the_antimeridian(tmp_path: Path) -> None:
    at = Affine(100, 0, 770_000, 0, -100, 200_000)
    scene = open_scene(
        raster(tmp_path / "scene.tif", noise((1, 1000, 1000)), crs="EPSG:32660", transform=at)
    )
    left, bottom, right, top = scene.bounds_in("EPSG:4326")
    assert 179 < left < 179.9 and 180 < right < 181
    assert 0.8 < bottom < 1 and 1.7 < top < 1.9
    grid = Grid("EPSG:4326", (0.01, 0.01))
    assert whole(scene, grid).valid_HW.mean() > 0.95


# -- files that are refused -----------------------------------------------------------------------


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TilingError, match=r"none\.tif does not exist; wanted an image"):
        open_scene(tmp_path / "none.tif")
    with pytest.raises(TilingError, match="is a folder; wanted an image"):
        open_scene(tmp_path)
    (tmp_path / "empty.tif").touch()
    with pytest.raises(TilingError, match=r"empty\.tif is empty"):
        open_scene(tmp_path / "empty.tif")
    (tmp_path / "text.tif").write_text("no image")
    with pytest.raises(TilingError, match=r"text\.tif cannot be read .* wanted a whole image"):
        open_scene(tmp_path / "text.tif")


@pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")  # Made so here.
@pytest.mark.parametrize(
    ("made", "said"),
    [
        ({"crs": None}, "a transform but no CRS; wanted a georeferenced image"),
        ({"crs": None, "transform": Affine.identity()}, "no place; wanted a georeferenced image"),
        ({"crs": "+proj=eqc +R=3396190 +units=m"}, "body of 3396 km radius.*wanted .* the Earth"),
        ({"nodata": 7, "values": 7}, "no data in any pixel"),
        ({"values": 0}, "no data in any pixel"),
        ({"mask": np.zeros((20, 20), bool)}, "no data in any pixel"),
        ({"dtype": "complex64"}, "complex numbers .* wanted brightness"),
        ({"dtype": "int64"}, "holds int64; wanted one of uint8"),
    ],
)
def test_unusable_images_are_refused(tmp_path: Path, made: dict[str, Any], said: str) -> None:
    data_CHW = noise((3, 20, 20), made.pop("dtype", "uint8"))
    data_CHW[:] = made.pop("values", data_CHW)
    with pytest.raises(TilingError, match=said) as refusal:
        open_scene(raster(tmp_path / "scene.tif", data_CHW, **made))
    assert "scene.tif" in str(refusal.value)


def test_a_truncated_file_is_refused_when_it_is_read(tmp_path: Path) -> None:
    """The header and the middle are there, so it opens; nothing of it is read as zeros."""
    data_CHW = noise((3, 256, 256))
    path = raster(
        tmp_path / "scene.tif", data_CHW, tiled=True, blockxsize=64, blockysize=64, nodata=7
    )
    path.write_bytes(path.read_bytes()[: -64 * 64])
    with pytest.raises(TilingError, match=r"scene\.tif cannot be read"):
        whole(open_scene(path))


def test_a_missing_source_is_named(tmp_path: Path) -> None:
    path = tmp_path / "scene.vrt"
    path.write_text(vrt("gone.tif"))
    with pytest.raises(TilingError, match=r"scene\.vrt cannot be read .*gone\.tif"):
        open_scene(path)


# -- dates ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stem", "tags", "day"),
    [
        ("m_3412039_nw_10_h_20160616", {}, date(2016, 6, 16)),
        ("m_3412039_nw_10_.6_20180616", {}, date(2018, 6, 16)),
        ("m_3412039_nw_10_1_20160616_20161004", {}, date(2016, 6, 16)),
        ("M_3412039_NW_10_060_20210502_20220301", {}, date(2021, 5, 2)),
        ("va_m_3607717_sw_18_030_20230620_subset", {}, date(2023, 6, 20)),
        ("scene", {"TIFFTAG_DATETIME": "2021:04:01 06:57:06"}, date(2021, 4, 1)),
        ("scene", {"ACQUISITIONDATETIME": "2020-05-06T10:00:00Z"}, date(2020, 5, 6)),
        (
            "m_3412039_nw_10_h_20160616",
            {"TIFFTAG_DATETIME": "2021:04:01 06:57:06"},
            date(2016, 6, 16),
        ),
        ("scene_2019-07-08", {}, date(2019, 7, 8)),
        ("serial_20191345", {}, None),
        ("23429155_15", {}, None),
        ("scene", {"TIFFTAG_DATETIME": "unknown"}, None),
    ],
)
def test_dates_are_found(stem: str, tags: dict[str, str], day: date | None) -> None:
    assert date_taken(stem, tags) == (day and day.isoformat())


def test_a_scene_has_its_date(tmp_path: Path) -> None:
    tags = {"TIFFTAG_DATETIME": "2021:04:01 06:57:06"}
    assert open_scene(raster(tmp_path / "a.tif", noise((1, 9, 9)), tags=tags)).date == "2021-04-01"
    assert open_scene(raster(tmp_path / "b.tif", noise((1, 9, 9)))).date is None


# -- what it is read from ------------------------------------------------------------------------


def test_a_file_beside_the_image_gives_it_another_identity(tmp_path: Path) -> None:
    path = raster(tmp_path / "scene.tif", noise((1, 20, 20)))
    before = open_scene(path).identity
    assert open_scene(path).identity == before
    raster(tmp_path / "scene.tif.msk", np.full((1, 20, 20), 255, np.uint8))
    masked = open_scene(path).identity
    assert masked != before
    (tmp_path / "scene.tif.aux.xml").write_text("<PAMDataset></PAMDataset>")
    assert open_scene(path).identity not in (before, masked)


def test_a_changed_source_gives_a_vrt_of_vrts_another_identity(tmp_path: Path) -> None:
    raster(tmp_path / "scene.tif", noise((1, 20, 20)))
    (tmp_path / "inner.vrt").write_text(vrt("scene.tif"))
    (tmp_path / "outer.vrt").write_text(vrt("inner.vrt"))
    before = open_scene(tmp_path / "outer.vrt").identity
    raster(tmp_path / "scene.tif", noise((1, 20, 20), seed=1), compress="deflate")
    assert open_scene(tmp_path / "outer.vrt").identity != before


# -- mosaics --------------------------------------------------------------------------------------


def test_each_pixel_is_of_the_first_scene_that_has_data(tmp_path: Path) -> None:
    first_CHW, second_CHW = noise((3, 120, 120)), noise((3, 120, 120), seed=1)
    first_CHW[0, 100:110, 100:110] = 0  # Red is 0 on data: no other scene shines through.
    valid_HW = wedge()
    first = open_scene(raster(tmp_path / "a.tif", np.where(valid_HW, first_CHW, np.uint8(0))))
    second = open_scene(raster(tmp_path / "b.tif", second_CHW))
    mosaic = make_mosaic([first, second], scene_grid(first))
    found, used = read_mosaic(mosaic, footprint(first, mosaic.grid))
    assert used == (first, second)
    assert found.valid_HW.all()
    assert np.array_equal(found.data_CHW, np.where(valid_HW, first_CHW, second_CHW))
    covered = footprint(first, mosaic.grid)
    corner = Window(covered.bottom - 20, covered.right - 20, covered.bottom, covered.right)
    assert read_mosaic(mosaic, corner)[1] == (first,)


def test_a_mosaic_is_the_same_in_any_window(tmp_path: Path) -> None:
    scenes = [
        open_scene(
            raster(tmp_path / "a.tif", np.where(wedge(), noise((3, 120, 120)), np.uint8(0)))
        ),
        open_scene(raster(tmp_path / "b.tif", noise((3, 90, 90)), transform=_turned(AT, 10))),
    ]
    mosaic = make_mosaic(scenes, scene_grid(scenes[0]))
    window = footprint(scenes[0], mosaic.grid).grown(20)
    found, used = read_mosaic(mosaic, window)
    assert len(used) == 2
    assert same(in_parts(lambda at: read_mosaic(mosaic, at)[0], window, 37), found)


def test_shifted_neighbours_leave_no_gap(tmp_path: Path) -> None:
    """Two scenes of 0.6 m whose lattices are half a pixel apart, side by side."""
    one = Affine(0.6, 0, 600_000, 0, -0.6, 4_000_000)
    other = Affine(0.6, 0, 600_000 + 60 - 0.3, 0, -0.6, 4_000_000)
    scenes = [
        open_scene(raster(tmp_path / f"{name}.tif", noise((1, 100, 100)), transform=at))
        for name, at in (("a", one), ("b", other))
    ]
    grid = scene_grid(scenes[0])
    start = footprint(scenes[0], grid)
    found, _ = read_mosaic(
        make_mosaic(scenes, grid), Window(start.top, start.left, start.bottom, start.left + 199)
    )
    assert found.valid_HW.all()
    assert found.data_CHW.min() > 0


def test_a_cell_is_given_its_own_scenes(tmp_path: Path) -> None:
    """Those that a scan of all finds, in their order; what only touches is another cell's."""
    random = np.random.default_rng(0)
    places = [(0, 0), (20, 0), *random.integers(-60, 60, (18, 2)).tolist()]
    scenes = [
        open_scene(
            raster(
                tmp_path / f"{number}.tif",
                noise((1, 20, 20)),
                transform=AT @ Affine.translation(col, row),
            )
        )
        for number, (col, row) in enumerate(places)
    ]
    mosaic = make_mosaic(scenes, scene_grid(scenes[0]))
    first = footprint(scenes[0], mosaic.grid)
    assert scenes[1] not in mosaic.within(first).scenes
    for window in first.grown(60).lattice(25):
        wanted = [scene for scene in scenes if footprint(scene, mosaic.grid).overlap(window)]
        assert list(mosaic.within(window).scenes) == wanted


def test_a_band_that_one_scene_lacks_is_told(tmp_path: Path) -> None:
    names = ("land.tif", "lake.tif", "shore.tif")
    land, lake, shore = (
        open_scene(raster(tmp_path / name, noise((count, 20, 20)), photometric="RGB"))
        for name, count in zip(names, (4, 3, 4), strict=True)
    )
    grid = scene_grid(land)
    assert make_mosaic([land, lake, shore], grid).left_out == {"nir": (lake,)}
    assert make_mosaic([land, lake], grid).left_out == {"nir": (lake,)}
    assert make_mosaic([land, shore], grid, ["red"]).left_out == {}
    assert make_mosaic([lake, lake, land], grid).left_out == {}


def test_mixed_imagery_is_joined_or_refused(tmp_path: Path) -> None:
    four = open_scene(raster(tmp_path / "four.tif", noise((4, 20, 20)), photometric="RGB"))
    three = open_scene(raster(tmp_path / "three.tif", noise((3, 20, 20))))
    gray = open_scene(raster(tmp_path / "gray.tif", noise((1, 20, 20))))
    deep = open_scene(raster(tmp_path / "deep.tif", noise((3, 20, 20), "uint16")))
    grid = scene_grid(four)
    assert make_mosaic([four, three], grid).bands == ("red", "green", "blue")
    with pytest.raises(TilingError, match=r"gray\.tif has gray and .* has red, .*; wanted a band"):
        make_mosaic([four, gray], grid)
    with pytest.raises(TilingError, match=r"three\.tif has red, green, blue; wanted a band nir"):
        make_mosaic([four, three], grid, ["red", "nir"])
    with pytest.raises(TilingError, match=r"deep\.tif holds uint16; wanted uint8"):
        make_mosaic([three, deep], grid)
    with pytest.raises(TilingError, match="no imagery"):
        make_mosaic([], grid)
