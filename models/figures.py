"""Figures on held-back tiles: loss, and IoU by class at every threshold, unknown left out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from ..tiling.grid import Window
from ..tiling.layer import Layer
from ..tiling.scores import LEVELS, to_bytes
from .card import Card
from .errors import ModelError
from .losses import masked_loss
from .samples import read_tile
from .unet import normalise

Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Figures:
    """How scores and labels meet, counted over tiles; figures of tiles add up."""

    yes_KB: Counts
    """Pixels that hold each class, by stored score (0 .. 254)."""

    no_KB: Counts
    """Known pixels that do not."""

    loss: float
    """Sum over the tiles."""

    tiles: int

    @classmethod
    def of(cls, scores_KHW: NDArray[np.uint8], labels_KHW: NDArray[np.uint8], loss: float) -> Self:
        """Those of one tile."""
        pairs = list(zip(scores_KHW, labels_KHW, strict=True))
        yes, no = (
            np.stack([np.bincount(s[lab == value], minlength=LEVELS + 1) for s, lab in pairs])
            for value in (1, 0)
        )
        return cls(yes, no, loss, 1)

    def __add__(self, other: Self) -> Self:
        return type(self)(
            self.yes_KB + other.yes_KB,
            self.no_KB + other.no_KB,
            self.loss + other.loss,
            self.tiles + other.tiles,
        )

    def iou_KB(self) -> NDArray[np.float64]:
        """IoU of each class if scores from each stored level on count; NaN where none is."""
        hit, false = from_above(self.yes_KB), from_above(self.no_KB)
        whole = self.yes_KB.sum(axis=1, keepdims=True) + false
        iou: NDArray[np.float64] = np.full(hit.shape, np.nan)
        np.divide(hit, whole, out=iou, where=whole > 0)
        return iou

    def best(self, classes: Sequence[str]) -> dict[str, dict[str, float]]:
        """By class that occurs: the threshold of the highest IoU, and what it reaches."""
        found = {}
        hit, false, iou = from_above(self.yes_KB), from_above(self.no_KB), self.iou_KB()
        for k, name in enumerate(classes):
            total = int(self.yes_KB[k].sum())
            if total == 0:
                continue
            level = 1 + int(np.nanargmax(iou[k, 1:]))
            taken = max(int(hit[k, level] + false[k, level]), 1)
            found[name] = {
                "threshold": level / LEVELS,
                "iou": float(iou[k, level]),
                "precision": float(hit[k, level] / taken),
                "recall": float(hit[k, level] / total),
            }
        return found


def score_tiles(
    net: nn.Module,
    card: Card,
    imagery: Layer,
    labels: Layer,
    tiles: Sequence[Window],
    bf16: bool,
) -> Figures:
    """Figures of an evaluating network on at least one tile, each seen with the card's margin."""
    total: Figures | None = None
    for tile in tiles:
        _, labels_KHW = read_tile(imagery, labels, tile)
        logits_KHW = tile_logits(net, card, imagery, tile, bf16)
        loss = masked_loss(logits_KHW[None], torch.from_numpy(labels_KHW)[None])
        scores_KHW = to_bytes(torch.sigmoid(logits_KHW).numpy())
        figures = Figures.of(scores_KHW, labels_KHW, float(loss))
        total = figures if total is None else total + figures
    if total is None:
        raise ValueError("figures are of at least one tile")
    return total


def tile_logits(
    net: nn.Module, card: Card, imagery: Layer, tile: Window, bf16: bool
) -> torch.Tensor:
    """A network's answer for a tile, seen with the card's margin: (classes, H, W) on the CPU.

    ModelError if it is not finite: so no such network is scored, drawn or kept.
    """
    # The view's sides are made a multiple of 32, as the network wants them.
    margin = card.margin + (-(tile.width + 2 * card.margin) % 32) // 2
    view = tile.grown(margin)
    pixels = imagery.read(view)
    device = next(net.parameters()).device
    data = torch.from_numpy(pixels.data_CHW.astype(np.float32))[None].to(device)
    valid = torch.from_numpy(pixels.valid_HW)[None].to(device)
    with torch.inference_mode(), torch.autocast(device.type, torch.bfloat16, enabled=bf16):
        logits_KHW = net(normalise(data, valid, card))[0]
    inner: torch.Tensor = logits_KHW[:, *tile.slices(view)].float().cpu()
    if not torch.isfinite(inner).all():
        raise ModelError("the network's answers are not finite; lower recipe.learning_rate")
    return inner


def from_above(counts_B: Counts) -> Counts:
    """How many lie at or above each level; the levels are the last axis.

    >>> from_above(np.array([[5, 0, 2], [0, 1, 1]])).tolist()
    [[7, 2, 2], [2, 2, 1]]
    """
    total: Counts = counts_B[..., ::-1].cumsum(axis=-1)[..., ::-1]
    return total
