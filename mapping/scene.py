"""One image and one model, without a region: the image's map."""

import tempfile
from pathlib import Path

import numpy as np
import rasterio
from numpy.typing import NDArray

from ..tiling.grid import Cell, Window
from ..tiling.imagery import footprint
from ..tiling.layer import Layer, Pixels
from ..tiling.scene import Scene, open_scene
from ..tiling.scores import NODATA
from .errors import MappingError
from .export import FORMATS, Notice, export, layers_of
from .prediction.predict import CACHE_bytes, check_output, grid_for, predict, scene_views
from .prediction.scorer import Scorer, load_scorer
from .progress import Progress
from .tracing.buildings import BuildingRecipe
from .tracing.roads import RoadRecipe
from .tracing.trace import TraceJob, TraceRecipe, join, read_map, trace_cell

CELL, TILE = 2048, 512
"""Sides in pixels: a cell of scores is what stands in memory at once."""


def map_scene(
    path: Path, model: Path, out: Path, *, device: str | None = None, progress: Progress
) -> list[Path]:
    """Map an image file: score it, trace the scores, write `out`; the files that were written.

    `out` is a .gpkg, or a folder that gets a file of each format; features are in the image's own
    CRS. Scores stand beside `out` while they are needed. OrthoTraceError if the image or the model
    is of no use, and then nothing is written.
    """
    if out.suffix not in (".gpkg", ""):
        raise MappingError(
            f"{out} is neither a .gpkg nor a folder; wanted map.gpkg, "
            "or a folder for a GeoPackage, GeoParquet, FlatGeobuf and GeoJSON"
        )
    folder = out.parent if out.suffix else out
    scene = open_scene(path)
    scorer = load_scorer(model, device)
    grid = grid_for(scene, scorer, progress.say, cell=CELL, tile=TILE)
    check_output(folder / f"{out.stem}.gpkg", path)
    with (
        rasterio.Env(GDAL_CACHEMAX=CACHE_bytes),
        tempfile.TemporaryDirectory(dir=folder, prefix=".map.") as work,
    ):
        scores = Layer(Path(work) / "scores", grid, scorer.card.classes, nodata=NODATA).save()
        cells = _score(scene, scores, scorer, progress)
        recipe = _recipe(scorer)
        dates = {cell.name: scene.date for cell in cells if scene.date}
        traced = Path(work) / "traced"
        with progress.bar("trace", len(cells)) as advance:
            for cell in cells:
                trace_cell(TraceJob(scores, cell, traced, recipe, dates.get(cell.name)))
                advance()
        join(traced, cells, grid, recipe, dates)
        buildings, roads = read_map(traced, cells)
        return export(
            layers_of({"roads": roads, "buildings": buildings}),
            folder,
            out.stem,
            notice=Notice(imagery=path.name),
            formats=("gpkg",) if out.suffix else FORMATS,
        )


def _score(scene: Scene, scores: Layer, scorer: Scorer, progress: Progress) -> list[Cell]:
    """Fill the cells that the scene reaches into; their names."""
    grid, area = scores.grid, footprint(scene, scores.grid)
    cells = grid.cells(area)
    with progress.bar("predict", len(cells)) as advance:
        for cell in cells:
            scores.write(cell, _cell_scores(scene, scores, grid.window(cell), scorer, progress))
            advance()
    return cells


def _cell_scores(
    scene: Scene, scores: Layer, window: Window, scorer: Scorer, progress: Progress
) -> Pixels:
    scores_KHW = np.full((len(scores.bands), *window.shape), NODATA, np.uint8)

    def put(part: Window, found_KHW: NDArray[np.uint8]) -> None:
        scores_KHW[:, *part.slices(window)] = found_KHW

    seen = window.overlap(footprint(scene, scores.grid)) or window
    predict(scene_views(scene, scores.grid, seen, scorer), scorer, put, progress.say)
    return Pixels(scores_KHW, (scores_KHW != NODATA).any(axis=0))


def _recipe(scorer: Scorer) -> TraceRecipe:
    """The sizes of a region that does not tell any, and the model's own thresholds."""
    card = scorer.card
    return TraceRecipe(
        BuildingRecipe(threshold=card.threshold("building")),
        RoadRecipe(threshold=card.threshold("road")),
    )
