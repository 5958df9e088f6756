"""The stage `evaluate`: what a run did and how near it is to the truth, as a report."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from geopandas import GeoSeries

from ..models.card import load_model
from ..tiling.coverage import Coverage
from .products import read_comparison
from .scoreboard import Counts, added_step, count, score_vectors
from .scoring.evaluate import evaluate_file
from .scoring.pixel_scores import PixelCounts
from .scoring.vector_scores import LineScores, ObjectScores
from .session import Session
from .site import Site
from .viewer.report import Report, Section, Table, words, write_report

Scores = Mapping[tuple[str, str], PixelCounts]


def evaluate(site: Site, generation: int, session: Session) -> Path:
    """Score every step against the truth, or OSM where there is none: map/report.md and .json."""
    map_file = site.map_folder / f"{site.region.name}.gpkg"
    counts = count(site, generation, map_file, session)
    vectors = {}
    if site.region.truth is not None:
        boundary = GeoSeries([site.boundary], crs=site.grid.crs)
        vectors = score_vectors(map_file, site.region.truth, boundary)
    sections = (
        Section("scores", "Scores", tables=tuple(score_tables(site, counts, vectors))),
        _comparison(site),
        *_refinements(site, generation, counts),
        _trainings(site, generation),
        _looked_at(site),
    )
    _, text = write_report(site.map_folder, Report(f"Map of {site.region.name}", sections))
    return text


def evaluate_map(map_file: Path, truth: Path) -> str:
    """Score a map file against a truth of any form; the table as text."""
    scores = evaluate_file(map_file, truth)
    rows = [_vector_row(name, found) for name, found in scores.items()]
    lines = [
        f"{name:<10} F1 {words(f1)}  precision {words(precision)}  recall {words(recall)}"
        for name, f1, precision, recall in rows
    ]
    return "\n".join(lines)


def score_tables(
    site: Site, counts: Counts, vectors: Mapping[str, LineScores | ObjectScores]
) -> Iterator[Table]:
    """The scores as tables: steps by pixels, the map by objects and lengths."""
    against = "the truth" if site.region.truth is not None else "OSM"
    for name in site.region.classes:
        yield _pixel_table(f"{name}: pixels against {against}", name, counts.everywhere)
    if site.region.truth is None:
        for name in site.region.classes:
            yield _pixel_table(f"{name}: held-back tiles alone", name, counts.held_back)
    if vectors:
        rows = tuple(_vector_row(name, scores) for name, scores in vectors.items())
        columns = ("the exported map", "F1", "precision", "recall")
        note = "Buildings one to one at IoU 0.5; roads by length within 3 m, both ways."
        yield Table("Features against the truth", columns, rows, note)


def _pixel_table(title: str, name: str, scores: Scores) -> Table:
    rows = tuple(
        (step, found.iou, found.f1, found.precision, found.recall)
        for (step, of), found in scores.items()
        if of == name and not step.startswith("added")
    )
    note = (
        "What the truth (OSM, where there is none) does not know is left out, what labels leave "
        "unknown counts as no; counts are summed over the region."
    )
    return Table(title, ("step", "IoU", "F1", "precision", "recall"), rows, note)


def _vector_row(
    name: str, scores: LineScores | ObjectScores
) -> tuple[str, float | None, float | None, float | None]:
    return name, scores.f1, scores.precision, scores.recall


# -- sections ------------------------------------------------------------------------------


def _comparison(site: Site) -> Section:
    counts = read_comparison(site).counts
    states = list(dict.fromkeys(state for told in counts.values() for state in told))
    rows = tuple((name, *(told.get(state) for state in states)) for name, told in counts.items())
    return Section(
        "comparison",
        "Against OSM",
        tables=(Table("What is the same, new and missing", ("of", *states), rows),),
    )


def _refinements(site: Site, generation: int, counts: Counts) -> Iterator[Section]:
    """What each round added and, where there is a truth, whether it was right."""
    lock = site.lock()
    for g in range(1, generation + 1):
        told = lock.get(f"refine-g{g}", {}).get("thresholds", {})
        rows = tuple(
            (name, *told.get(name, (None,) * 3), *_added(counts.everywhere[added_step(g), name]))
            for name in site.region.classes
        )
        against = "right" if site.region.truth is not None else "in OSM"
        columns = (
            "class",
            "sure from",
            "unsure from",
            "recall on hidden objects",
            "pixels added",
            f"of them {against}",
        )
        note = (
            "Thresholds are set by mapped objects that were hidden from training; "
            "nothing that is mapped was deleted."
        )
        table = Table(f"Labels of generation {g}", columns, rows, note)
        yield Section(f"refinement {g}", f"Refinement {g}", tables=(table,))


def _added(found: PixelCounts) -> tuple[int, float | None]:
    return found.tp + found.fp, found.precision


def _trainings(site: Site, generation: int) -> Section:
    rows = []
    for g in range(generation + 1):
        card = load_model(site.model(g)).card
        for name in card.classes:
            found = card.scores.get(name, {})
            steps, threshold = card.recipe.get("steps"), card.threshold(name)
            rows.append((f"g{g}, {name}", steps, threshold, found.get("iou")))
    columns = ("model", "steps", "threshold", "IoU on held-back tiles")
    note = "Against the labels that the model was trained on, whose own errors count as its errors."
    return Section("training", "Training", tables=(Table("Models", columns, tuple(rows), note),))


def _looked_at(site: Site) -> Section:
    coverage, lock = Coverage(site.folder, site.grid), site.lock()
    dates = {date for told in coverage.facts("imagery").values() for date in told.get("dates", ())}
    facts = {
        "cells": len(site.cells),
        "imagery of": ", ".join(sorted(dates)) or "unknown dates",
        "OSM of": lock.get("osm", {}).get("snapshot") or "an unknown date",
        "grid": f"{lock['grid']['crs'][:40]}, pixel {lock['grid']['pixel'][0]:g}",
    }
    return Section("coverage", "What was looked at", facts=facts)
