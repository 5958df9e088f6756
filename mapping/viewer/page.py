"""The map page: one HTML file that holds all it shows, opens from disk and loads nothing.

Whatever comes from data (names in OpenStreetMap, titles, attributions) is text: in the page's JSON
no character can end the script that holds it, the scripts put text into the document as text only,
and the page's own content security policy lets no other script run and no address be read.
"""

import base64
import hashlib
import html
import importlib.util
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ...tiling.files import written_beside
from ..errors import MappingError
from .palette import STYLES, UNKNOWN, class_colours
from .report import Table, words
from .views import RasterView, VectorView, geojson, kept, visible

LIMIT = 50_000
"""Features on one page: what browsers draw without a stutter."""

_SCRIPTS = ("page_views.js", "page_popup.js", "page_swipe.js", "page.js")
"""They share one scope, in this order."""

_PLACE = re.compile(r"\{\{(\w+)\}\}")
_RISKY = re.compile("[<>&\u2028\u2029]")
"""What could end a script element, start a comment, or break a line, inside JSON in HTML."""


def write_page(
    path: Path,
    *,
    title: str,
    rasters: Sequence[RasterView],
    vectors: Sequence[VectorView],
    attribution: str,
    tables: Sequence[Table] = (),
    rest: str = "the GeoPackage beside this page",
    limit: int = LIMIT,
) -> Path:
    """Write the page to `path`; the same views, the same bytes.

    Of the views of a group the first lies on top. `tables` are the figures that the page shows.
    Above `limit` features it keeps the surest and longest, says so, and names `rest` as the place
    of all. MappingError where there is nothing to show.
    """
    told = _told(title, rasters, vectors, tables, rest, limit)
    style = _library("maplibre-gl.css") + _own("page.css")
    library = _library("maplibre-gl.js")
    script = "\n".join(['(() => {\n"use strict";', *map(_own, _SCRIPTS), "})();\n"])
    page = _filled(
        _own("page.html"),
        {
            "title": html.escape(title),
            "attribution": html.escape(attribution),
            "style": style,
            "library": library,
            "script": script,
            "policy": _policy(style, library, script),
            "told": _json(told),
        },
    )
    with written_beside(path) as part:
        part.write_text(page, encoding="utf-8")
    return path


# -- what the page is told ---------------------------------------------------------------------


def _told(
    title: str,
    rasters: Sequence[RasterView],
    vectors: Sequence[VectorView],
    tables: Sequence[Table],
    rest: str,
    limit: int,
) -> dict[str, Any]:
    drawn = [geojson(features) for features in kept(vectors, limit)]
    total = sum(len(view.features) for view in vectors)
    count = sum(len(features["features"]) for features in drawn)
    cut = f"{count:,} of {total:,} features are on this page, the surest first. All are in {rest}."
    return {
        "title": title,
        "bounds": _bounds(title, rasters, vectors),
        "rasters": [_raster(number, view) for number, view in enumerate(rasters)],
        "vectors": [
            {
                "id": f"vector{number}",
                "name": view.name,
                "group": view.group,
                "shown": view.shown,
                "total": len(view.features),
                "style": asdict(STYLES[view.style]),
                "features": features,
            }
            for number, (view, features) in enumerate(zip(vectors, drawn, strict=True))
        ],
        "tables": [_table(table) for table in tables],
        "unknown": UNKNOWN,
        "note": cut if total > limit else "",
    }


def _raster(number: int, view: RasterView) -> dict[str, Any]:
    image = base64.b64encode(view.image).decode()
    return {
        "id": f"raster{number}",
        "name": view.name,
        "group": view.kind,
        "kind": view.kind,
        "shown": view.shown,
        "opacity": view.opacity,
        "corners": view.corners,
        "classes": list(zip(view.classes, class_colours(view.classes), strict=True)),
        "image": f"data:{view.media_type};base64,{image}",
    }


def _table(table: Table) -> dict[str, Any]:
    """The table with its facts in words."""
    rows = [[words(fact) for fact in row] for row in table.rows]
    return {"title": table.title, "columns": table.columns, "rows": rows, "note": table.note}


def _bounds(
    title: str, rasters: Sequence[RasterView], vectors: Sequence[VectorView]
) -> list[float]:
    """West, south, east and north of all that is shown."""
    boxes = [
        (view.corners[0][0], view.corners[2][1], view.corners[2][0], view.corners[0][1])
        for view in rasters
    ]
    placed = [features for view in vectors if len(features := visible(view.features))]
    boxes += [
        tuple(features.geometry.to_crs("EPSG:4326").total_bounds.tolist()) for features in placed
    ]
    if not boxes:
        raise MappingError(f"the page {title!r} has nothing to show: no raster and no feature")
    west, south, east, north = zip(*boxes, strict=True)
    return [min(west), min(south), max(east), max(north)]


# -- putting the file together -----------------------------------------------------------------


def _own(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


def _library(name: str) -> str:
    """A file of MapLibre GL JS, as the package `maplibre` carries it, without its source map."""
    found = importlib.util.find_spec("maplibre")
    for folder in (found.submodule_search_locations or ()) if found else ():
        path = Path(folder) / "srcjs" / name
        if path.is_file():
            lines = path.read_text(encoding="utf-8").splitlines()
            return "\n".join(line for line in lines if "sourceMappingURL" not in line) + "\n"
    raise MappingError(
        f"srcjs/{name} was not found in the Python package maplibre; wanted maplibre 0.3.5 or newer"
    )


def _json(told: Mapping[str, Any]) -> str:
    """JSON that can stand in a script element whatever its strings hold.

    >>> _json({"name": "</script>"})
    '{"name":"\\\\u003c/script\\\\u003e"}'
    """
    plain = json.dumps(told, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return _RISKY.sub(lambda found: f"\\u{ord(found[0]):04x}", plain)


def _policy(style: str, library: str, script: str) -> str:
    """A content security policy that lets these very texts run, and nothing be fetched."""
    ours = " ".join(_digest(text) for text in (library, script))
    return (
        f"default-src 'none'; script-src {ours}; style-src {_digest(style)}; "
        "worker-src blob:; img-src data: blob:; connect-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _filled(template: str, parts: Mapping[str, str]) -> str:
    """The template with `{{name}}` replaced once; what was put in is not looked at again.

    >>> _filled("<b>{{one}}</b>{{two}}", {"one": "{{two}}", "two": "2"})
    '<b>{{two}}</b>2'
    """
    return _PLACE.sub(lambda found: parts[found[1]], template)
