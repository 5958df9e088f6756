"""A model ready to score: on its device, as its card says, in batches that fit the memory."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from ...models.card import Card, load_model
from ...models.unet import bf16_pays, model_of, normalise, pick_device
from ...tiling.layer import Pixels
from ..errors import MappingError
from .windows import View

Scores = NDArray[np.float32]

Say = Callable[[str], None]
"""Tells a person one sentence."""

BATCHES = {"cuda": 16, "mps": 4}
"""Views in one forward pass where there is room; elsewhere one keeps all cores at work."""

LONGEST = 4
"""Batches' worth of views after which a run ends, however few of them hold data."""

_NO_MEMORY = ("out of memory", "can't allocate memory", "not enough memory")
"""What torch says on the CPU and on MPS, which have no exception of their own for it."""


@dataclass(frozen=True, slots=True)
class Scorer:
    """A model on its device; the scores that it gives depend on the pixels alone."""

    card: Card

    module: torch.nn.Module
    """From images NCHW to logits NKHW of the same height and width."""

    device: torch.device

    dtype: torch.dtype = torch.float32
    """Of the module's numbers: bfloat16 where the device has instructions for it."""

    flips: bool = False
    """Whether scores are the mean over the eight flips and turns of what is seen."""

    batch: int = 1
    """Views in one forward pass; always as many, so that a batch's size changes no score."""

    path: Path = Path("the model")
    """Its file, for messages."""

    identity: str = ""
    """Twelve digits of the model file's SHA-256."""

    def __post_init__(self) -> None:
        if self.batch < 1:
            raise MappingError(f"a batch holds at least one view, got {self.batch}")


def load_scorer(path: Path, device: str | None = None, flips: bool | None = None) -> Scorer:
    """The model of a file, kept for this process's next call until the file changes.

    `device` is cuda, mps or cpu, the best there is if not told; `flips` is as the card's recipe
    says if not told. ModelError if the file is no model.
    """
    try:
        changed = path.stat().st_mtime_ns
    except OSError:
        changed = 0  # `load_model` says what is wrong with it.
    return _loaded(path, changed, device, flips)


@lru_cache(maxsize=1)
def _loaded(path: Path, changed: int, device: str | None, flips: bool | None) -> Scorer:
    model, on = load_model(path), pick_device(device)
    wanted = bool(model.card.recipe.get("flips", False)) if flips is None else flips
    module = model_of(model, on)
    dtype = torch.bfloat16 if bf16_pays(on) else torch.float32
    return Scorer(
        card=model.card,
        module=module.to(dtype),
        device=on,
        dtype=dtype,
        flips=wanted,
        batch=BATCHES.get(on.type, 1),
        path=path,
        identity=hashlib.sha256(path.read_bytes()).hexdigest()[:12],
    )


def score_views(
    views: Iterable[View], scorer: Scorer, say: Say
) -> Iterator[tuple[View, Scores | None]]:
    """Each view with its probabilities: K x height x width of its window, without the margin.

    In the order of `views`; None for a view without data, which costs no forward pass. The batch
    is halved when memory ends, which is said. MappingError when even one view does not fit, and
    for a score that is no finite number.
    """
    size = scorer.batch
    for group in _groups(iter(views), scorer.batch):
        images = [view.seen for view in group if view.seen is not None]
        scores, size = _score(images, scorer, size, say)
        found = iter(scores)
        for view in group:
            yield view, None if view.seen is None else next(found)


def _groups(views: Iterator[View], size: int) -> Iterator[list[View]]:
    """Runs of views with at most `size` that hold data in each.

    A view without data waits only behind one with data, and no run is long: memory and what is
    done with the scores do not depend on how much of a raster is empty.
    """
    group: list[View] = []
    held = 0
    for view in views:
        group.append(view)
        held += view.seen is not None
        if not held or held == size or len(group) == LONGEST * size:
            yield group
            group, held = [], 0
    if group:
        yield group


def _score(
    images: Sequence[Pixels], scorer: Scorer, size: int, say: Say
) -> tuple[list[Scores], int]:
    """The probabilities of each image, and the size of batch that memory had room for."""
    done: list[Scores] = []
    while len(done) < len(images):
        batch = images[len(done) : len(done) + size]
        try:
            done.extend(_forward(batch, scorer, size))
        except RuntimeError as problem:
            if not any(words in str(problem).lower() for words in _NO_MEMORY):
                raise
            if size == 1:
                raise MappingError(_too_large(scorer)) from problem
            size //= 2
            say(f"memory of {scorer.device} ended: from now on {size} windows at a time")
    return done, size


def _forward(batch: Sequence[Pixels], scorer: Scorer, size: int) -> Scores:
    """The probabilities NKHW of a batch, filled up to `size` since its shape may change bits."""
    filled = [*batch, *[batch[-1]] * (size - len(batch))]
    data_NCHW = torch.from_numpy(np.stack([each.data_CHW for each in filled], dtype=np.float32))
    valid_NHW = torch.from_numpy(np.stack([each.valid_HW for each in filled]))
    with torch.inference_mode():
        image_NCHW = normalise(
            data_NCHW.to(scorer.device), valid_NHW.to(scorer.device), scorer.card
        )
        score_NKHW = _probabilities(scorer, image_NCHW.to(scorer.dtype))
        inner = slice(scorer.card.margin, scorer.card.margin + scorer.card.window)
        kept_NKHW = score_NKHW[: len(batch), :, inner, inner]
        found: Scores = kept_NKHW.to("cpu", torch.float32).contiguous().numpy()
    if not np.isfinite(found).all():
        raise MappingError(
            f"{scorer.path} gives scores that are no finite numbers; wanted a model whose training "
            "went well"
        )
    return found


def _probabilities(scorer: Scorer, image_NCHW: torch.Tensor) -> torch.Tensor:
    """Probabilities NKHW; with flips, their mean over the square's eight symmetries."""
    if not scorer.flips:
        return _sigmoid(scorer, image_NCHW)
    scores = []
    for turns in range(4):
        turned = image_NCHW.rot90(turns, (2, 3))
        scores.append(_sigmoid(scorer, turned).rot90(-turns, (2, 3)))
        scores.append(_sigmoid(scorer, turned.flip(3)).flip(3).rot90(-turns, (2, 3)))
    return torch.stack(scores).mean(dim=0)


def _sigmoid(scorer: Scorer, image_NCHW: torch.Tensor) -> torch.Tensor:
    logits_NKHW = scorer.module(image_NCHW.contiguous(memory_format=torch.channels_last))
    return torch.sigmoid(logits_NKHW.float())


def _too_large(scorer: Scorer) -> str:
    side = scorer.card.window + 2 * scorer.card.margin
    return (
        f"{scorer.device} has not the memory for one view of {side} x {side} px; "
        "wanted more free memory, another device (--device cpu) or a model with a smaller window"
    )
