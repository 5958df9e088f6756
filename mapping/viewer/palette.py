"""Colours by meaning: the same on the page, in the picture and in the small rasters.

They are after Okabe and Ito's set for the colour-blind, brightened to stand out on imagery. What is
missing is dashed as well, and what is true has no filling, so that colour never tells alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Style:
    """How the features of one meaning are drawn."""

    colour: str
    """As "#rrggbb"."""

    dashed: bool = False

    filled: bool = True
    """Whether areas get a tint inside their outline."""


STYLES: Mapping[str, Style] = MappingProxyType(
    {
        "road": Style("#ffd92f"),
        "building": Style("#2fd6b5"),
        "osm": Style("#b7a3ff"),
        "truth": Style("#ffffff", filled=False),
        "new": Style("#ff9f1c"),
        "missing": Style("#ff4fa3", dashed=True),
        "same": Style("#56b4e9"),
    }
)
"""By key: the classes of the map, OpenStreetMap, the truth, and the answers of the comparison."""

UNKNOWN = "#e4e4e4"
"""The hatching of labels where nobody knows."""

_FURTHER = ("#ff7f50", "#8fd14f", "#d6a2e8", "#f4a6a6")


def class_colours(classes: tuple[str, ...]) -> tuple[str, ...]:
    """A colour for each class, as "#rrggbb"; a class without a style of its own gets a further one.

    >>> class_colours(("road", "pool"))
    ('#ffd92f', '#8fd14f')
    """
    return tuple(
        STYLES[name].colour if name in STYLES else _FURTHER[number % len(_FURTHER)]
        for number, name in enumerate(classes)
    )


def rgb(colour: str) -> tuple[int, int, int]:
    """Red, green and blue in 0..255 of "#rrggbb".

    >>> rgb("#ff9f1c")
    (255, 159, 28)
    """
    red, green, blue = bytes.fromhex(colour.removeprefix("#"))
    return red, green, blue
