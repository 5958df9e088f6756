"""What a model may add to the labels, decided by mapped objects that it never saw.

Where OSM is incomplete, a pixel without a label is not known to be empty, so precision cannot be
counted. What can be counted: the recall r on mapped objects that were hidden from training, and
the share p of all pixels that a threshold finds. r^2 / p ranks thresholds as the F-measure would,
from positive and unlabelled examples alone (Lee and Liu, "Learning with positive and unlabeled
examples using weighted logistic regression", ICML 2003).
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..tiling.scores import LEVELS, NODATA
from .errors import ModelError
from .figures import Counts, from_above

UNSURE_RECALL = 0.9
"""From the score on that finds this share of the hidden objects, a pixel is no longer a sure no."""

UNSURE_PART = 0.5
"""But not below this part of the sure score, or half the map would be unknown."""

FEWEST = 50
"""Hidden pixels below which no threshold is believed."""


@dataclass(frozen=True, slots=True)
class Tally:
    """How often each stored score occurs, in one class; tallies of cells add up."""

    hidden: Counts
    """Shape (255,): on mapped objects that were hidden from training."""

    everywhere: Counts
    """Shape (255,): on all pixels that were looked at."""

    @classmethod
    def of(cls, scores_HW: NDArray[np.uint8], hidden_HW: NDArray[np.bool_]) -> Self:
        """Count one array of stored scores; nodata is not counted."""
        return cls(_histogram(scores_HW[hidden_HW]), _histogram(scores_HW))

    def __add__(self, other: Self) -> Self:
        return type(self)(self.hidden + other.hidden, self.everywhere + other.everywhere)

    def to_dict(self) -> dict[str, list[int]]:
        """In types of JSON, for the record of a cell."""
        return {"hidden": self.hidden.tolist(), "everywhere": self.everywhere.tolist()}

    @classmethod
    def from_dict(cls, told: dict[str, Any]) -> Self:
        """Undo `to_dict`."""
        return cls(np.array(told["hidden"]), np.array(told["everywhere"]))


@dataclass(frozen=True, slots=True)
class Thresholds:
    """From which probability a find is sure, and from which it is no longer a sure "no"."""

    sure: float
    unsure: float
    """At most `sure`; between the two a pixel becomes unknown."""

    recall: float
    """Share of the hidden objects' pixels that `sure` finds."""

    def __post_init__(self) -> None:
        if not 0 <= self.unsure <= self.sure <= 1:
            raise ModelError(f"thresholds are 0 <= unsure <= sure <= 1, got {self}")


def choose_thresholds(tally: Tally) -> Thresholds | None:
    """The thresholds of one class; None where too little was hidden to tell.

    Score 0 is never a find, whatever the counts say.
    """
    if tally.hidden.sum() < FEWEST:
        return None
    recall = from_above(tally.hidden) / tally.hidden.sum()
    share = from_above(tally.everywhere) / tally.everywhere.sum()
    merit = np.divide(recall**2, share, out=np.zeros_like(share), where=share > 0)
    sure = 1 + int(np.argmax(merit[1:]))
    unsure = max(int(np.flatnonzero(recall >= UNSURE_RECALL).max()), round(UNSURE_PART * sure), 1)
    return Thresholds(sure / LEVELS, min(unsure, sure) / LEVELS, float(recall[sure]))


def _histogram(scores: NDArray[np.uint8]) -> Counts:
    return np.bincount(scores[scores != NODATA].ravel(), minlength=NODATA).astype(np.int64)
