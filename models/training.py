"""A training under way: how far it has come, what it looks like so far, and how it is kept."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean

import numpy as np
import torch

from .card import Model, save_model
from .figures import Figures, score_tiles, tile_logits
from .glance import write_glance
from .learner import Learner
from .log import Event, Kind, Report
from .samples import Index, Samples, read_tile
from .schedule import Budget, budget_of_steps
from .state import Tensors, load_state, save_state

EARLY_TILES = 8
"""Held-back tiles that are scored while a training runs."""

LAST_TILES = 40
"""Held-back tiles that thresholds and the card's scores are taken from."""

_NOISE = 0.01
"""IoU on a few tiles by which an earlier state must be better to be preferred to a later one."""


@dataclass(frozen=True, slots=True)
class Best:
    """The state that is kept so far."""

    iou: float
    """Mean over the classes on the early tiles; 0 where nothing is held back."""

    step: int
    weights: Tensors


@dataclass(slots=True)
class Training:
    """A training under way: what it is given, and how far it has come."""

    samples: Samples
    held: Index
    learner: Learner
    path: Path
    """The model's file; the others stand beside it."""

    identity: str
    started: float
    clock: Callable[[], float]
    report: Report = lambda event: None
    budget: Budget | None = None
    done: int = 0
    best: Best | None = None
    losses: list[float] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """Since the start."""
        return self.clock() - self.started

    def tell(self, kind: Kind, text: str = "", values: Mapping[str, float] | None = None) -> None:
        steps = None if self.budget is None else self.budget.steps
        self.report(Event(kind, self.done, steps, self.seconds, values or {}, text))


# -- what it looks like so far ---------------------------------------------------------------


def figures_on(run: Training, most: int) -> Figures:
    """Those of the averaged weights on the first held-back tiles, `most` of them at most."""
    learner, samples = run.learner, run.samples
    return score_tiles(
        learner.average,
        learner.card,
        samples.imagery,
        samples.labels,
        run.held.tiles[:most],
        learner.bf16,
    )


def early_figures(run: Training) -> None:
    """Score the averaged weights, tell, draw a tile, and keep them if they are the best."""
    iou = 0.0
    if run.held.tiles:
        figures = figures_on(run, EARLY_TILES)
        found = figures.best(run.learner.card.classes)
        ious = {f"iou/{name}": told["iou"] for name, told in found.items()}
        iou = fmean(ious.values()) if ious else 0.0
        run.tell("figures", values={"held_back_loss": figures.loss / figures.tiles, **ious})
    _draw(run)
    if run.best is None or iou >= run.best.iou - _NOISE:
        weights = {k: v.detach().cpu().clone() for k, v in run.learner.average.state_dict().items()}
        run.best = Best(iou, run.done, weights)


def _draw(run: Training) -> None:
    """A picture of the tile with most of all classes, a held-back one if there is any."""
    index = run.held if run.held.tiles else run.samples.index
    tile = index.tiles[int(np.argmax(index.yes_TK[:EARLY_TILES].sum(axis=1)))]
    learner, samples = run.learner, run.samples
    pixels, labels_KHW = read_tile(samples.imagery, samples.labels, tile)
    logits_KHW = tile_logits(learner.average, learner.card, samples.imagery, tile, learner.bf16)
    path = run.path.with_suffix(".png")
    scores_KHW = torch.sigmoid(logits_KHW).numpy()
    write_glance(path, learner.card, pixels.data_CHW, labels_KHW, scores_KHW)
    run.tell("picture", str(path))


# -- how it is kept ---------------------------------------------------------------------------


def finish(run: Training) -> None:
    """Put the best weights in place, take thresholds and scores with them, write the model."""
    if run.best is None or run.budget is None:
        raise RuntimeError("a training ends with figures")
    learner = run.learner
    learner.average.load_state_dict(run.best.weights)
    found: dict[str, dict[str, float]] = {}
    if run.held.tiles:
        found = figures_on(run, LAST_TILES).best(learner.card.classes)
    card = replace(
        learner.card,
        thresholds={name: told["threshold"] for name, told in found.items()},
        recipe={
            **learner.card.recipe,
            "steps": run.budget.steps,
            "best_step": run.best.step,
            "bf16": learner.bf16,
            "threads": torch.get_num_threads(),
            "device": learner.device.type,
        },
        scores=found,
    )
    save_model(run.path, Model(card, run.best.weights))
    run.tell("end", str(run.path), {f"iou/{name}": told["iou"] for name, told in found.items()})


def save(run: Training) -> None:
    """Write the state, from which `resume` goes on."""
    if run.budget is None:
        raise RuntimeError("a state is written once the budget is known")
    best = run.best
    facts = {
        "identity": run.identity,
        "done": run.done,
        "steps": run.budget.steps,
        "best": None if best is None else {"iou": best.iou, "step": best.step},
    }
    parts = {**run.learner.parts(), "best": {} if best is None else best.weights}
    save_state(_state_path(run.path), facts, parts)


def resume(run: Training) -> bool:
    """Take up the state of the same training, if there is one."""
    path = _state_path(run.path)
    if not path.exists():
        return False
    state = load_state(path)
    if state.facts["identity"] != run.identity:
        return False
    recipe, facts = run.learner.recipe, state.facts
    run.learner.restore(state)
    run.done = facts["done"]
    run.budget = budget_of_steps(facts["steps"], recipe.evaluations, recipe.warmup)
    if facts["best"] is not None:
        run.best = Best(facts["best"]["iou"], facts["best"]["step"], state.part("best"))
    return True


def _state_path(path: Path) -> Path:
    return path.with_suffix(".state.safetensors")
