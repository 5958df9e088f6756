"""Scores from a model: over a cell of a layer, or over any GeoTIFF in its own CRS.

Decoding, the forward pass and encoding overlap: a thread reads ahead, this one asks the model, a
third stores what it said. Scores stand where there is imagery, and nodata exactly where there is
none.
"""

import math
from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import rasterio
from numpy.typing import NDArray

from ...tiling.files import check_place
from ...tiling.grid import Cell, Grid, Window
from ...tiling.imagery import Scene, SceneReader, footprint, open_scene, scene_grid
from ...tiling.layer import Layer, Pixels
from ...tiling.scores import NODATA, to_bytes
from ..errors import MappingError
from ..progress import Progress, Silent
from .match import check_match
from .pipeline import ahead, behind
from .scorer import Say, Scorer, load_scorer, score_views
from .scores_file import scores_file
from .windows import View, count_windows, views

_DEPTH = 2
"""Windows that wait between two threads: enough to even out their pace, little memory."""

CACHE_bytes = 32 << 20
"""GDAL's cache of blocks, which by default grows to a share of the machine's memory.

In bytes: GDAL reads a small number as megabytes, but rasterio hands it on as bytes.
"""

Put = Callable[[Window, NDArray[np.uint8]], None]
"""Takes the stored scores KHW of one window."""


@dataclass(frozen=True, slots=True)
class CellJob:
    """One cell of a layer of scores."""

    cell: Cell

    imagery: Layer

    scores: Layer
    """On the same grid, with a band for each of the model's classes."""

    model: Path

    device: str | None = None
    """cuda, mps or cpu; the best there is if not told."""

    flips: bool | None = None
    """Whether to take the mean over eight flips and turns; as the card says if not told."""


def score_cell(job: CellJob) -> Mapping[str, Any]:
    """Score one cell and write its file; the record holds the share of pixels that have scores.

    MappingError if the model and the imagery do not fit.
    """
    scorer = load_scorer(job.model, job.device, job.flips)
    area = job.scores.grid.window(job.cell)
    _check_layers(job, scorer, area)
    scores_KHW = np.full((len(job.scores.bands), *area.shape), NODATA, np.uint8)

    def put(window: Window, found_KHW: NDArray[np.uint8]) -> None:
        scores_KHW[:, *window.slices(area)] = found_KHW

    said: list[str] = []
    card = scorer.card
    predict(views(job.imagery, area, card.window, card.margin), scorer, put, said.append)
    valid_HW = (scores_KHW != NODATA).any(axis=0)
    job.scores.write(job.cell, Pixels(scores_KHW, valid_HW), _tags(scorer))
    return {"valid": round(float(valid_HW.mean()), 6), "said": said}


def score_scene(
    path: Path,
    model: Path,
    out: Path,
    *,
    device: str | None = None,
    flips: bool | None = None,
    progress: Progress | None = None,
) -> Path:
    """Score an image file into the GeoTIFF `out`, in the image's own CRS and over all of it.

    Scores are as `tiling.scores` stores them, one band a class. An image whose pixels are far from
    the model's size is resampled to it, which is said. Memory grows with the image's width alone.
    MappingError if the model does not fit the image, TilingError if the image is of no use.
    """
    check_output(out, path)
    with rasterio.Env(GDAL_CACHEMAX=CACHE_bytes):
        _score_scene(open_scene(path), load_scorer(model, device, flips), out, progress or Silent())
    return out


def check_output(out: Path, image: Path) -> None:
    """OrthoTraceError unless what is made of the image can be written to the file `out`."""
    check_place(out)
    if out.exists() and image.exists() and out.samefile(image):
        raise MappingError(f"{out} is the image itself; wanted another file for the result")


def _score_scene(scene: Scene, scorer: Scorer, out: Path, told: Progress) -> None:
    grid, card = grid_for(scene, scorer, told.say), scorer.card
    area = footprint(scene, grid)
    with (
        told.bar("predict", count_windows(area, card.window)) as advance,
        scores_file(out, grid, area, card.classes, _tags(scorer)) as file,
    ):
        predict(scene_views(scene, grid, area, scorer), scorer, file.put, told.say, advance)


def predict(
    seen: Generator[View],
    scorer: Scorer,
    put: Put,
    say: Say,
    advance: Callable[[], None] = lambda: None,
) -> None:
    """Score all views and `put` what is kept of each, in order, in another thread than this.

    `seen` runs in a thread of its own. Views without data are put as nodata. `advance` is called
    once for each view.
    """

    def store(scored: tuple[View, NDArray[np.float32] | None]) -> None:
        view, score_KHW = scored
        if score_KHW is None:
            shape = len(scorer.card.classes), *view.kept.shape
            put(view.kept, np.full(shape, NODATA, np.uint8))
            return
        stored_KHW = to_bytes(score_KHW[:, *view.kept.slices(view.window)])
        stored_KHW[:, ~view.valid_HW] = NODATA
        put(view.kept, stored_KHW)

    with closing(ahead(seen, _DEPTH)) as coming, behind(store, _DEPTH) as hand_over:
        for view, score_KHW in score_views(coming, scorer, say):
            hand_over((view, score_KHW))
            advance()


def scene_views(scene: Scene, grid: Grid, area: Window, scorer: Scorer) -> Generator[View]:
    """The views of a scene; it is opened by the thread that reads it."""
    with SceneReader(scene, grid) as source:
        yield from views(source, area, scorer.card.window, scorer.card.margin)


def grid_for(scene: Scene, scorer: Scorer, say: Say, *, cell: int = 4096, tile: int = 512) -> Grid:
    """The grid that a scene is scored on: its own, or one of the model's pixel size, which is said.

    MappingError if the model does not fit the scene.
    """
    grid = scene_grid(scene, cell=cell, tile=tile)
    ground_m = _ground_pixel_m(grid, footprint(scene, grid))
    wanted = check_match(scorer.card, scene.bands, scene.dtype, ground_m, str(scene.path))
    if wanted is None:
        return grid
    say(wanted.said)
    return scene_grid(scene, pixel_m=wanted.pixel_m, cell=cell, tile=tile)


def _check_layers(job: CellJob, scorer: Scorer, area: Window) -> None:
    if job.scores.bands != scorer.card.classes or job.scores.nodata != NODATA:
        raise MappingError(
            f"{job.scores.folder} is for {', '.join(job.scores.bands)} with nodata "
            f"{job.scores.nodata}; wanted the classes of {job.model}, "
            f"{', '.join(scorer.card.classes)}, with nodata {NODATA}"
        )
    if job.scores.grid != job.imagery.grid:
        raise MappingError(
            f"{job.scores.folder} and {job.imagery.folder} are on two grids; wanted the same"
        )
    name, ground_m = str(job.imagery.folder), _ground_pixel_m(job.imagery.grid, area)
    far = check_match(scorer.card, job.imagery.bands, job.imagery.dtype, ground_m, name)
    if far is not None:
        raise MappingError(
            f"{name} has pixels of {ground_m:.3g} m on the ground; wanted a layer of about the "
            f"model's {far.pixel_m:.3g} m (the grid's pixel in the region's file)"
        )


def _ground_pixel_m(grid: Grid, area: Window) -> float:
    """The side of a square as large as the pixel in the middle of `area`, in metres."""
    return math.sqrt(math.prod(grid.ground_pixel(area)))


def _tags(scorer: Scorer) -> dict[str, str]:
    """What a file of scores says of itself."""
    card = scorer.card
    return {
        "kind": "probability",
        "stored": "probability x 254, 255 is nodata",
        "model": scorer.identity,
        "window": str(card.window),
        "margin": str(card.margin),
        "flips": "yes" if scorer.flips else "no",
        "precision": str(scorer.dtype).removeprefix("torch."),
    }
