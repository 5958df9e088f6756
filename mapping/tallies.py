"""What a model makes of the mapped objects that it never saw: thresholds for its proposals."""

from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import Path

from ..models.propose import Tally, Thresholds, choose_thresholds
from ..tiling.grid import Cell
from ..tiling.labels import LabelRules, burn
from ..tiling.layer import Layer
from ..tiling.values import YES
from .errors import MappingError
from .hidden import only_hidden
from .rasters import hidden_rule, label_rules, nearby_features
from .session import Session
from .site import Site


@dataclass(frozen=True, slots=True)
class TallyJob:
    """One cell of the scores, to be counted."""

    cell: Cell
    scores: Layer
    rules: LabelRules
    osm: Path
    hidden: tuple[float, int]


def tally_cell(job: TallyJob) -> dict[str, Tally]:
    """By class, how the scores lie on hidden objects and everywhere in one cell."""
    window = job.scores.grid.window(job.cell)
    near = nearby_features(job.osm, job.rules, job.scores.grid, window)
    chosen = {name: only_hidden(frame, *job.hidden) for name, frame in near.items()}
    hidden_KHW = burn(job.rules, job.scores.grid, window, chosen, {}) == YES
    scores_KHW = job.scores.read(window).data_CHW
    return {
        name: Tally.of(scores_HW, hidden_HW)
        for name, scores_HW, hidden_HW in zip(
            job.rules.classes, scores_KHW, hidden_KHW, strict=True
        )
    }


def thresholds(site: Site, generation: int, session: Session) -> dict[str, Thresholds]:
    """By class, from which score a find is sure; a class that cannot be judged has no entry."""
    rules, osm = label_rules(site), site.folder / "osm"
    scores = site.scores(generation)
    jobs = [TallyJob(cell, scores, rules, osm, hidden_rule(site)) for cell in site.cells]
    tallies = []
    for outcome in session.run(tally_cell, jobs):
        if outcome.value is None:
            raise MappingError(
                f"the scores of {outcome.item.cell.name} could not be counted: {outcome.problem}"
            )
        tallies.append(outcome.value)
    chosen = {
        name: choose_thresholds(reduce(add, (tally[name] for tally in tallies)))
        for name in rules.classes
    }
    return {name: found for name, found in chosen.items() if found is not None}
