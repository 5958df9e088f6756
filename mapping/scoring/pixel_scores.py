"""How many pixels were found rightly: labels against labels, whatever the size of the region.

Counts are summed over the whole region and divided once at the end, so an empty window weighs
nothing. A rate without anything to divide by is None, never 0 or NaN. What is unknown, in the
truth or in what was found, is left out.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ...tiling.scores import NODATA, threshold_byte
from ...tiling.values import UNKNOWN
from ..errors import MappingError

Labels = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Finds:
    """How many things were found rightly and wrongly: pixels of a class, or objects."""

    tp: int = 0
    """Found, and there."""

    fp: int = 0
    """Found, and nothing there."""

    fn: int = 0
    """There, and not found."""

    @property
    def precision(self) -> float | None:
        """Found rightly, of all that was found."""
        return share(self.tp, self.tp + self.fp)

    @property
    def recall(self) -> float | None:
        """Found rightly, of all that is there."""
        return share(self.tp, self.tp + self.fn)

    @property
    def f1(self) -> float | None:
        return share(2 * self.tp, 2 * self.tp + self.fp + self.fn)


@dataclass(frozen=True, slots=True)
class PixelCounts(Finds):
    """The pixels of one class; counts of windows add up."""

    tn: int = 0

    unknown: int = 0
    """Pixels left out, since the truth or what was found is not known there."""

    def __add__(self, other: Self) -> Self:
        return type(self)(
            self.tp + other.tp,
            self.fp + other.fp,
            self.fn + other.fn,
            self.tn + other.tn,
            self.unknown + other.unknown,
        )

    @property
    def iou(self) -> float | None:
        """Found rightly, of all that is there or was found."""
        return share(self.tp, self.tp + self.fp + self.fn)


def pixel_counts(found_HW: NDArray[Any], truth_HW: Labels) -> PixelCounts:
    """Hold what was found (bool, or labels 0, 1, 255) against labels; 255 in either is left out.

    MappingError for any other value: a mask of 0 and 255, say, has no 1.
    """
    found_HW = found_HW.astype(np.uint8) if found_HW.dtype == bool else found_HW
    if found_HW.shape != truth_HW.shape:
        raise ValueError(f"what was found is {found_HW.shape}, the truth {truth_HW.shape}")
    for name, labels in (("what was found", found_HW), ("the truth", truth_HW)):
        odd = labels[(labels > 1) & (labels != UNKNOWN)]
        if odd.size:
            raise MappingError(
                f"{name} holds the value {odd[0]}; wanted labels: 0 no, 1 yes, {UNKNOWN} unknown"
            )
    known = (found_HW != UNKNOWN) & (truth_HW != UNKNOWN)
    four = np.bincount(found_HW[known].astype(np.intp) * 2 + truth_HW[known], minlength=4)
    tn, fn, fp, tp = four.tolist()
    return PixelCounts(tp, fp, fn, tn, int(known.size - known.sum()))


def as_labels(scores_HW: Labels, probability: float) -> Labels:
    """Stored scores as labels: 1 from `probability` on, 255 where there is no score.

    >>> as_labels(np.array([0, 126, 127, 255], np.uint8), 0.5).tolist()
    [0, 0, 1, 255]
    """
    labels_HW = (scores_HW >= threshold_byte(probability)).astype(np.uint8)
    labels_HW[scores_HW == NODATA] = UNKNOWN
    return labels_HW


def share(part: float, whole: float) -> float | None:
    """The share, or None where there is nothing to share.

    >>> share(1, 4), share(0, 4), share(0, 0)
    (0.25, 0.0, None)
    """
    return part / whole if whole else None
