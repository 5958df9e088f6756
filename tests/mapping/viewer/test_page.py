"""The page as a file: whole, quiet, and deaf to markup. What it does is in test_page_browser.py."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import geopandas
import pytest
import shapely
from orthotrace.mapping.errors import MappingError
from orthotrace.mapping.viewer.page import write_page
from orthotrace.mapping.viewer.report import Table
from orthotrace.mapping.viewer.views import VectorView

FOLDER = Path(__file__).parents[3] / "mapping" / "viewer"
HOSTILE = "</script><script>alert(1)</script><!-- \u2028 & {{told}}"


class Elements(HTMLParser):
    """The elements of a page as a browser sees them: name, attributes, text."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None], str]] = [("", {}, "")]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs), ""))

    def handle_data(self, data: str) -> None:
        tag, attributes, text = self.found.pop()
        self.found.append((tag, attributes, text + data))

    @classmethod
    def of(cls, path: Path) -> list[tuple[str, dict[str, str | None], str]]:
        parser = cls()
        parser.feed(path.read_text(encoding="utf-8"))
        parser.close()
        return parser.found


def view(count: int = 2, name: str = "Buildings", **columns: Any) -> VectorView:
    boxes = [shapely.box(10 + n / 1000, 50, 10.0005 + n / 1000, 50.0005) for n in range(count)]
    features = geopandas.GeoDataFrame(columns, range(count), geometry=boxes, crs=4326)
    return VectorView(name, "map", features, "building", True)


def page(folder: Path, *views: VectorView, **changes: Any) -> Path:
    given: dict[str, Any] = {"title": "Demo", "attribution": "© OpenStreetMap contributors"}
    return write_page(folder / "index.html", rasters=(), vectors=views, **{**given, **changes})


def told(path: Path) -> dict[str, Any]:
    (text,) = (text for tag, attrs, text in Elements.of(path) if attrs.get("id") == "told")
    found: dict[str, Any] = json.loads(text)
    return found


def test_markup_in_any_text_stays_text(tmp_path: Path) -> None:
    table = Table(HOSTILE, ("", HOSTILE), ((HOSTILE, HOSTILE),), HOSTILE)
    path = page(
        tmp_path,
        view(name=HOSTILE, tags=json.dumps({HOSTILE: HOSTILE})),
        title=HOSTILE,
        attribution=HOSTILE,
        tables=[table],
    )
    quiet = page(tmp_path / "quiet", view(), tables=[table])
    shape = [tag for tag, _, _ in Elements.of(path)]
    assert shape == [tag for tag, _, _ in Elements.of(quiet)]
    assert shape.count("script") == 3
    assert told(path)["title"] == HOSTILE
    assert json.loads(told(path)["vectors"][0]["features"]["features"][0]["properties"]["tags"])


def test_nothing_is_loaded(tmp_path: Path) -> None:
    elements = Elements.of(page(tmp_path, view()))
    addresses = [
        (tag, attrs[name])
        for tag, attrs, _ in elements
        for name in ("src", "href", "srcset", "data", "action")
        if name in attrs
    ]
    assert {tag for tag, address in addresses if address != "data:,"} == {"a"}
    (policy,) = (
        str(attrs["content"])
        for _, attrs, _ in elements
        if attrs.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none'")
    assert "http" not in policy and "unsafe" not in policy and "*" not in policy
    style = next(text for tag, _, text in elements if tag == "style")
    assert set(re.findall(r"url\(\s*['\"]?([^:)]*)", style)) == {"data"}
    assert "@import" not in style
    assert "sourceMappingURL" not in page(tmp_path, view()).read_text()


def test_the_scripts_know_no_way_to_make_markup_of_text() -> None:
    for path in FOLDER.glob("*.js"):
        found = re.search(
            r"innerHTML|outerHTML|insertAdjacent|setHTML|document\.write|\beval\b|Function\(",
            path.read_text(),
        )
        assert found is None, f"{path.name}: {found}"


def test_licence_of_the_library_stands_in_the_page(tmp_path: Path) -> None:
    text = page(tmp_path, view()).read_text()
    assert "Redistributions in binary form must reproduce" in text
    assert "MapLibre contributors" in text and "Mapbox" in text


def test_bounds_hold_all_that_is_shown(tmp_path: Path) -> None:
    west, south, east, north = told(page(tmp_path, view(3)))["bounds"]
    assert (west, south, east, north) == pytest.approx((10, 50, 10.0025, 50.0005))


def test_too_many_features_are_cut_and_said(tmp_path: Path) -> None:
    path = page(tmp_path, view(40), view(10), limit=20, rest="demo.gpkg")
    found = told(path)
    assert [len(one["features"]["features"]) for one in found["vectors"]] == [16, 4]
    assert [one["total"] for one in found["vectors"]] == [40, 10]
    assert found["note"].startswith("20 of 50 features") and "demo.gpkg" in found["note"]
    assert told(page(tmp_path, view(40)))["note"] == ""


def test_figures_are_in_words(tmp_path: Path) -> None:
    table = Table("F1", ("", "road"), (("OpenStreetMap", 0.5), ("map", None)))
    assert told(page(tmp_path, view(), tables=[table]))["tables"][0]["rows"] == [
        ["OpenStreetMap", "0.500"],
        ["map", "–"],
    ]


def test_the_same_views_are_the_same_bytes(tmp_path: Path) -> None:
    one, other = (
        page(tmp_path / "a", view(score=[0.5, 0.25])),
        page(tmp_path / "b", view(score=[0.5, 0.25])),
    )
    assert one.read_bytes() == other.read_bytes()


def test_an_empty_class_is_shown_and_an_empty_page_is_refused(tmp_path: Path) -> None:
    assert told(page(tmp_path, view(), view(0)))["vectors"][1]["total"] == 0
    with pytest.raises(MappingError, match="nothing to show"):
        page(tmp_path, view(0))
