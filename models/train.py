"""Training: two layers and a recipe to a model file, with figures while it runs.

FOLDER/NAME.safetensors        the model: averaged weights, and the card
FOLDER/NAME.state.safetensors  the last state, from which a training goes on
FOLDER/NAME.jsonl              what happened
FOLDER/NAME.png                a tile as image, labels and scores
"""

import math
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from ..tiling.files import fingerprint, make_folder
from ..tiling.grid import Window
from ..tiling.layer import Layer
from .card import Card
from .errors import ModelError
from .learner import Learner
from .log import Report, log_to
from .recipe import Recipe
from .samples import Batch, Index, Samples, build_samples, in_order
from .schedule import budget_of_steps, learning_rate, steps_for
from .training import (
    EARLY_TILES,
    LAST_TILES,
    Training,
    early_figures,
    figures_on,
    finish,
    resume,
    save,
)
from .unet import pick_device

_LIBRARIES = ("torch", "segmentation-models-pytorch", "timm", "numpy")
_SAVE_EVERY = 100
_TELL_EVERY = 10
_FIRST_SLOW = 2
"""Steps at the start that are not measured: memory is still being laid out."""


def train(
    imagery: Layer,
    labels: Layer,
    recipe: Recipe,
    *,
    path: Path,
    held_back: Callable[[Window], bool],
    device: str | None = None,
    data: Mapping[str, Any] | None = None,
    clock: Callable[[], float] = time.monotonic,
    report: Report = lambda event: None,
    tensorboard: bool = False,
) -> Path:
    """Train a model on all tiles that are not held back, and write it to `path`.

    A state of the same training (same recipe, layers, tiles, `data`) is gone on from; another one
    is begun anew. `data` goes to the card. ModelError where there is nothing to learn from.
    """
    started = clock()
    make_folder(path.parent)
    samples, held = build_samples(
        imagery,
        labels,
        held_back=held_back,
        crop=recipe.crop,
        aimed=recipe.aimed,
        jitter=recipe.jitter,
        seed=recipe.seed,
    )
    held = _shuffled(held, recipe.seed)
    card = _card(samples, recipe, data or {})
    parts = (index.identity() for index in (samples.index, held))
    identity = fingerprint(recipe.model_dump_json(), repr(card), *parts)
    run = Training(
        samples, held, Learner(card, recipe, pick_device(device)), path, identity, started, clock
    )
    resumed = resume(run)
    board = path.with_suffix(".tensorboard") if tensorboard else None
    with log_to(path.with_suffix(".jsonl"), run.done, report, board) as run.report:
        run.tell("index", _sentence(run, resumed))
        _learn(run)
        finish(run)
    return path


def _learn(run: Training) -> None:
    """All steps that are left; the budget is found on the way where it is in minutes."""
    recipe = run.learner.recipe
    if run.budget is None:
        steps = recipe.steps if recipe.steps is not None else _measure(run)
        run.budget = budget_of_steps(steps, recipe.evaluations, recipe.warmup)
        save(run)  # a run that is ended from here on goes on with this number, not a new one
    steps, figures = run.budget.steps, run.budget.figures
    few = ": too few for the learning rate to rise and fall, so give it more time"
    run.tell("budget", f"{steps} steps{few if steps <= 2 * recipe.warmup else ''}")
    if run.done >= steps and run.best is None:  # measuring took all the time there was
        early_figures(run)
        save(run)
    with _batches(run, range(run.done, steps)) as batches:
        for batch in batches:
            _step(run, batch, steps)
            if run.done in figures:
                early_figures(run)
            if run.done in figures or run.done % _SAVE_EVERY == 0:
                save(run)


def _measure(run: Training) -> int:
    """The steps that the recipe's minutes are worth, from the first ones: none is lost for it."""
    recipe = run.learner.recipe
    seconds = 60 * (recipe.minutes or 0)
    took: list[float] = []
    with _batches(run, range(run.done, recipe.warmup)) as batches:
        before = run.clock()
        for batch in batches:
            _step(run, batch, recipe.warmup)
            took.append(run.clock() - before)
            before += took[-1]
            if len(took) > _FIRST_SLOW and run.seconds > seconds / 5:
                break
    for_figures = _figures_seconds(run)
    return steps_for(seconds - run.seconds - for_figures, took[_FIRST_SLOW:] or took, run.done)


def _figures_seconds(run: Training) -> float:
    """How long all figures of a training will take, from one tile that is scored twice."""
    if not run.held.tiles:
        return 0.0
    for _ in range(2):  # the first time memory is still being laid out
        before = run.clock()
        figures_on(run, 1)
        took = run.clock() - before
    early, last = (min(len(run.held.tiles), most) for most in (EARLY_TILES, LAST_TILES))
    return took * (run.learner.recipe.evaluations * early + last)


def _step(run: Training, batch: Batch, steps: int) -> None:
    recipe = run.learner.recipe
    rate = learning_rate(run.done, steps, recipe.warmup, recipe.learning_rate)
    loss = run.learner.step(batch, run.done, rate)
    if not math.isfinite(loss):
        raise ModelError(
            f"{run.path} cannot be trained: the loss is not finite at step {run.done}; "
            f"lower recipe.learning_rate, which is {recipe.learning_rate:g}"
        )
    run.losses.append(loss)
    run.done += 1
    if run.done % _TELL_EVERY == 0:
        run.tell("step", values={"loss": fmean(run.losses), "learning_rate": rate})
        run.losses.clear()


def _batches(run: Training, steps: range) -> closing[Generator[Batch, None, None]]:
    """The batches of some steps, drawn ahead by threads that end with the `with` block."""
    draw = partial(run.samples.batch, size=run.learner.recipe.batch)
    return closing(in_order(draw, steps))


def _shuffled(index: Index, seed: int) -> Index:
    """The tiles in an order drawn from a seed, so that the first few stand for all."""
    order = np.random.default_rng(seed).permutation(len(index.tiles))
    return replace(
        index,
        tiles=tuple(index.tiles[place] for place in order),
        known_TK=index.known_TK[order],
        yes_TK=index.yes_TK[order],
    )


def _card(samples: Samples, recipe: Recipe, data: Mapping[str, Any]) -> Card:
    """The card before anything is learnt."""
    imagery, index = samples.imagery, samples.index
    return Card(
        classes=samples.labels.bands,
        bands=imagery.bands,
        dtype=imagery.dtype,
        pixel_m=round(fmean(imagery.grid.ground_pixel(index.tiles[0])), 4),
        mean=index.mean,
        std=index.std,
        encoder=recipe.encoder,
        window=recipe.window,
        margin=recipe.margin,
        recipe=recipe.model_dump(mode="json"),
        data={**data, "tiles": len(index.tiles), "left_out": dict(index.left_out)},
        versions={name: version(name) for name in _LIBRARIES},
    )


def _sentence(run: Training, resumed: bool) -> str:
    """What is trained on, for people."""
    index = run.samples.index
    left_out = "".join(f", {n} {why}" for why, n in index.left_out.items())
    again = f"; going on from step {run.done}" if resumed else ""
    figures = f"figures on {len(run.held.tiles)} held-back tiles"
    if not run.held.tiles:
        figures = "no held-back tile with known labels, so no figures, and 0.5 for thresholds"
    return f"training on {len(index.tiles)} tiles{left_out}; {figures}{again}"
