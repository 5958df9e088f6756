"""Whether a model can score an image, and on which pixel size."""

from collections.abc import Sequence
from dataclasses import dataclass

from ...models.card import Card
from ..errors import MappingError

NEAR = (0.8, 1.25)
"""Pixels of this many times the model's are scored as they are."""

COARSEST = 8.0
"""Pixels of more than this many times the model's hold too little to be worth resampling."""


@dataclass(frozen=True, slots=True)
class Resampling:
    """That an image has to be brought to a model's pixel size first."""

    pixel_m: float
    """The size wanted, in metres on the ground."""

    said: str
    """One sentence for a person."""


def check_match(
    card: Card, bands: Sequence[str], dtype: str, ground_pixel_m: float, name: str
) -> Resampling | None:
    """Whether the imagery `name` is what the model was trained on; None if it can be scored as is.

    MappingError for other bands, another type, or pixels that are much too coarse.
    """
    if tuple(bands) != card.bands:
        raise MappingError(
            f"{name} has {_counted(bands)}; wanted the model's {_counted(card.bands)}"
        )
    if dtype != card.dtype:
        raise MappingError(f"{name} holds {dtype}; wanted the model's {card.dtype}")
    times = ground_pixel_m / card.pixel_m
    if times > COARSEST:
        raise MappingError(
            f"{name} has pixels of {ground_pixel_m:.3g} m on the ground; wanted at most "
            f"{COARSEST:g} times the model's {card.pixel_m:.3g} m"
        )
    if NEAR[0] <= times <= NEAR[1]:
        return None
    return Resampling(
        card.pixel_m,
        f"{name} has pixels of {ground_pixel_m:.3g} m on the ground and is resampled "
        f"to the model's {card.pixel_m:.3g} m",
    )


def _counted(bands: Sequence[str]) -> str:
    """The bands as a person counts them.

    >>> _counted(["red", "green"]), _counted(["gray"])
    ('2 bands (red, green)', '1 band (gray)')
    """
    return f"{len(bands)} band{'s' * (len(bands) != 1)} ({', '.join(bands)})"
