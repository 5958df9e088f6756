"""Generations: labels g -> model g -> scores g -> labels g+1, always rebuilt from OSM.

Errors do not pile up, since labels g+1 are OSM's and what model g proposes, and never labels g.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import geopandas as gpd
import numpy as np
from shapely.geometry.base import BaseGeometry

from ..models import train as training
from ..models.card import load_model
from ..models.propose import Thresholds
from ..models.recipe import Recipe
from ..tiling.coverage import Coverage
from ..tiling.files import fingerprint
from ..tiling.grid import Cell
from ..tiling.labels import LabelRules, burn
from ..tiling.layer import Layer, Pixels
from ..tiling.scores import NODATA, threshold_byte
from ..tiling.values import NO, UNKNOWN, YES
from .export import Notice, export, layers_of
from .hidden import hide
from .products import compare_with_osm, imagery_dates, trace_features
from .rasters import FRAMES, hidden_rule, label_rules, nearby_features
from .screen import training_screen
from .session import Session, Settings
from .site import Site, held_tiles, mapped_areas, stamp
from .sweep import fill
from .tallies import thresholds

# -- labels g+1 ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RefineJob:
    """One cell of the layer `labels-g{g+1}`."""

    cell: Cell
    layer: Layer
    imagery: Layer
    scores: Layer
    rules: LabelRules
    osm: Path
    added: Path
    """The file of what the model proposes: layers roads and buildings, in the grid's CRS."""

    mapped: Mapping[str, BaseGeometry]
    thresholds: Mapping[str, Thresholds]

    hidden: tuple[float, int]
    """What stays hidden, for the next round to be judged by."""


def refine_cell(job: RefineJob) -> Mapping[str, Any]:
    """Burn OSM and what was added, and make unknown what the model is unsure of."""
    grid, window = job.layer.grid, job.layer.grid.window(job.cell)
    near = nearby_features(job.osm, job.rules, grid, window)
    mapped = {name: hide(frame, *job.hidden) for name, frame in near.items()}
    valid_HW = job.imagery.read(window).valid_HW
    osm_KHW = burn(job.rules, grid, window, mapped, job.mapped, valid_HW)
    added = read_added(job.added, grid.bounds(window.grown(ROOM)))
    added_KHW = burn(job.rules, grid, window, added, {}, valid_HW)
    scores_KHW = job.scores.read(window).data_CHW
    labels_KHW = np.stack(
        [
            merged(osm_HW, added_HW, scores_HW, job.thresholds.get(name))
            for name, osm_HW, added_HW, scores_HW in zip(
                job.rules.classes, osm_KHW, added_KHW, scores_KHW, strict=True
            )
        ]
    )
    job.layer.write(job.cell, Pixels(labels_KHW, (labels_KHW != UNKNOWN).any(axis=0)))
    return {
        name: {
            "yes": int((labels == YES).sum()),
            "no": int((labels == NO).sum()),
            "added": int(((labels == YES) & (osm != YES)).sum()),
        }
        for name, labels, osm in zip(job.rules.classes, labels_KHW, osm_KHW, strict=True)
    }


Labels = np.ndarray[Any, np.dtype[np.uint8]]


def merged(
    osm_HW: Labels, added_HW: Labels, scores_HW: Labels, chosen: Thresholds | None
) -> Labels:
    """One class of labels g+1: nothing that OSM maps is deleted.

    OSM's yes stays yes. A find that is sure is yes. Elsewhere OSM's no becomes unknown along the
    edge of a find and where the score is no sure no; OSM's unknown stays unknown.
    """
    labels_HW = osm_HW.copy()
    labels_HW[(osm_HW == NO) & (added_HW == UNKNOWN)] = UNKNOWN
    if chosen is not None:
        unsure_HW = (scores_HW >= threshold_byte(chosen.unsure)) & (scores_HW != NODATA)
        labels_HW[(osm_HW == NO) & unsure_HW] = UNKNOWN
    labels_HW[added_HW == YES] = YES
    return labels_HW


ROOM = 256
"""Pixels around a cell in which an added road may lie and still reach into it."""


def read_added(
    path: Path, bounds: tuple[float, float, float, float]
) -> dict[str, gpd.GeoDataFrame]:
    """By class, what a generation adds inside the bounds: features as labels are burnt from."""
    return {name: gpd.read_file(path, layer=layer, bbox=bounds) for name, layer in FRAMES.items()}


def propose(
    site: Site, generation: int, chosen: Mapping[str, Thresholds], session: Session
) -> Path:
    """Trace what the model is sure of and OSM has not; the file of it, beside the next labels."""
    levels = {name: found.sure for name, found in chosen.items()}
    found = trace_features(site, generation, levels, session)
    comparison = compare_with_osm(site, found)
    frames = {"roads": comparison.roads, "buildings": comparison.buildings}
    new = {
        FRAMES[name]: frames[FRAMES[name]]
        .loc[lambda frame, name=name: (frame["osm"] == "new") & (name in chosen)]
        .drop(columns=["osm", "osm_id"])
        .assign(label="yes")
        for name in FRAMES
    }
    folder = site.labels(generation + 1).folder
    notice = Notice(imagery=site.region.sources.imagery_attribution)
    (path,) = export(layers_of(new), folder, "added", notice=notice, formats=("gpkg",))
    return path


def refine(site: Site, generation: int, session: Session) -> Path:
    """Make labels g+1 from OSM and the scores of generation g; the layer's index."""
    layer = site.labels(generation + 1)
    coverage = Coverage(site.folder, site.grid)
    scores = site.scores(generation).folder.name
    is_last = generation + 1 == site.region.refine.rounds
    hidden = (0.0, 0) if is_last else hidden_rule(site)
    recipe = stamp(
        {
            "labels": site.region.labels.model_dump(),
            "trace": site.region.trace.model_dump(),
            "judged by": hidden_rule(site),
            "hidden": hidden,
        }
    )
    inputs = [coverage.fingerprint(scores, cell) for cell in site.cells]
    made_of = fingerprint(recipe, site.lock()["osm"]["fingerprint"], *inputs)
    added = layer.folder / "added.gpkg"
    key = f"refine-g{generation + 1}"
    if not added.exists() or site.lock().get(key, {}).get("fingerprint") != made_of:
        chosen = thresholds(site, generation, session)
        added = propose(site, generation, chosen, session)
        told = {name: [t.sure, t.unsure, t.recall] for name, t in chosen.items()}
        site.write_lock(**{key: {"fingerprint": made_of, "thresholds": told}})
        session.progress.say(f"{key}: {_told(chosen, site.region.classes)}")
    told = site.lock()[key]["thresholds"]
    chosen = {name: Thresholds(*values) for name, values in told.items()}
    layer.save()
    mapped = mapped_areas(site)
    jobs = [
        (
            RefineJob(
                cell,
                layer,
                site.imagery,
                site.scores(generation),
                label_rules(site),
                site.folder / "osm",
                added,
                mapped,
                chosen,
                hidden,
            ),
            made_of,
        )
        for cell in site.cells
    ]
    # Read anew: tracing has written to the table meanwhile.
    return fill(layer, refine_cell, jobs, Coverage(site.folder, site.grid), session)


def _told(chosen: Mapping[str, Thresholds], classes: Sequence[str]) -> str:
    return "; ".join(
        f"{name} sure from {chosen[name].sure:.2f} (finds {chosen[name].recall:.0%} of what was "
        f"hidden), unsure from {chosen[name].unsure:.2f}"
        if name in chosen
        else f"{name}: too little was hidden to judge by, nothing is added"
        for name in classes
    )


# -- model g -------------------------------------------------------------------------------


def train(site: Site, generation: int, session: Session) -> Path:
    """Train the model of a generation on its labels, unless it stands already; the model's file.

    A budget in minutes becomes a number of steps once; the lock file keeps it, and a repeat takes
    the same number. A budget told for one run is that model's: a later run that tells none is
    content with it.
    """
    recipe = _recipe(site.region.recipe, session.settings)
    budget = {"minutes": recipe.minutes, "steps": recipe.steps}
    coverage = Coverage(site.folder, site.grid)
    labels = site.labels(generation)
    inputs = [
        coverage.fingerprint(stage, cell)
        for stage in (site.imagery.folder.name, labels.folder.name)
        for cell in site.cells
    ]
    path, key = site.model(generation), f"model-g{generation}"
    held = held_tiles(site)
    places = [str(tile) for tile in sorted(held)]
    made_of = fingerprint(site.region.recipe.model_dump_json(), *inputs, *places)
    known = site.lock().get(key, {})
    none_told = recipe == site.region.recipe
    if known.get("fingerprint") == made_of and (none_told or known["budget"] == budget):
        if path.exists():
            return path
        recipe = recipe.model_copy(update={"steps": known["steps"]})
    told = {
        "region": site.region.name,
        "generation": generation,
        "dates": sorted(set(imagery_dates(coverage).values())),
    }
    with training_screen(session.progress, f"train g{generation}") as report:
        training.train(
            site.imagery,
            labels,
            recipe,
            path=path,
            held_back=held.__contains__,
            device=session.settings.device,
            data=told,
            report=report,
        )
    steps = load_model(path).card.recipe["steps"]
    site.write_lock(**{key: {"fingerprint": made_of, "budget": budget, "steps": steps}})
    return path


def _recipe(recipe: Recipe, settings: Settings) -> Recipe:
    """The region's recipe, with the budget that the command line tells instead of its own."""
    told = {"minutes": settings.minutes, "steps": settings.steps}
    return recipe.model_copy(update=told) if any(told.values()) else recipe
