"""What the county's ground and roofs look like from above, by name.

Colours are reflectances of red, green, blue and near infrared, as bright as such things come out
in NAIP imagery (1 is white): vegetation shines in the infrared, water swallows it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

Colour = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """A ground in early summer and in autumn, and how uneven it is."""

    summer: Colour
    autumn: Colour
    grain: float = 0.04
    """Contrast of single metres."""

    clump: float = 0.03
    """Contrast over some metres."""

    drought: float = 0.0
    """How much its green varies over tens of metres."""

    rows: float = 0.0
    """Contrast of rows."""

    period_m: float = 4.0
    """From row to row."""


def _same(colour: Colour, grain: float = 0.04, clump: float = 0.03) -> Material:
    return Material(summer=colour, autumn=colour, grain=grain, clump=clump)


def _green(
    summer: Colour, autumn: Colour, clump: float = 0.05, drought: float = 0.16, rows: float = 0.03
) -> Material:
    return Material(
        summer=summer, autumn=autumn, grain=0.05, clump=clump, drought=drought, rows=rows
    )


GROUNDS: Mapping[str, Material] = {
    "rough grass": _green((0.44, 0.47, 0.33, 0.62), (0.50, 0.48, 0.34, 0.56), 0.09, 0.26, 0.0),
    "lawn": _green((0.39, 0.48, 0.31, 0.74), (0.44, 0.46, 0.31, 0.64), 0.05, 0.2, 0.0),
    "park": _green((0.40, 0.49, 0.32, 0.73), (0.46, 0.47, 0.32, 0.63), 0.05, 0.25, 0.015),
    "pitch": _green((0.36, 0.50, 0.30, 0.80), (0.40, 0.49, 0.30, 0.72), 0.03, 0.1, 0.05),
    "pasture": _green((0.41, 0.48, 0.31, 0.72), (0.50, 0.48, 0.33, 0.62), 0.07, 0.3, 0.02),
    "hay": _green((0.55, 0.56, 0.38, 0.66), (0.42, 0.48, 0.31, 0.68), 0.05, 0.15, 0.06),
    "wheat": _green((0.66, 0.60, 0.43, 0.64), (0.58, 0.49, 0.38, 0.52), 0.04, 0.08, 0.05),
    "maize": _green((0.36, 0.45, 0.29, 0.72), (0.60, 0.53, 0.37, 0.50), 0.04, 0.14, 0.08),
    "soy": _green((0.47, 0.46, 0.35, 0.62), (0.55, 0.50, 0.31, 0.58), 0.05, 0.15, 0.09),
    "wood floor": _green((0.27, 0.30, 0.23, 0.42), (0.36, 0.31, 0.24, 0.38), 0.12, 0.1, 0.0),
    "soil": Material(
        summer=(0.62, 0.51, 0.42, 0.55), autumn=(0.55, 0.45, 0.37, 0.48), rows=0.05, clump=0.06
    ),
    "sand": _same((0.78, 0.72, 0.60, 0.72)),
    "dirt": _same((0.64, 0.56, 0.46, 0.58), clump=0.1),
    "gravel": _same((0.64, 0.60, 0.55, 0.58), clump=0.07),
    "concrete": _same((0.70, 0.69, 0.66, 0.62), clump=0.05),
    "paving": _same((0.63, 0.62, 0.59, 0.57), clump=0.06),
    "deck": _same((0.72, 0.68, 0.62, 0.64)),
    "asphalt": _same((0.475, 0.475, 0.475, 0.40), grain=0.025, clump=0.035),
    "worn asphalt": _same((0.56, 0.555, 0.545, 0.47), grain=0.025, clump=0.04),
    "fresh asphalt": _same((0.36, 0.365, 0.375, 0.29), grain=0.025),
    "bay line": _same((0.80, 0.80, 0.78, 0.68)),
    "white line": _same((0.86, 0.86, 0.84, 0.72), clump=0.12),
    "yellow line": _same((0.80, 0.68, 0.34, 0.66), clump=0.12),
    "tartan": _same((0.60, 0.34, 0.29, 0.50)),
    "court": _same((0.33, 0.45, 0.44, 0.40)),
    "pool": _same((0.33, 0.66, 0.71, 0.14)),
    "bank": _same((0.47, 0.43, 0.34, 0.40), clump=0.14),
    "water": _same((0.20, 0.245, 0.225, 0.07), grain=0.03, clump=0.04),
    "deep water": _same((0.0, 0.0, 0.0, 0.0)),
}
"""Ground by name; "deep water" is so dark that some of its pixels come out as 0 in every band."""

ROOFS: Mapping[str, Material] = {
    "shingle grey": _same((0.50, 0.50, 0.51, 0.47), clump=0.025),
    "shingle brown": _same((0.50, 0.43, 0.38, 0.48), clump=0.025),
    "shingle dark": _same((0.33, 0.33, 0.35, 0.33), clump=0.025),
    "shingle light": _same((0.68, 0.67, 0.65, 0.60), clump=0.025),
    "tile": _same((0.62, 0.41, 0.33, 0.58), clump=0.04),
    "membrane": _same((0.66, 0.66, 0.65, 0.58), clump=0.06),
    "white roof": _same((0.90, 0.90, 0.89, 0.78), clump=0.04),
    "gravel roof": _same((0.57, 0.55, 0.52, 0.52), clump=0.07),
    "metal": _same((0.70, 0.74, 0.78, 0.66), clump=0.02),
    "rust": _same((0.52, 0.38, 0.32, 0.47), clump=0.06),
}

CARS: tuple[Colour, ...] = (
    (0.88, 0.88, 0.88, 0.75),
    (0.85, 0.85, 0.84, 0.73),
    (0.74, 0.74, 0.75, 0.64),
    (0.66, 0.67, 0.69, 0.58),
    (0.20, 0.20, 0.22, 0.20),
    (0.16, 0.17, 0.18, 0.15),
    (0.31, 0.32, 0.33, 0.28),
    (0.44, 0.45, 0.47, 0.40),
    (0.60, 0.18, 0.16, 0.52),
    (0.20, 0.29, 0.50, 0.34),
    (0.58, 0.52, 0.42, 0.50),
)

LEAVES: Mapping[str, tuple[Colour, Colour, Colour]] = {
    "summer": ((0.31, 0.39, 0.29, 0.68), (0.45, 0.53, 0.35, 0.86), (0.26, 0.335, 0.28, 0.52)),
    "autumn": ((0.35, 0.40, 0.28, 0.62), (0.59, 0.50, 0.31, 0.70), (0.25, 0.32, 0.26, 0.49)),
}
"""By season: broadleaves from one end of `leaf` to the other, and conifers."""
