"""Changes of a sample that change nothing about what is in it: flips and turns, and the light."""

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T", bound=np.generic)


def dihedral(array: NDArray[T], view: int) -> NDArray[T]:
    """One of the eight flips and turns (0 to 7) of an array (..., H, W), as a view of it; exact.

    >>> dihedral(np.array([[1, 2], [3, 4]]), 5).tolist()
    [[3, 1], [4, 2]]
    """
    if not 0 <= view < 8:
        raise ValueError(f"a square has the views 0 to 7, got {view}")
    if view & 4:
        array = np.swapaxes(array, -1, -2)
    return array[..., :: -1 if view & 2 else 1, :: -1 if view & 1 else 1]


def light(
    data_CHW: NDArray[Any],
    mean: NDArray[np.float32],
    std: NDArray[np.float32],
    strength: float,
    random: np.random.Generator,
) -> NDArray[np.float32]:
    """The same place on another day: contrast, brightness and colour changed at random.

    `strength` is in standard deviations of a band; a third of it is each band's own, the rest is
    common to all, as weather is. Values stay in the imagery's own numbers, as float32.
    """
    bands = len(data_CHW)
    common, own = random.uniform(-strength, strength, 2), strength / 3
    gain_C = (1 + common[0] + random.uniform(-own, own, bands)).astype(np.float32)
    shift_C = (common[1] + random.uniform(-own, own, bands)).astype(np.float32) * std
    middle_C11 = mean[:, None, None]
    offset_C11 = shift_C[:, None, None] + middle_C11
    changed = (data_CHW - middle_C11) * gain_C[:, None, None] + offset_C11
    lit: NDArray[np.float32] = changed.astype(np.float32)
    return lit
