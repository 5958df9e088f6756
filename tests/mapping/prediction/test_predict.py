"""Prediction: every pixel scored once, whatever the cells, the order, the batch and the corner."""

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import rasterio
import torch
from affine import Affine
from numpy.typing import NDArray
from orthotrace import OrthoTraceError
from orthotrace.mapping.errors import MappingError
from orthotrace.mapping.prediction import predict as predict_room
from orthotrace.mapping.prediction.match import check_match
from orthotrace.mapping.prediction.predict import CellJob, score_cell, score_scene
from orthotrace.mapping.prediction.scorer import LONGEST, Scorer, load_scorer, score_views
from orthotrace.mapping.prediction.windows import View, views
from orthotrace.mapping.progress import Silent
from orthotrace.models.card import Card, Model, save_model
from orthotrace.models.unet import build_unet, normalise
from orthotrace.tiling.grid import Grid, Window
from orthotrace.tiling.layer import Layer, Pixels
from orthotrace.tiling.scores import to_bytes
from rasterio.windows import Window as RasterWindow

CARD = Card(
    classes=("road", "building"),
    bands=("red", "green", "blue"),
    dtype="uint8",
    pixel_m=1.0,
    mean=(90.0, 100.0, 110.0),
    std=(50.0, 40.0, 30.0),
    window=64,
    margin=16,
)
CRS = "EPSG:26986"
CORNER = Affine(1.0, 0.0, 230_007.0, 0.0, -1.0, 900_013.0)
"""On no lattice of windows, so that they are cut at every edge."""

Bytes = NDArray[np.uint8]


class Stencil(torch.nn.Module):
    """A fixed convolution: what a pixel's logits see is known exactly. It counts its calls."""

    def __init__(self, radius: int = 0) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 2, 2 * radius + 1, padding=radius)
        chance = torch.Generator().manual_seed(5)
        for values in self.conv.parameters():
            values.data = torch.randn(values.shape, generator=chance) / (2 * radius + 1)
        self.calls = 0

    def forward(self, image_NCHW: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        logits_NKHW: torch.Tensor = self.conv(image_NCHW)
        return logits_NKHW


def scorer_of(module: torch.nn.Module, card: Card = CARD, **more: object) -> Scorer:
    return Scorer(card, module, torch.device("cpu"), **more)  # type: ignore[arg-type]


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Callable[[Scorer], None]:
    """Has every model file read as the given scorer."""

    def put(scorer: Scorer) -> None:
        monkeypatch.setattr(predict_room, "load_scorer", lambda *_: scorer)

    return put


def photo(height: int, width: int, seed: int = 0) -> Bytes:
    """Noise without 0 and 255, which could be taken for a collar."""
    return np.random.default_rng(seed).integers(1, 255, (3, height, width), dtype=np.uint8)


def write_scene(path: Path, image_CHW: Bytes, **profile: object) -> Path:
    told = {"driver": "GTiff", "crs": CRS, "transform": CORNER, "dtype": "uint8"} | profile
    count, height, width = image_CHW.shape
    with rasterio.open(path, "w", count=count, height=height, width=width, **told) as target:
        target.write(image_CHW)
    return path


def read(path: Path) -> Bytes:
    with rasterio.open(path) as source:
        found: Bytes = source.read()
        return found


def oracle(module: torch.nn.Module, pixels: Pixels, card: Card = CARD) -> Bytes:
    """The scores of an image that the model sees at once, and whole."""
    with torch.inference_mode():
        data = torch.from_numpy(pixels.data_CHW[None])
        image = normalise(data, torch.from_numpy(pixels.valid_HW[None]), card)
        scores = torch.sigmoid(module(image))[0].numpy()
    return to_bytes(np.where(pixels.valid_HW, scores, np.float32(np.nan)))


def near(one: Bytes, other: Bytes) -> bool:
    """Equal to a rounding of the last byte (the oracle's sums are in another order)."""
    return bool((np.abs(one.astype(int) - other.astype(int)) <= 1).all())


# -- scenes --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("height", "width"),
    [(1, 1), (255, 255), (256, 256), (257, 257), (600, 1591), (10_000, 1), (1, 700)],
)
def test_every_pixel_of_a_scene_is_scored(
    height: int, width: int, tmp_path: Path, use: Callable[[Scorer], None]
) -> None:
    module = Stencil()
    use(scorer_of(module, dataclasses.replace(CARD, window=256, margin=32)))
    image = photo(height, width)
    scene = write_scene(tmp_path / "scene.tif", image)
    found = read(score_scene(scene, tmp_path / "m", tmp_path / "out.tif"))
    assert near(found, oracle(module, Pixels(image, np.ones((height, width), bool))))


def test_a_margin_that_covers_what_the_model_sees_leaves_no_seam(
    tmp_path: Path, use: Callable[[Scorer], None]
) -> None:
    module = Stencil(radius=CARD.margin)
    use(scorer_of(module))
    image = photo(150, 211)
    scene = write_scene(tmp_path / "scene.tif", image)
    found = read(score_scene(scene, tmp_path / "m", tmp_path / "out.tif"))
    assert near(found, oracle(module, Pixels(image, np.ones((150, 211), bool))))


def test_a_part_of_a_scene_has_the_scores_of_the_whole(
    tmp_path: Path, use: Callable[[Scorer], None]
) -> None:
    use(scorer_of(Stencil(radius=3)))
    image, out = photo(200, 220), tmp_path / "out.tif"
    whole = read(score_scene(write_scene(tmp_path / "whole.tif", image), tmp_path / "m", out))
    cut = CORNER @ Affine.translation(31, 17)
    part = write_scene(tmp_path / "part.tif", image[:, 17:180, 31:190], transform=cut)
    found = read(score_scene(part, tmp_path / "m", out))
    assert np.array_equal(found[:, 3:-3, 3:-3], whole[:, 20:177, 34:187])


def test_scores_say_where_and_what_they_are(tmp_path: Path, use: Callable[[Scorer], None]) -> None:
    use(scorer_of(Stencil(), identity="0123456789ab"))
    scene = write_scene(tmp_path / "scene.tif", photo(70, 300))
    out = score_scene(scene, tmp_path / "m", tmp_path / "new" / "out.tif")
    with rasterio.open(out) as found:
        assert found.crs == rasterio.CRS.from_string(CRS)
        assert found.transform == CORNER
        assert found.descriptions == CARD.classes
        assert found.nodata == 255
        assert found.dtypes == ("uint8", "uint8")
        assert found.block_shapes == [(256, 256)] * 2
        assert found.tags()["model"] == "0123456789ab"
        assert found.tags()["kind"] == "probability"


def test_scores_are_nodata_exactly_where_the_image_is(
    tmp_path: Path, use: Callable[[Scorer], None]
) -> None:
    module = Stencil()
    use(scorer_of(module))
    image = photo(300, 200)
    image[:, 20:290, 5:190] = 7  # the tag's value: in all bands, nodata
    image[0, 100:120] = 8  # in two of three, data
    scene = write_scene(tmp_path / "scene.tif", image, nodata=7)
    found = read(score_scene(scene, tmp_path / "m", tmp_path / "out.tif"))
    nodata = (image == 7).all(axis=0)
    assert np.array_equal(found == 255, np.broadcast_to(nodata, found.shape))
    assert near(found, oracle(module, Pixels(image, ~nodata)))


def test_windows_without_data_cost_no_forward_pass(
    tmp_path: Path, use: Callable[[Scorer], None]
) -> None:
    module = Stencil()
    use(scorer_of(module))
    image = photo(3000, 70)
    image[:, 10:2990] = 7
    scene = write_scene(tmp_path / "scene.tif", image, nodata=7)
    score_scene(scene, tmp_path / "m", tmp_path / "out.tif")
    assert module.calls <= 4  # two columns of windows, at the top and at the bottom


def test_statistics_are_the_cards_so_a_dark_field_stays_dark(
    tmp_path: Path, use: Callable[[Scorer], None]
) -> None:
    module = Stencil(radius=2)
    use(scorer_of(module))
    dark = photo(128, 256) // 8 + 1
    bright = dark.copy()
    bright[:, :, 128:] += 200
    found = [
        read(score_scene(write_scene(tmp_path / f"{n}.tif", image), tmp_path, tmp_path / "o.tif"))
        for n, image in enumerate((dark, bright))
    ]
    assert np.array_equal(found[0][:, :, :126], found[1][:, :, :126])
    assert not np.array_equal(found[0][:, :, 126:], found[1][:, :, 126:])


def test_an_image_of_far_pixels_is_resampled_and_that_is_said(
    tmp_path: Path, use: Callable[[Scorer], None]
) -> None:
    use(scorer_of(Stencil()))
    told = Heard()
    fine = CORNER @ Affine.scale(0.25)
    scene = write_scene(tmp_path / "scene.tif", photo(400, 320), transform=fine)
    out = score_scene(scene, tmp_path / "m", tmp_path / "out.tif", progress=told)
    with rasterio.open(out) as found:
        assert found.res == pytest.approx((1.0, 1.0))
        assert found.bounds == pytest.approx((230_007, 899_913, 230_087, 900_013), abs=1.0)
    assert told.said == [
        f"{scene} has pixels of 0.25 m on the ground and is resampled to the model's 1 m"
    ]


def test_a_refused_image_leaves_nothing(tmp_path: Path, use: Callable[[Scorer], None]) -> None:
    use(scorer_of(Stencil()))
    gray = write_scene(tmp_path / "gray.tif", photo(90, 90)[:1])
    with pytest.raises(MappingError, match=r"gray.tif has 1 band .*wanted the model's 3 bands"):
        score_scene(gray, tmp_path / "m", tmp_path / "out.tif")
    torn = write_scene(tmp_path / "torn.tif", photo(900, 900))
    torn.write_bytes(torn.read_bytes()[:2_000_000])
    with pytest.raises(OrthoTraceError, match=r"torn\.tif"):
        score_scene(torn, tmp_path / "m", tmp_path / "out.tif")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gray.tif", "torn.tif"]


def test_the_image_itself_is_never_written_over(
    tmp_path: Path, use: Callable[[Scorer], None]
) -> None:
    use(scorer_of(Stencil()))
    scene = write_scene(tmp_path / "scene.tif", photo(90, 90))
    with pytest.raises(MappingError, match="is the image itself"):
        score_scene(scene, tmp_path / "m", scene)


class Heard(Silent):
    """Keeps what was said."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def say(self, line: str) -> None:
        self.said.append(line)


# -- cells ---------------------------------------------------------------------------------


def layers(folder: Path, cell: int, image_CHW: Bytes, corner: Window) -> tuple[Layer, Layer]:
    """A layer of imagery cut into cells, and the layer for its scores."""
    grid = Grid(CRS, (1.0, 1.0), cell=cell, tile=64)
    imagery = Layer(folder / f"imagery{cell}", grid, CARD.bands).save()
    for each in grid.cells(corner):
        part = grid.window(each)
        at = part.slices(corner)
        imagery.write(each, Pixels(image_CHW[:, *at], image_CHW[0][at] > 1))
    return imagery, Layer(folder / f"scores{cell}", grid, CARD.classes, nodata=255).save()


def test_cells_and_their_order_change_no_score(
    tmp_path: Path, use: Callable[[Scorer], None]
) -> None:
    module = Stencil(radius=5)
    # Windows of 96 px stand on neither lattice of cells.
    card = dataclasses.replace(CARD, window=96, margin=16)
    use(scorer_of(module, card))
    area = Window(-900_096, 230_400, -899_904, 230_592)
    image = photo(*area.shape)
    image[:, 50:170, 10:150] = 1
    image *= image[0] > 1
    found = []
    for cell, step in ((64, 1), (64, -1), (192, 1)):
        imagery, scores = layers(tmp_path / str(step), cell, image, area)
        for each in imagery.cells()[::step]:
            score_cell(CellJob(each, imagery, scores, tmp_path / "m"))
        found.append(scores.read(area).data_CHW)
    assert near(found[0], oracle(module, Pixels(image, image[0] > 1)))
    assert all(np.array_equal(found[0], each) for each in found[1:])


def test_a_cell_without_data_is_written_as_nodata(
    tmp_path: Path, use: Callable[[Scorer], None]
) -> None:
    use(scorer_of(Stencil()))
    area = Window(128, 256, 256, 384)
    imagery, scores = layers(tmp_path, 128, np.ones((3, 128, 128), np.uint8), area)
    (cell,) = imagery.cells()
    assert score_cell(CellJob(cell, imagery, scores, tmp_path / "m")) == {"valid": 0.0, "said": []}
    assert (scores.read(area).data_CHW == 255).all()
    with rasterio.open(scores.path(cell)) as file:
        assert file.tags()["kind"] == "probability"


def test_layers_that_do_not_fit_the_model_are_refused(
    tmp_path: Path, use: Callable[[Scorer], None]
) -> None:
    imagery, scores = layers(tmp_path, 128, photo(128, 128), Window(128, 256, 256, 384))
    job = CellJob(imagery.cells()[0], imagery, scores, tmp_path / "m")
    use(scorer_of(Stencil(), dataclasses.replace(CARD, pixel_m=0.3)))
    with pytest.raises(MappingError, match="wanted a layer of about the model's 0.3 m"):
        score_cell(job)
    use(scorer_of(Stencil(), dataclasses.replace(CARD, classes=("road",))))
    with pytest.raises(MappingError, match="wanted the classes of"):
        score_cell(job)
    use(scorer_of(Stencil()))
    other = dataclasses.replace(imagery, grid=dataclasses.replace(imagery.grid, tile=128))
    with pytest.raises(MappingError, match="on two grids"):
        score_cell(dataclasses.replace(job, imagery=other))


# -- model and image -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bands", "dtype", "ground_m", "words"),
    [
        (("gray",), "uint8", 1.0, r"1 band \(gray\); wanted the model's 3 bands \(red, green"),
        (("red", "green", "blue", "nir"), "uint8", 1.0, "has 4 bands"),
        (("blue", "green", "red"), "uint8", 1.0, r"\(blue, green, red\); wanted"),
        (CARD.bands, "uint16", 1.0, "holds uint16; wanted the model's uint8"),
        (CARD.bands, "uint8", 8.1, "at most 8 times the model's 1 m"),
    ],
)
def test_what_a_model_was_not_trained_on_is_refused(
    bands: tuple[str, ...], dtype: str, ground_m: float, words: str
) -> None:
    with pytest.raises(MappingError, match=f"^scene.tif .*{words}"):
        check_match(CARD, bands, dtype, ground_m, "scene.tif")


@pytest.mark.parametrize(
    ("ground_m", "near"), [(0.1, False), (0.79, False), (0.8, True), (1.25, True), (7.9, False)]
)
def test_near_pixels_are_scored_as_they_are(ground_m: float, near: bool) -> None:
    found = check_match(CARD, CARD.bands, "uint8", ground_m, "scene.tif")
    assert (found is None) == near
    assert found is None or found.pixel_m == CARD.pixel_m


# -- batches and flips ---------------------------------------------------------------------


class Cramped(Stencil):
    """Has room for so many views at a time, and complains as torch does."""

    def __init__(self, room: int, complaint: str = "CUDA out of memory. Tried to allocate") -> None:
        super().__init__(radius=2)
        self.room, self.complaint = room, complaint

    def forward(self, image_NCHW: torch.Tensor) -> torch.Tensor:
        if len(image_NCHW) > self.room:
            raise torch.OutOfMemoryError(self.complaint)
        return super().forward(image_NCHW)


class Photo:
    """An image in memory as a source, its first pixel at the grid's origin."""

    bands, dtype = CARD.bands, "uint8"

    def __init__(self, image_CHW: Bytes, valid_HW: NDArray[np.bool_] | None = None) -> None:
        self.image_CHW = image_CHW
        self.valid_HW = np.ones(image_CHW.shape[1:], bool) if valid_HW is None else valid_HW
        self.reads_HW = np.zeros(image_CHW.shape[1:], int)

    @property
    def window(self) -> Window:
        return Window(0, 0, *self.valid_HW.shape)

    def read(self, window: Window) -> Pixels:
        data_CHW = np.zeros((len(self.bands), *window.shape), np.uint8)
        valid_HW = np.zeros(window.shape, bool)
        part = self.window.overlap(window)
        if part is not None:
            own, into = part.slices(self.window), part.slices(window)
            data_CHW[:, *into] = self.image_CHW[:, *own]
            valid_HW[into] = self.valid_HW[own]
            self.reads_HW[own] += 1
        return Pixels(data_CHW, valid_HW)


def scores_of(scorer: Scorer, source: Photo, say: Callable[[str], None]) -> list[Bytes]:
    seen = views(source, source.window, CARD.window, CARD.margin)
    return [to_bytes(score) for _, score in score_views(seen, scorer, say) if score is not None]


def test_a_batch_is_halved_when_memory_ends_which_changes_no_score_and_is_said() -> None:
    source, said = Photo(photo(200, 300)), list[str]()
    one = scores_of(scorer_of(Stencil(radius=2)), source, said.append)
    four = scores_of(scorer_of(Stencil(radius=2), batch=4), source, said.append)
    assert said == []
    halved = scores_of(scorer_of(Cramped(room=2), batch=8), source, said.append)
    assert all(map(np.array_equal, one, four)) and len(one) == len(four) == 20
    assert all(map(np.array_equal, one, halved)) and len(one) == len(halved)
    assert said == [f"memory of cpu ended: from now on {n} windows at a time" for n in (4, 2)]


def test_views_without_data_stand_in_order_between_the_others() -> None:
    valid = np.zeros((200, 300), bool)
    valid[70:100, 10:80] = valid[190:, 299:] = True
    source = Photo(photo(200, 300), valid)
    seen = list(views(source, source.window, CARD.window, CARD.margin))
    scored = list(score_views(seen, scorer_of(Stencil(), batch=2), print))
    assert [view for view, _ in scored] == seen
    assert [score is not None for _, score in scored] == [view.valid_HW.any() for view in seen]


def test_views_without_data_are_handed_on_however_many_there_are() -> None:
    """10,000 empty views, one with data before each 1,000 of them: few wait at any time."""
    none_HW, all_HW = np.zeros((64, 64), bool), np.ones((64, 64), bool)
    square, taken = Window(0, 0, 64, 64), 0
    full = View(square, square, all_HW, Pixels(photo(96, 96), np.ones((96, 96), bool)))
    empty = View(square, square, none_HW, None)

    def coming() -> Iterator[View]:
        nonlocal taken
        for number in range(10_000):
            taken += 1
            yield empty if number % 1000 else full

    waiting, module = [], Stencil()
    for done, (view, score) in enumerate(score_views(coming(), scorer_of(module, batch=2), print)):
        assert (score is not None) == (done % 1000 == 0) == (view is full)
        waiting.append(taken - done)
    assert len(waiting) == 10_000 and max(waiting) <= LONGEST * 2
    assert module.calls == 10, "a batch of views far apart is not waited for"


def test_a_view_for_which_memory_never_suffices_is_one_sentence() -> None:
    with pytest.raises(MappingError, match=r"cpu has not the memory for one view of 96 x 96 px"):
        scores_of(scorer_of(Cramped(room=0), batch=2), Photo(photo(9, 9)), lambda _: None)


def test_another_failure_of_the_model_is_not_taken_for_a_lack_of_memory() -> None:
    module = Cramped(room=0, complaint="expected a four-dimensional input")
    with pytest.raises(RuntimeError, match="four-dimensional"):
        scores_of(scorer_of(module, batch=2), Photo(photo(9, 9)), lambda _: None)


def test_flips_are_the_mean_over_the_squares_symmetries() -> None:
    source = Photo(photo(64, 64))
    (view,) = views(source, source.window, CARD.window, CARD.margin)
    module = Stencil(radius=1)
    ((_, found),) = score_views([view], scorer_of(module, flips=True), print)
    assert view.seen is not None and found is not None
    total = np.zeros_like(found)
    for turns in range(4):
        for flip in (False, True):
            there = [np.rot90(each, turns, (-2, -1)) for each in _parts(view.seen)]
            seen = Pixels(*(np.flip(each, -1).copy() if flip else each.copy() for each in there))
            ((_, score),) = score_views([_view(view, seen)], scorer_of(module), print)
            assert score is not None
            back = np.flip(score, -1) if flip else score
            total += np.rot90(back, -turns, (-2, -1))
    assert np.allclose(found, total / 8, atol=1e-6)


def _parts(pixels: Pixels) -> Iterator[NDArray[np.generic]]:
    yield from (pixels.data_CHW, pixels.valid_HW)


def _view(view: View, seen: Pixels) -> View:
    return dataclasses.replace(view, seen=seen)


# -- a real model file ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def unet_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    card = dataclasses.replace(CARD, recipe={"decoder": [16, 16, 8, 8], "flips": False})
    path = tmp_path_factory.mktemp("model") / "m.safetensors"
    save_model(path, Model(card, build_unet(card).state_dict()))
    return path


def test_a_model_file_scores_as_its_network_does(unet_file: Path, tmp_path: Path) -> None:
    image = photo(64, 64)
    corner = Affine(1.0, 0.0, 64_000.0, 0.0, -1.0, 640_000.0)  # one window of the lattice
    scene = write_scene(tmp_path / "scene.tif", image, transform=corner)
    found = read(score_scene(scene, unet_file, tmp_path / "out.tif", device="cpu"))
    seen = Photo(image).read(Window(0, 0, 64, 64).grown(CARD.margin))
    card = load_scorer(unet_file, "cpu").card
    wanted = oracle(build_unet(card).eval(), seen, card)[:, 16:-16, 16:-16]
    assert near(found, wanted)


def test_the_same_scene_gives_the_same_bytes(unet_file: Path, tmp_path: Path) -> None:
    scene = write_scene(tmp_path / "scene.tif", photo(100, 150))
    first = score_scene(scene, unet_file, tmp_path / "1.tif", device="cpu").read_bytes()
    torch.randn(7)  # the global generator's state is nothing to a score
    assert score_scene(scene, unet_file, tmp_path / "2.tif", device="cpu").read_bytes() == first


def test_a_model_is_loaded_once_until_its_file_changes(unet_file: Path, tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    path.write_bytes(unet_file.read_bytes())
    first = load_scorer(path, "cpu")
    assert load_scorer(path, "cpu") is first
    assert load_scorer(path, "cpu", flips=True).flips and not first.flips
    card = dataclasses.replace(first.card, pixel_m=2.0)
    save_model(path, Model(card, build_unet(card, seed=1).state_dict()))
    assert load_scorer(path, "cpu").card.pixel_m == 2.0


def test_bfloat16_is_near_float32(unet_file: Path) -> None:
    exact = load_scorer(unet_file, "cpu")
    coarse = dataclasses.replace(
        exact, module=build_unet(exact.card).eval().bfloat16(), dtype=torch.bfloat16
    )
    source = Photo(photo(64, 64))
    seen = list(views(source, source.window, CARD.window, CARD.margin))
    ((_, one),), ((_, two),) = (score_views(seen, each, print) for each in (exact, coarse))
    assert one is not None and two is not None
    assert np.abs(one - two).max() < 0.02


@pytest.mark.real
def test_real_imagery_is_scored_over_all_of_it(
    real_data: Path, tmp_path: Path, unet_file: Path
) -> None:
    image = real_data / "massachusetts" / "imagery" / "23429155_15.tif"
    small = tmp_path / "small.tif"
    with rasterio.open(image) as source:
        at = RasterWindow(200, 300, 260, 150)
        place = source.transform @ Affine.translation(at.col_off, at.row_off)
        write_scene(small, source.read(window=at), transform=place, crs=source.crs)
    found = read(score_scene(small, unet_file, tmp_path / "out.tif", device="cpu"))
    assert found.shape == (2, 150, 260)
    assert (found != 255).all() and found.std() > 0
