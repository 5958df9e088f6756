"""Tag tables and the width of a road."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from orthotrace.tiling.errors import TilingError
from orthotrace.tiling.tags import (
    NOT_ROADS,
    ROAD_WIDTHS_M,
    SHOULDERS_M,
    UNSURE_ROADS,
    WIDTH_RANGE_M,
    check_widths,
    judge_building,
    judge_road,
    parse_lanes,
    parse_length_m,
    road_width_m,
)

LENGTHS = {
    "7": 7.0,
    "7.5": 7.5,
    "7,5 m": 7.5,
    "3.5 m": 3.5,
    "3.5m": 3.5,
    "3.5 metres": 3.5,
    "4 meter": 4.0,
    "350 cm": 3.5,
    ".5": 0.5,
    "12'": 3.6576,
    "12 ft": 3.6576,
    "12 feet": 3.6576,
    "10'6\"": 3.2004,
    "10' 6\"": 3.2004,
    "12'6\"": 3.81,
    "10ft6in": 3.2004,
    "10′6″": 3.2004,
    '120"': 3.048,
    "2;3": 2.5,
    "6-8": 7.0,
    "6 - 8 m": 7.0,
    "6–8 m": 7.0,
    "6 to 8": 7.0,
    "20-24 ft": 6.7056,
    "10' - 12'": 3.3528,
    "~4": 4.0,
    "~ 4 m": 4.0,
    "ca. 4": 4.0,
    "<3": 3.0,
    "  5  ": 5.0,
}
NONSENSE = ["", " ", "narrow", "-3", "-3 m", "0", "0 m", "2;narrow", "2;", "1,234.5", "7.5.2"]
NONSENSE += ["nan", "inf", "1e3", "m", "'", "5 lanes", "5 km", "٣", "yes", "3+", "'6\""]


@pytest.mark.parametrize(("text", "metres"), LENGTHS.items())
def test_lengths(text: str, metres: float) -> None:
    assert parse_length_m(text) == pytest.approx(metres)


@pytest.mark.parametrize("text", NONSENSE)
def test_nonsense_is_no_length(text: str) -> None:
    assert parse_length_m(text) is None


@given(st.text())
def test_any_text_is_a_positive_length_or_none(text: str) -> None:
    length = parse_length_m(text)
    assert length is None or length > 0


@given(st.floats(0.1, 99).map(lambda number: round(number, 2)), st.sampled_from(["", " m", "m"]))
def test_a_written_length_is_read_back(metres: float, unit: str) -> None:
    assert parse_length_m(f"{metres}{unit}") == pytest.approx(metres)
    assert parse_length_m(f"{metres}{unit}".replace(".", ",")) == pytest.approx(metres)


@pytest.mark.parametrize(
    ("text", "lanes"),
    [("2", 2), ("2;3", 2.5), ("1.5", 1.5), (" 4 ", 4), ("many", None), ("0", None)]
    + [("-2", None), ("", None), ("2;", None), ("40", None)],
)
def test_lanes(text: str, lanes: float | None) -> None:
    assert parse_lanes(text) == lanes


@pytest.mark.parametrize(
    ("tags", "widths", "wanted"),
    [
        ({}, {}, ROAD_WIDTHS_M["residential"]),
        ({}, {"default": 7.5}, 7.5),
        ({}, {"default": 7.5, "residential": 6}, 6),
        ({"lanes": "2"}, {"residential": 6}, 7.0),
        ({"lanes": "3", "highway": "motorway"}, {}, 10.5 + SHOULDERS_M["motorway"]),
        ({"width": "5", "lanes": "2"}, {"residential": 6}, 5),
        ({"width": "narrow", "lanes": "2"}, {}, 7.0),
        ({"width": "-4", "lanes": "x"}, {"residential": 6}, 6),
        ({"width:carriageway": "8", "width": "14"}, {}, 8),
        ({"est_width": "4"}, {}, 4),
        ({"width": "1"}, {}, WIDTH_RANGE_M[0]),
        ({"width": "75"}, {}, WIDTH_RANGE_M[1]),
        ({"width": "700"}, {}, ROAD_WIDTHS_M["residential"]),
    ],
)
def test_tagged_width_goes_before_lanes_before_region_before_table(
    tags: dict[str, str], widths: dict[str, float], wanted: float
) -> None:
    assert road_width_m({"highway": "residential", **tags}, widths) == pytest.approx(wanted)


def test_without_tags_only_the_kind_counts() -> None:
    tags = {"highway": "service", "width": "9", "lanes": "4"}
    assert road_width_m(tags, {"service": 5}, use_tags=False) == 5


@pytest.mark.parametrize("kind", ROAD_WIDTHS_M)
def test_every_kind_that_can_be_a_road_has_a_width_in_range(kind: str) -> None:
    assert WIDTH_RANGE_M[0] <= road_width_m({"highway": kind}, {}) <= WIDTH_RANGE_M[1]


def test_no_kind_is_in_two_tables() -> None:
    left_out = [kind for kinds in NOT_ROADS.values() for kind in kinds]
    assert len(left_out) == len(set(left_out))
    assert not set(left_out) & set(ROAD_WIDTHS_M)
    assert set(UNSURE_ROADS) | set(SHOULDERS_M) <= set(ROAD_WIDTHS_M)


@pytest.mark.parametrize(
    ("tags", "label", "reason"),
    [
        ({"highway": "unclassified"}, "yes", ""),
        ({"highway": "motorway_link"}, "yes", ""),
        ({"highway": "residential", "tunnel": "no", "covered": "no"}, "yes", ""),
        ({"highway": "primary", "bridge": "yes", "layer": "-1"}, "yes", ""),
        ({"highway": "primary", "layer": "1"}, "yes", ""),
        ({"highway": "primary", "layer": "low"}, "yes", ""),
        ({"highway": "primary", "tunnel": "yes", "layer": "-1"}, "unknown", "tunnel"),
        ({"highway": "service", "tunnel": "building_passage"}, "unknown", "tunnel"),
        ({"highway": "tertiary", "tunnel": "culvert"}, "unknown", "tunnel"),
        ({"highway": "service", "covered": "yes"}, "unknown", "covered"),
        ({"highway": "service", "indoor": "yes"}, "unknown", "covered"),
        ({"highway": "primary", "layer": "-1"}, "unknown", "underground"),
        ({"highway": "primary", "location": "underground"}, "unknown", "underground"),
        ({"highway": "service", "service": "driveway"}, "unknown", "driveway, aisle or alley"),
        ({"highway": "service", "service": "parking_aisle"}, "unknown", "driveway, aisle or alley"),
        ({"highway": "track"}, "unknown", UNSURE_ROADS["track"]),
        ({"highway": "footway"}, "no", "path"),
        ({"highway": "steps", "tunnel": "yes"}, "no", "path"),
        ({"highway": "proposed"}, "no", "not built"),
        ({"highway": "construction", "construction": "primary"}, "no", "not built"),
        ({"highway": "razed"}, "no", "gone"),
        ({"highway": "corridor"}, "no", "not a way on the ground"),
        ({"highway": "services"}, "no", "stop or area"),
        ({"highway": "yes"}, "no", "other value of highway"),
    ],
)
def test_roads(tags: dict[str, str], label: str, reason: str) -> None:
    verdict = judge_road(tags)
    assert (verdict.label, verdict.reason) == (label, reason)


@pytest.mark.parametrize(
    ("tags", "label", "reason"),
    [
        ({"building": "yes"}, "yes", ""),
        ({"building": "house", "building:part": "yes"}, "yes", ""),
        ({"building": "roof", "layer": "1"}, "yes", ""),
        ({"building": "no"}, "no", "no building"),
        ({"building": "construction"}, "no", "not built"),
        ({"building": "proposed"}, "no", "not built"),
        ({"building": "collapsed"}, "no", "gone"),
        ({"building": "yes", "location": "underground"}, "no", "underground"),
        ({"building": "yes", "layer": "-1"}, "no", "underground"),
        ({"building:part": "yes"}, "no", "part of a building"),
        ({"building": "static_caravan"}, "unknown", "movable"),
        ({"building": "ruins"}, "unknown", "walls without a roof"),
    ],
)
def test_buildings(tags: dict[str, str], label: str, reason: str) -> None:
    verdict = judge_building(tags)
    assert (verdict.label, verdict.reason) == (label, reason)


def test_a_kind_with_a_typo_is_refused_with_the_nearest() -> None:
    with pytest.raises(TilingError, match="'residental' in the widths; wanted residential"):
        check_widths({"residental": 6})
    with pytest.raises(TilingError, match="the width of default is 0 m"):
        check_widths({"default": 0})
