"""The multipolygon reader against the public test cases of OSM's own community.

A case names one or more forms of an answer: "default", and for broken data what a reader may
make of it ("fix", "location"). INVALID stands for no area.
"""

import json
from pathlib import Path
from typing import Any

import pytest
import shapely
from orthotrace.tiling.elements import elements


def cases(folder: Path) -> list[Path]:
    return sorted(folder.glob("osm/osm-testdata/grid/data/*/*/test.json"))


def found_in(folder: Path) -> dict[tuple[str, int], tuple[dict[str, str], Any]]:
    told = {}
    for element in elements(folder / "data.osm"):
        if element.area and element.geometry is not None:
            kind, number = element.osm_id.split("/")
            told[kind, int(number)] = element.tags, element.geometry
    return told


def agrees(expected: dict[str, Any], found: tuple[dict[str, str], Any] | None) -> bool:
    if expected["wkt"] == "INVALID" or found is None:
        return expected["wkt"] == "INVALID" and found is None
    tags, geometry = found
    same = geometry.equals(shapely.from_wkt(expected["wkt"]))
    return same and tags.items() >= expected.get("tags", {}).items()


@pytest.mark.real
def test_every_case_is_right_in_one_of_its_forms(real_data: Path) -> None:
    paths = cases(real_data)
    assert len(paths) == 108
    wrong: dict[int, list[str]] = {}
    seen = 0
    for path in paths:
        case = json.loads(path.read_text())
        found = found_in(path.parent)
        assert all(geometry.is_valid for _, geometry in found.values())
        forms: dict[tuple[str, int], list[Any]] = {}
        for areas_of_form in case.get("areas", {}).values():
            for area in areas_of_form:
                forms.setdefault((area["from_type"], area["from_id"]), []).append(area)
        for key, expected in forms.items():
            seen += 1
            if not any(agrees(area, found.get(key)) for area in expected):
                wrong.setdefault(case["test_id"], []).append(f"{key}: {found.get(key)}")
    assert seen >= 80
    assert wrong == {}


@pytest.mark.real
def test_valid_data_has_but_one_form(real_data: Path) -> None:
    for path in cases(real_data):
        listed = json.loads(path.read_text()).get("areas", {})
        if (path.parent / "result").read_text().strip() == "valid" and listed:
            found = found_in(path.parent)
            for area in listed["default"]:
                key = area["from_type"], area["from_id"]
                assert agrees(area, found.get(key)), (path, found.get(key))
