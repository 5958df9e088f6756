"""A picture of how far a training is: one tile as image, labels and scores, side by side."""

from pathlib import Path

import numpy as np
from matplotlib.image import imsave
from numpy.typing import NDArray

from ..tiling.files import written_beside
from ..tiling.values import UNKNOWN, YES
from .card import Card

_CLASS_COLOURS = np.array(
    [(230, 159, 0), (86, 180, 233), (0, 158, 115), (204, 121, 167)], np.float32
)
"""Okabe and Ito's, which the colour-blind tell apart; they repeat after four classes."""

_UNKNOWN_GREY = 96
_GAP = 8


def write_glance(
    path: Path,
    card: Card,
    data_CHW: NDArray[np.float32],
    labels_KHW: NDArray[np.uint8],
    scores_KHW: NDArray[np.float32],
) -> None:
    """Write a PNG: imagery by the card's statistics | labels, unknown grey | scores in [0, 1]."""
    panels = [
        _image(data_CHW, card),
        _classes((labels_KHW == YES).astype(np.float32), (labels_KHW == UNKNOWN).all(axis=0)),
        _classes(scores_KHW, np.zeros(scores_KHW.shape[1:], bool)),
    ]
    gap = np.full((panels[0].shape[0], _GAP, 3), 255, np.uint8)
    with written_beside(path) as part:
        imsave(part, np.hstack([panels[0], gap, panels[1], gap, panels[2]]))


def _image(data_CHW: NDArray[np.float32], card: Card) -> NDArray[np.uint8]:
    """Red, green and blue (or the first band as grey), two deviations each way."""
    named = [card.bands.index(name) for name in ("red", "green", "blue") if name in card.bands]
    bands = named if len(named) == 3 else [0, 0, 0]
    mean, std = (np.array(told, np.float32)[bands] for told in (card.mean, card.std))
    normal_HWC = (np.nan_to_num(data_CHW[bands]).transpose(1, 2, 0) - mean) / std
    grey: NDArray[np.uint8] = (np.clip(normal_HWC / 4 + 0.5, 0, 1) * 255).astype(np.uint8)
    return grey


def _classes(share_KHW: NDArray[np.float32], unknown_HW: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Each class's colour, as strong as its share; later classes lie over earlier ones."""
    picture_HWC = np.zeros((*unknown_HW.shape, 3), np.float32)
    for number, share_HW in enumerate(share_KHW):
        colour = _CLASS_COLOURS[number % len(_CLASS_COLOURS)]
        weight_HW1 = share_HW[:, :, None]
        picture_HWC = picture_HWC * (1 - weight_HW1) + colour * weight_HW1
    picture_HWC[unknown_HW] = _UNKNOWN_GREY
    return picture_HWC.astype(np.uint8)
