"""One image and one model: a right map, or one sentence and nothing written."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyogrio
import pytest
import rasterio
import shapely
import torch
from orthotrace.mapping.cli import main
from orthotrace.models.card import Card, Model, load_model, save_model
from orthotrace.models.unet import build_unet
from orthotrace.tiling.errors import TilingError
from orthotrace.tiling.imagery import SceneReader, footprint, open_scene, scene_grid
from rasterio.transform import from_origin

RGB = ("red", "green", "blue")
MakeModel = Callable[..., Path]


@pytest.fixture
def model(tmp_path: Path) -> MakeModel:
    """Writes a model to which all is building and nothing road: of any bands, type, pixel size."""

    def write(bands: tuple[str, ...] = RGB, dtype: str = "uint8", pixel_m: float = 1.0) -> Path:
        card = Card(
            classes=("road", "building"),
            bands=bands,
            dtype=dtype,
            pixel_m=pixel_m,
            mean=(100.0,) * len(bands),
            std=(50.0,) * len(bands),
            encoder="tu-mobilenetv3_small_050",
            window=192,
            margin=32,
            recipe={"decoder": [16, 16, 8, 8]},
        )
        net = build_unet(card, seed=3)
        head = net.segmentation_head[0]
        with torch.no_grad():
            head.weight.zero_()
            head.bias[:4], head.bias[4:] = -4.0, 4.0  # four for each class, for a pixel shuffle
        path = tmp_path / "model.safetensors"
        save_model(path, Model(card, net.state_dict()))
        return path

    return write


def write_image(path: Path, data_CHW: np.ndarray, **profile: object) -> Path:
    count, height, width = data_CHW.shape
    told = {
        "driver": "GTiff",
        "count": count,
        "height": height,
        "width": width,
        "dtype": data_CHW.dtype,
        "crs": "EPSG:26918",
        "transform": from_origin(500_000, 4_050_000, 1, 1),
        "photometric": "RGB" if count >= 3 else "MINISBLACK",
        **profile,
    }
    with rasterio.open(path, "w", **told) as out:
        out.write(data_CHW)
    return path


def noise(count: int = 3, side: int = 200) -> np.ndarray:
    return np.random.default_rng(0).integers(1, 255, (count, side, side), dtype=np.uint8)


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Run a command that must end with code 2 and one sentence; the sentence."""
    assert main(arguments) == 2
    told = capsys.readouterr()
    assert told.err.startswith("orthotrace: ") and told.err.count("\n") == 1, told.err
    assert "Traceback" not in told.err
    return told.err


def test_a_map_is_made_and_opened_elsewhere(
    model: MakeModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image, out = write_image(tmp_path / "scene.tif", noise()), tmp_path / "out" / "map.gpkg"
    assert main(["map", str(image), "--model", str(model()), "-o", str(out)]) == 0
    assert str(out) in capsys.readouterr().out
    assert {name for name, _ in pyogrio.list_layers(out)} == {"roads", "buildings"}
    assert pyogrio.read_info(out, layer="roads")["crs"] == "EPSG:26918"
    assert [path.name for path in out.parent.iterdir()] == ["map.gpkg"], "work was left behind"


def test_scores_are_of_the_image_and_nodata_stays(model: MakeModel, tmp_path: Path) -> None:
    data = noise()
    data[:, :60] = 0
    image, out = write_image(tmp_path / "scene.tif", data, nodata=0), tmp_path / "scores.tif"
    assert main(["predict", str(image), "--model", str(model()), "-o", str(out)]) == 0
    with rasterio.open(image) as source, rasterio.open(out) as scores:
        assert scores.shape == source.shape and scores.transform == source.transform
        assert scores.descriptions == ("road", "building") and scores.nodata == 255
        found = scores.read()
    assert (found[:, :60] == 255).all() and (found[:, 60:] != 255).all()


@pytest.mark.parametrize(
    ("bands", "said"), [(1, "gray"), (2, "scene.tif"), (4, "nir"), (5, "scene.tif")]
)
def test_other_bands_than_the_models_are_one_sentence(
    bands: int, said: str, model: MakeModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image = write_image(tmp_path / "scene.tif", noise(bands), photometric="MINISBLACK")
    wanted = model(("red", "green", "blue", "nir")) if bands == 3 else model()
    if bands == 4:
        wanted = model(("red", "green", "nir"))  # the same number is not the same bands
        image = write_image(tmp_path / "scene.tif", noise(3))
        said = "nir"
    told = refused(
        ["map", str(image), "--model", str(wanted), "-o", str(tmp_path / "m.gpkg")], capsys
    )
    assert said in told and "scene.tif" in told
    assert not (tmp_path / "m.gpkg").exists()


def test_files_that_are_no_model_are_one_sentence(
    model: MakeModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from safetensors.torch import save_file

    image = write_image(tmp_path / "scene.tif", noise())
    other, pickle, text = (tmp_path / name for name in ("a.safetensors", "b.pt", "c.safetensors"))
    save_file({"weight": torch.zeros(2)}, other)
    torch.save({"weight": torch.zeros(2)}, pickle)
    text.write_text("hello")
    cut = tmp_path / "cut.safetensors"
    cut.write_bytes(model().read_bytes()[:4000])
    for path, said in (
        (other, "another program's"),
        (pickle, "is a pickle"),
        (text, "no model"),
        (cut, "no model"),
        (tmp_path / "none.safetensors", "cannot be read"),
    ):
        assert said in refused(["map", str(image), "--model", str(path)], capsys)


def test_an_output_of_no_known_form_is_refused_before_any_work(
    model: MakeModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image = write_image(tmp_path / "scene.tif", noise())
    out = tmp_path / "map.docx"
    assert "neither a .gpkg" in refused(
        ["map", str(image), "--model", str(model()), "-o", str(out)], capsys
    )


def test_a_place_that_cannot_be_written_is_refused(
    model: MakeModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image, parent = write_image(tmp_path / "scene.tif", noise()), tmp_path / "file"
    parent.touch()
    for verb in ("map", "predict"):
        out = parent / ("map.gpkg" if verb == "map" else "scores.tif")
        told = refused([verb, str(image), "--model", str(model()), "-o", str(out)], capsys)
        assert str(parent) in told


def test_a_place_where_no_file_can_be_is_refused_before_any_work(
    model: MakeModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image = write_image(tmp_path / "scene.tif", noise())
    for verb, name in (("map", "map.gpkg"), ("predict", "scores.tif")):
        for out in (tmp_path / name, tmp_path / ("x" * 251 + name)):
            if len(out.name) < 255:
                out.mkdir()
            told = refused([verb, str(image), "--model", str(model()), "-o", str(out)], capsys)
            assert f"{out} cannot be written" in told


def test_an_image_that_is_not_there_is_said_whatever_the_output(
    model: MakeModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = write_image(tmp_path / "old.tif", noise())
    gone = tmp_path / "gone.tif"
    told = refused(["predict", str(gone), "--model", str(model()), "-o", str(out)], capsys)
    assert "gone.tif" in told


def test_an_image_is_not_written_over(
    model: MakeModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A GeoPackage may be an image, and a map's default name is the image's with .gpkg."""
    image = write_image(tmp_path / "a.gpkg", noise(), driver="GPKG")
    before = image.read_bytes()
    assert "image itself" in refused(["map", str(image), "--model", str(model())], capsys)
    assert image.read_bytes() == before


def test_a_model_that_gives_no_numbers_is_one_sentence(
    model: MakeModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image, path = write_image(tmp_path / "scene.tif", noise()), model()
    found = load_model(path)
    weights = dict(found.weights)
    next(w for w in weights.values() if w.is_floating_point()).fill_(float("nan"))
    save_model(path, Model(found.card, weights))
    for verb, name in (("map", "map.gpkg"), ("predict", "scores.tif")):
        out = tmp_path / name
        told = refused([verb, str(image), "--model", str(path), "-o", str(out)], capsys)
        assert f"{path} gives scores that are no finite numbers" in told and not out.exists()


WORLDS = ("goes.tif", "world.byte.tif", "world.rgb.tif")
"""Images of half the globe, whose cells reach to where their CRS has no ground."""


def awkward() -> list[Path]:
    """The real awkward files, if there are any here."""
    import os

    root = Path(os.environ.get("ORTHOTRACE_REAL_DATA", "/nowhere"))
    folders = [*(root / "awkward_rasters").glob("*"), root / "oam" / "raw_chips_jpeg_in_tif"]
    kept = {".tif", ".tiff", ".vrt", ".png", ".jpg"}
    return sorted(p for folder in folders for p in folder.glob("*") if p.suffix.lower() in kept)


@pytest.mark.real
@pytest.mark.parametrize("image", awkward(), ids=lambda p: f"{p.parent.name}/{p.name}")
def test_every_awkward_file_is_a_map_or_one_sentence(
    image: Path, model: MakeModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`test_awkward_rasters` says which of the two, and that the pixels are right."""
    out = tmp_path / "map.gpkg"
    try:
        scene = open_scene(image)
    except TilingError as problem:
        told = refused(["map", str(image), "--model", str(model()), "-o", str(out)], capsys)
        assert str(problem) in told and not out.exists()
        return
    grid = scene_grid(scene)
    pixel_m = float(np.sqrt(np.prod(grid.ground_pixel(footprint(scene, grid)))))
    fitting = model(scene.bands, scene.dtype, pixel_m)
    if image.name in WORLDS:
        told = refused(["map", str(image), "--model", str(fitting), "-o", str(out)], capsys)
        assert "outside what" in told and not out.exists()
        return
    assert main(["map", str(image), "--model", str(fitting), "-o", str(out)]) == 0
    with SceneReader(scene, grid) as reader:
        valid_HW = reader.read(footprint(scene, grid)).valid_HW
    found = pyogrio.read_dataframe(out, layer="buildings").geometry.to_numpy()
    assert shapely.is_valid(found).all() and pyogrio.read_dataframe(out, layer="roads").empty
    if valid_HW.sum() * pixel_m**2 > 1000:  # all that has data is one building, and nothing else
        assert shapely.area(found).sum() == pytest.approx(
            valid_HW.sum() * np.prod(grid.pixel), rel=0.01
        )
