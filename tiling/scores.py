"""Scores as bytes: the one place that knows how probabilities are stored."""

import numpy as np
from numpy.typing import NDArray

NODATA = 255
"""The byte for "not looked at"; no probability is stored as it."""

LEVELS = 254
"""The byte for certainty: probability x 254."""


def to_bytes(probability: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Store probabilities in [0, 1] as 0..254, error at most 1/508; NaN becomes NODATA.

    >>> to_bytes(np.array([0, 0.5, 1, np.nan], np.float32)).tolist()
    [0, 127, 254, 255]
    """
    unknown = np.isnan(probability)
    stored = np.round(np.where(unknown, 0, probability) * LEVELS).astype(np.uint8)
    stored[unknown] = NODATA
    return stored


def threshold_byte(probability: float) -> int:
    """The smallest stored byte that means at least `probability`, in [0, 1].

    >>> threshold_byte(0.5), threshold_byte(1.0)
    (127, 254)
    """
    return int(np.ceil(probability * LEVELS - 1e-9))
