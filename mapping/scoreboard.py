"""How near each step of a region is to the truth: OSM, labels, models, and the exported map."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import geopandas as gpd
import numpy as np
import shapely
from geopandas import GeoDataFrame, GeoSeries
from numpy.typing import NDArray
from shapely.geometry.base import BaseGeometry

from ..tiling.grid import Cell, Grid, Window
from ..tiling.labels import LabelRules, burn
from ..tiling.layer import Layer
from ..tiling.values import UNKNOWN, YES
from .errors import MappingError
from .generations import ROOM
from .parts import Truth
from .products import map_thresholds
from .rasters import label_rules, nearby_features
from .scoring.burnt import labels_of
from .scoring.features import read_features
from .scoring.pixel_scores import PixelCounts, as_labels, pixel_counts
from .scoring.vector_scores import LineScores, ObjectScores, line_scores, object_scores
from .session import Session
from .site import Site, held_tiles, mapped_areas

Labels = NDArray[np.uint8]

OSM, MAP = "OSM", "the map"
"""Names of two of the steps that are scored."""


def labels_step(generation: int) -> str:
    """The name of what OSM has and the labels of a generation add to it, all else "no"."""
    return f"labels {generation} (OSM + added)"


def added_step(generation: int) -> str:
    """The name of what the labels of a generation have and OSM has not."""
    return f"added {generation}"


@dataclass(frozen=True, slots=True)
class Counts:
    """Pixel counts by step and class: over all that the truth knows, and on held-back tiles."""

    everywhere: Mapping[tuple[str, str], PixelCounts]
    held_back: Mapping[tuple[str, str], PixelCounts]


@dataclass(frozen=True, slots=True)
class CountJob:
    """One cell in which each step is held against the truth."""

    cell: Cell
    rules: LabelRules
    osm: Path
    labels: Sequence[Layer]
    """By generation."""

    scores: Sequence[Layer]
    thresholds: Sequence[Mapping[str, float]]
    """By generation, of each class."""

    imagery: Layer
    map_file: Path
    truth: Truth | None
    """None: OSM is what there is to score against."""

    known: Mapping[str, BaseGeometry]
    """By class: where the truth is complete, in the grid's CRS."""

    held: frozenset[Window]


def count_cell(job: CountJob) -> Counts:
    """Hold every step of one cell against the truth."""
    window = job.imagery.grid.window(job.cell)
    truth_KHW = _truth(job, window)
    held_HW = _mask(job.held, window)
    everywhere: dict[tuple[str, str], PixelCounts] = {}
    held_back: dict[tuple[str, str], PixelCounts] = {}
    for step, found_KHW in _steps(job, window).items():
        for name, found_HW, truth_HW in zip(job.rules.classes, found_KHW, truth_KHW, strict=True):
            everywhere[step, name] = pixel_counts(found_HW, truth_HW)
            held_truth_HW = np.where(held_HW, truth_HW, np.uint8(UNKNOWN))
            held_back[step, name] = pixel_counts(found_HW, held_truth_HW)
    return Counts(everywhere, held_back)


def count(site: Site, generation: int, map_file: Path, session: Session) -> Counts:
    """The counts of all steps up to `generation`, summed over the region's cells."""
    generations = range(generation + 1)
    held, rules = held_tiles(site), _without_guard(label_rules(site))
    # A model file is read whole, so once for all cells.
    thresholds = [map_thresholds(site, g) for g in generations]
    known = mapped_areas(site) if site.region.truth is None else {}
    jobs = [
        CountJob(
            cell,
            rules,
            site.folder / "osm",
            [site.labels(g) for g in generations],
            [site.scores(g) for g in generations],
            thresholds,
            site.imagery,
            map_file,
            site.region.truth,
            known,
            held,
        )
        for cell in site.cells
    ]
    parts: list[Counts] = []
    for outcome in session.run(count_cell, jobs):
        if outcome.value is None:
            raise MappingError(f"{outcome.item.cell.name} was not scored: {outcome.problem}")
        parts.append(outcome.value)
    return Counts(
        _summed([part.everywhere for part in parts]), _summed([part.held_back for part in parts])
    )


def score_vectors(
    map_file: Path, truth: Truth, boundary: GeoSeries
) -> dict[str, LineScores | ObjectScores]:
    """Score the exported map: "roads" by length, "buildings" by object, inside the boundary."""
    found, wanted = read_features(map_file), truth_features(truth)
    scores: dict[str, LineScores | ObjectScores] = {}
    if "roads" in wanted:
        scores["roads"] = line_scores(found["roads"], wanted["roads"], area=boundary)
    if "buildings" in wanted:
        scores["buildings"] = object_scores(found["buildings"], wanted["buildings"], area=boundary)
    return scores


def truth_features(truth: Truth, near: GeoSeries | None = None) -> dict[str, GeoDataFrame]:
    """ "roads" and "buildings" of a region's truth, as far as it has them; all, or those near."""
    layers = {"roads": truth.roads, "buildings": truth.buildings}
    return {name: read_layer(truth.file, layer, near) for name, layer in layers.items() if layer}


def read_layer(file: Path, layer: str, near: GeoSeries | None = None) -> GeoDataFrame:
    """A layer of a file, or what of it touches the box of `near` (any CRS).

    MappingError if the file has no layer of this name.
    """
    try:
        return gpd.read_file(file, layer=layer, bbox=near)
    except (OSError, ValueError, RuntimeError) as problem:
        raise MappingError(
            f"{file} cannot be read ({problem}); wanted a file with a layer {layer!r}"
        ) from problem


# -- inside --------------------------------------------------------------------------------


def _steps(job: CountJob, window: Window) -> dict[str, Labels]:
    """By step, in the order in which they are made: what it found, KHW of 0, 1, 255."""
    grid, rules = job.imagery.grid, job.rules
    osm_KHW = burn(rules, grid, window, nearby_features(job.osm, rules, grid, window), {})
    is_osm_KHW = osm_KHW == YES
    steps = {OSM: is_osm_KHW.astype(np.uint8)}
    layers = zip(job.labels, job.scores, job.thresholds, strict=True)
    for generation, (labels, scores, thresholds) in enumerate(layers):
        if generation:
            # What OSM maps counts whole, without the guard and with what was hidden.
            yes_KHW = (labels.read(window).data_CHW == YES) | is_osm_KHW
            steps[labels_step(generation)] = yes_KHW.astype(np.uint8)
            steps[added_step(generation)] = (yes_KHW & ~is_osm_KHW).astype(np.uint8)
        scores_KHW = scores.read(window).data_CHW
        steps[f"model {generation}"] = np.stack(
            [as_labels(scores_KHW[k], thresholds[name]) for k, name in enumerate(rules.classes)]
        )
    near = _around(grid, window)
    found = {name: read_layer(job.map_file, name, near) for name in ("roads", "buildings")}
    labels_KHW = labels_of(found, grid, rules.classes)(window)
    steps[MAP] = (labels_KHW == YES).astype(np.uint8)
    return steps


def _truth(job: CountJob, window: Window) -> Labels:
    """The truth's labels, or OSM's where there is none; unknown where there is no imagery."""
    grid, rules = job.imagery.grid, job.rules
    valid_HW = job.imagery.read(window).valid_HW
    if job.truth is None:
        near = nearby_features(job.osm, rules, grid, window)
        return burn(rules, grid, window, near, job.known, valid_HW)
    wanted = truth_features(job.truth, _around(grid, window))
    labels_KHW = labels_of(wanted, grid, rules.classes)(window)
    labels_KHW[:, ~valid_HW] = UNKNOWN
    return labels_KHW


def _around(grid: Grid, window: Window) -> GeoSeries:
    """The box of all that may reach into a window: what is read of a file for one cell."""
    return GeoSeries([shapely.box(*grid.bounds(window.grown(ROOM)))], crs=grid.crs)


def _without_guard(rules: LabelRules) -> LabelRules:
    return LabelRules(
        classes=rules.classes, widths=rules.widths, use_tags=rules.use_tags, guard_m=0.0
    )


def _mask(tiles: frozenset[Window], window: Window) -> NDArray[np.bool_]:
    """True in the tiles that lie in the window."""
    mask_HW = np.zeros(window.shape, bool)
    for tile in tiles:
        part = tile.overlap(window)
        if part is not None:
            mask_HW[part.slices(window)] = True
    return mask_HW


def _summed(
    parts: Sequence[Mapping[tuple[str, str], PixelCounts]],
) -> dict[tuple[str, str], PixelCounts]:
    total: dict[tuple[str, str], PixelCounts] = {}
    for part in parts:
        for key, counts in part.items():
            total[key] = total.get(key, PixelCounts()) + counts
    return total
