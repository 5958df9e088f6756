"""What OSM's tags mean for labels: tables of roads and buildings, and the width of a road.

Three answers: "yes" is drawn, "unknown" is masked (it is there, but a photograph cannot settle
whether it is what we map), "no" is left out, so the ground there is background.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from types import MappingProxyType
from typing import Literal

from .errors import TilingError

Tags = Mapping[str, str]

ROAD_WIDTHS_M: Mapping[str, float] = MappingProxyType(
    {
        "motorway": 12.0,
        "trunk": 11.0,
        "primary": 10.0,
        "secondary": 9.0,
        "tertiary": 8.0,
        "unclassified": 6.0,
        "residential": 7.0,
        "living_street": 5.5,
        "service": 4.5,
        "track": 3.0,
        "road": 6.0,
        "busway": 7.0,
        "pedestrian": 5.0,
        "bus_guideway": 7.0,
        "escape": 5.0,
        "raceway": 10.0,
        "motorway_link": 7.0,
        "trunk_link": 6.5,
        "primary_link": 6.0,
        "secondary_link": 5.5,
        "tertiary_link": 5.5,
    }
)
"""Values of `highway` that can be roads, and the paved width where neither tag nor region says.

Two lanes of 3.5 m (3 m on small roads) and the shoulders below; the two carriageways of a
divided road are two ways. Every other value of `highway` is left out.
"""

SHOULDERS_M: Mapping[str, float] = MappingProxyType(
    {"motorway": 4.5, "trunk": 3.5, "primary": 2.0, "secondary": 1.5, "tertiary": 1.0}
    | {"motorway_link": 3.0, "trunk_link": 2.5, "primary_link": 1.5}
)
"""Paved width beside the lanes, both sides together; none on other roads."""

LANE_M = 3.5
"""Width of a lane; `lanes` counts both directions."""

WIDTH_KEYS = ("width:carriageway", "width", "est_width")
"""Tags that tell a width, the surest first."""

WIDTH_RANGE_M = (2.0, 60.0)
"""What a label's road can be wide; narrower and wider tags are brought to it."""

_FAR_M = 100.0
"""A tagged width beyond this is a slip (centimetres, a missing point), not a wide road."""

_MANY_LANES = 20
"""More lanes than this are a slip: the widest toll plazas have as many."""

NOT_ROADS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "not built": frozenset({"proposed", "planned", "construction"}),
        "gone": frozenset({"abandoned", "razed", "disused", "demolished", "no"}),
        "path": frozenset({"footway", "cycleway", "path", "steps", "bridleway", "via_ferrata"}),
        "not a way on the ground": frozenset({"corridor", "elevator", "escalator", "ladder"}),
        "stop or area": frozenset({"platform", "rest_area", "services", "bus_stop"}),
    }
)
"""Reasons to leave out a `highway`, with its values."""

UNSURE_ROADS: Mapping[str, str] = MappingProxyType(
    {
        "track": "earth or grass, often under trees",
        "pedestrian": "paved like a road, but none",
        "raceway": "paved like a road, but none",
        "bus_guideway": "two beams with grass between",
        "escape": "gravel beside a road",
    }
)
"""Values of `highway` that are neither road nor background, with the reason."""

UNSURE_SERVICES = frozenset(
    {"driveway", "parking_aisle", "parking", "alley", "drive-through", "emergency_access"}
)
"""Values of `service` that OSM has in one street and lacks in the next, and that merge in yards."""

NOT_BUILDINGS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "no building": frozenset({"no", "none", "entrance"}),
        "not built": frozenset({"proposed", "planned", "construction"}),
        "gone": frozenset({"collapsed", "demolished", "destroyed", "razed", "removed"}),
    }
)
"""Reasons to leave out a `building`, with its values."""

UNSURE_BUILDINGS: Mapping[str, str] = MappingProxyType(
    {
        "ruins": "walls without a roof",
        "houseboat": "movable",
        "static_caravan": "movable",
        "caravan": "movable",
        "tent": "movable",
    }
)
"""Values of `building` that are neither building nor background, with the reason."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a feature is in labels, and why if it is not plainly a road or building."""

    label: Literal["yes", "unknown", "no"]
    reason: str = ""


_YES = Verdict("yes")


def judge_road(tags: Tags) -> Verdict:
    """What the `highway` of these tags is in labels of roads."""
    kind = tags["highway"]
    for reason, kinds in NOT_ROADS.items():
        if kind in kinds:
            return Verdict("no", reason)
    if kind not in ROAD_WIDTHS_M:
        return Verdict("no", "other value of highway")
    if _says(tags, "tunnel"):
        return Verdict("unknown", "tunnel")
    if _says(tags, "covered") or _says(tags, "indoor"):
        return Verdict("unknown", "covered")
    if _underground(tags) and not _says(tags, "bridge"):
        return Verdict("unknown", "underground")
    if tags.get("service") in UNSURE_SERVICES:
        return Verdict("unknown", "driveway, aisle or alley")
    if kind in UNSURE_ROADS:
        return Verdict("unknown", UNSURE_ROADS[kind])
    return _YES


def judge_building(tags: Tags) -> Verdict:
    """What the `building` (or only `building:part`) of these tags is in labels of buildings."""
    if "building" not in tags:
        # The building that it is a part of is drawn by itself.
        return Verdict("no", "part of a building")
    kind = tags["building"]
    for reason, kinds in NOT_BUILDINGS.items():
        if kind in kinds:
            return Verdict("no", reason)
    if _underground(tags):
        return Verdict("no", "underground")
    if kind in UNSURE_BUILDINGS:
        return Verdict("unknown", UNSURE_BUILDINGS[kind])
    return _YES


def check_widths(widths: Mapping[str, float]) -> None:
    """TilingError unless these are widths in metres by value of `highway`, or by "default"."""
    for kind, width in widths.items():
        if kind != "default" and kind not in ROAD_WIDTHS_M:
            near = get_close_matches(kind, [*ROAD_WIDTHS_M, "default"], 1)
            wanted = near[0] if near else ", ".join(ROAD_WIDTHS_M)
            raise TilingError(f"no road is of the kind {kind!r} in the widths; wanted {wanted}")
        if not WIDTH_RANGE_M[0] <= width <= WIDTH_RANGE_M[1]:
            raise TilingError(
                f"the width of {kind} is {width} m; wanted {WIDTH_RANGE_M[0]} to {WIDTH_RANGE_M[1]}"
            )


def road_width_m(tags: Tags, widths: Mapping[str, float], use_tags: bool = True) -> float:
    """Width in metres to draw a road with: its tagged width, else lanes, else that of its kind.

    `widths` are the region's by kind, then by "default"; what they lack is in ROAD_WIDTHS_M.
    Without `use_tags` only the kind counts. Always within WIDTH_RANGE_M.
    """
    kind = tags["highway"]
    width = _tagged_width_m(tags) if use_tags else None
    if width is None:
        width = widths.get(kind, widths.get("default", ROAD_WIDTHS_M[kind]))
    return min(max(width, WIDTH_RANGE_M[0]), WIDTH_RANGE_M[1])


def _tagged_width_m(tags: Tags) -> float | None:
    for key in WIDTH_KEYS:
        width = parse_length_m(tags.get(key, ""))
        if width is not None and width <= _FAR_M:
            return width
    lanes = parse_lanes(tags.get("lanes", ""))
    return None if lanes is None else lanes * LANE_M + SHOULDERS_M.get(tags["highway"], 0.0)


# -- values of tags as numbers ---------------------------------------------------------------

_NUMBER = r"([0-9]+(?:[.,][0-9]+)?|[.,][0-9]+)"
_ABOUT = re.compile(r"(?:~|≈|[<>]=?|ca\.?|circa|approx\.?|about)\s*")
_BETWEEN = re.compile(r"\s*(?:;|-|–|\bto\b)\s*")
_METRIC = re.compile(_NUMBER + r"\s*(m|met(?:re|er)s?|cm|)")
_IMPERIAL = re.compile(
    rf"{_NUMBER}\s*(?:'|′|’|ft\.?|feet|foot)(?:\s*{_NUMBER}\s*(?:\"|″|”|''|in\.?|inch(?:es)?))?"
)
_INCHES = re.compile(_NUMBER + r"\s*(?:\"|″|”|''|in\.?|inch(?:es)?)")


def parse_length_m(text: str) -> float | None:
    """A tagged length in metres; the mean of a range or list; None for what is no positive length.

    >>> [parse_length_m(text) for text in ("7,5 m", "2;3", "~4", "narrow", "-3")]
    [7.5, 2.5, 4.0, None, None]
    >>> round(parse_length_m("10'6\\""), 2)
    3.2
    """
    parts = _BETWEEN.split(_ABOUT.sub("", text.strip().lower(), count=1))
    unit = parts[-1].lstrip("0123456789., ")  # of "20-24 ft", so that both are feet
    bare = re.compile("[0-9.,]+")
    lengths = [_one_length_m(part + unit if bare.fullmatch(part) else part) for part in parts]
    return _mean(lengths)


def parse_lanes(text: str) -> float | None:
    """A number of lanes; the mean of a list; None for what is none.

    >>> [parse_lanes(text) for text in ("2", "2;3", "1.5", "many", "0")]
    [2.0, 2.5, 1.5, None, None]
    """
    found = [re.fullmatch(_NUMBER, part.strip()) for part in text.split(";")]
    lanes = _mean([_number(match[1]) if match else None for match in found])
    return lanes if lanes is not None and lanes <= _MANY_LANES else None


def _one_length_m(text: str) -> float | None:
    if match := _METRIC.fullmatch(text):
        return _number(match[1]) * (0.01 if match[2] == "cm" else 1.0)
    if match := _IMPERIAL.fullmatch(text):
        return _number(match[1]) * 0.3048 + _number(match[2] or "0") * 0.0254
    if match := _INCHES.fullmatch(text):
        return _number(match[1]) * 0.0254
    return None


def _mean(numbers: list[float | None]) -> float | None:
    """The mean if all are there and positive: half of a list is no better than none."""
    sure = [number for number in numbers if number]
    return sum(sure) / len(sure) if len(sure) == len(numbers) else None


def _number(text: str) -> float:
    return float(text.replace(",", "."))


# -- tags that hide ---------------------------------------------------------------------------


def _says(tags: Tags, key: str) -> bool:
    """Whether a tag is there with another value than "no"."""
    return tags.get(key, "no") != "no"


def _underground(tags: Tags) -> bool:
    if tags.get("location") in ("underground", "underwater"):
        return True
    try:
        return float(tags.get("layer", "0").split(";")[0]) < 0
    except ValueError:  # nonsense is not below the ground
        return False
