"""Figures are those of a loop over pixels, add up over tiles, and leave unknown out."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from orthotrace.models.card import Card
from orthotrace.models.figures import Figures, score_tiles, tile_logits
from orthotrace.tiling.grid import Window
from orthotrace.tiling.layer import Layer
from orthotrace.tiling.values import UNKNOWN
from torch import Tensor, nn

CLASSES = ("road", "building")


Bytes = NDArray[np.uint8]


def drawn(seed: int) -> tuple[Bytes, Bytes]:
    random = np.random.default_rng(seed)
    scores = random.integers(0, 255, (2, 12, 12)).astype(np.uint8)
    labels = random.choice(np.array([0, 1, UNKNOWN], np.uint8), scores.shape)
    return scores, labels


@given(st.integers(0, 50), st.integers(1, 254))
def test_iou_is_what_a_count_of_pixels_says(seed: int, level: int) -> None:
    scores, labels = drawn(seed)
    iou_KB = Figures.of(scores, labels, 0.0).iou_KB()
    for k in range(2):
        found, yes, known = scores[k] >= level, labels[k] == 1, labels[k] != UNKNOWN
        union = ((found | yes) & known).sum()
        assert iou_KB[k, level] == pytest.approx((found & yes).sum() / union)


@given(st.integers(0, 50))
def test_figures_of_tiles_add_up_to_those_of_all(seed: int) -> None:
    scores, labels = drawn(seed)
    parts = [Figures.of(scores[:, rows], labels[:, rows], 0.5) for rows in (slice(5), slice(5, 12))]
    whole, total = Figures.of(scores, labels, 1.0), parts[0] + parts[1]
    assert np.array_equal(whole.yes_KB, total.yes_KB) and np.array_equal(whole.no_KB, total.no_KB)
    assert total.tiles == 2 and total.loss == 1.0


@given(st.integers(0, 50))
def test_the_best_threshold_is_the_best_of_all(seed: int) -> None:
    figures = Figures.of(*drawn(seed), 0.0)
    for k, told in enumerate(figures.best(CLASSES).values()):
        assert told["iou"] == figures.iou_KB()[k, 1:].max()
        assert 0 < told["threshold"] <= 1
        f1 = 2 * told["iou"] / (1 + told["iou"])
        p, r = told["precision"], told["recall"]
        assert 2 * p * r / (p + r) == pytest.approx(f1)


def test_a_class_that_does_not_occur_has_no_figures() -> None:
    scores, labels = drawn(0)
    labels[0] = np.where(labels[0] == 1, 0, labels[0])
    assert list(Figures.of(scores, labels, 0.0).best(CLASSES)) == ["building"]


def test_a_perfect_answer_has_an_iou_of_one() -> None:
    _, labels = drawn(1)
    scores = np.where(labels == 1, 254, 0).astype(np.uint8)
    assert all(f["iou"] == 1.0 for f in Figures.of(scores, labels, 0.0).best(CLASSES).values())


class Red(nn.Module):
    """Roads where red is above its mean, buildings nowhere."""

    def __init__(self) -> None:
        super().__init__()
        self.place = nn.Parameter(torch.zeros(1))
        self.seen: list[tuple[int, ...]] = []

    def forward(self, image: Tensor) -> Tensor:
        self.seen.append(tuple(image.shape))
        return torch.stack([image[:, 0] * 10, image[:, 0] * 0 - 10], dim=1)


CARD = Card(
    classes=CLASSES,
    bands=("red", "green", "blue"),
    dtype="uint8",
    pixel_m=1.0,
    mean=(150.0,) * 3,
    std=(10.0,) * 3,
    window=32,
    margin=16,
)


def test_tiles_are_seen_with_a_margin_and_scored_without(place: tuple[Layer, Layer]) -> None:
    imagery, labels = place
    net = Red()
    tiles = [Window(-64, 32, -32, 64), Window(-96, 128, -64, 160)]
    figures = score_tiles(net, CARD, imagery, labels, tiles, False)
    assert net.seen == [(1, 3, 64, 64)] * 2
    assert figures.best(CLASSES)["road"]["iou"] == 1.0
    assert tile_logits(net, CARD, imagery, tiles[0], False).shape == (2, 32, 32)
    assert (figures.yes_KB + figures.no_KB).sum() == 2 * (32 * 32 + 24 * 32)


def test_no_tile_has_no_figures(place: tuple[Layer, Layer]) -> None:
    with pytest.raises(ValueError, match="at least one tile"):
        score_tiles(Red(), CARD, *place, [], False)
