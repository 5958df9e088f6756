import io
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from orthotrace.mapping.errors import MappingError
from orthotrace.mapping.scoring.compare import Comparison
from orthotrace.mapping.viewer.views import VectorView, comparison_views, geojson, kept, raster_view
from orthotrace.tiling.grid import Cell, Grid, Window
from orthotrace.tiling.layer import Layer, Pixels
from PIL import Image
from pyproj import Transformer

GRID = Grid("EPSG:32618", (1.0, 1.0), cell=256, tile=16)
CELL = Cell(-4000000 // 256, 300000 // 256)
WINDOW = GRID.window(CELL)


def frame(shapes: list[Any], crs: str | None = "EPSG:4326", **columns: Any) -> Any:
    return geopandas.GeoDataFrame(columns, range(len(shapes)), geometry=shapes, crs=crs)


def labels_with_a_mark(folder: Path, row: int, col: int) -> Layer:
    """Labels that are 0 but for a square of 9 pixels round a place."""
    data_CHW = np.zeros((1, 256, 256), np.uint8)
    data_CHW[0, row - 4 : row + 5, col - 4 : col + 5] = 1
    made = Layer(folder, GRID, ("building",), nodata=255).save()
    made.write(CELL, Pixels(data_CHW, np.ones((256, 256), bool)))
    return made


@pytest.mark.parametrize(("row", "col"), [(10, 10), (10, 240), (128, 128), (240, 30)])
def test_a_mark_stands_where_it_is_on_the_ground(tmp_path: Path, row: int, col: int) -> None:
    """The zone's north is turned by about 1.5 degrees here: without a warp it is off by 6 m."""
    view = raster_view(labels_with_a_mark(tmp_path, row, col), WINDOW, "L", "labels")
    alpha_HW = np.asarray(Image.open(io.BytesIO(view.image)))[..., 3]
    rows, cols = np.nonzero(alpha_HW)
    down = (rows.mean() + 0.5) / alpha_HW.shape[0]
    across = (cols.mean() + 0.5) / alpha_HW.shape[1]
    to_mercator = Transformer.from_crs("EPSG:4326", "EPSG:3857", always_xy=True)
    (left, top), _, (right, bottom), _ = (to_mercator.transform(*c) for c in view.corners)
    at = GRID.transform(WINDOW)
    expected = Transformer.from_crs(GRID.crs, "EPSG:3857", always_xy=True).transform(
        at.c + col + 0.5, at.f - row - 0.5
    )
    found = left + across * (right - left), top + down * (bottom - top)
    assert np.hypot(*np.subtract(found, expected)) < 1.0


def test_imagery_is_webp_labels_are_exact(tmp_path: Path) -> None:
    labels = raster_view(labels_with_a_mark(tmp_path / "l", 99, 99), WINDOW, "L", "labels")
    assert labels.media_type == "image/png"
    assert labels.classes == ("building",)
    imagery = Layer(tmp_path / "i", GRID, ("red", "green", "blue")).save()
    view = raster_view(imagery, WINDOW, "I", "imagery", max_side=64)
    assert view.media_type == "image/webp"
    alpha_HW = np.asarray(Image.open(io.BytesIO(view.image)).convert("RGBA"))[..., 3]
    assert max(alpha_HW.shape) == 64 and not alpha_HW.any()


def test_features_become_longitude_and_latitude_with_plain_properties() -> None:
    shapes = [shapely.box(300000, 4000000, 300010, 4000010), None, shapely.Polygon()]
    told = geojson(
        frame(shapes, "EPSG:32618", score=[np.float32(0.98765), 1, 1], n=[1, 2, 3], osm=None)
    )
    (only,) = told["features"]
    assert only["properties"] == {"score": 0.988, "n": 1}
    lon, lat = only["geometry"]["coordinates"][0][0]
    assert (lon, lat) == (pytest.approx(-77.21, abs=0.02), pytest.approx(36.12, abs=0.02))
    assert lon == round(lon, 6)


@given(st.lists(st.floats(0, 1) | st.none(), min_size=1, max_size=30), st.integers(1, 40))
def test_the_surest_are_kept_in_their_order(scores: list[float | None], limit: int) -> None:
    points = [shapely.LineString([(0, n), (1, n)]) for n in range(len(scores))]
    view = VectorView("v", "map", frame(points, score=np.array(scores, float)), "road")
    (found,) = kept([view], limit)
    assert len(found) == min(limit, len(scores))
    assert found.index.is_monotonic_increasing
    left_out = set(view.features.index) - set(found.index)
    assert all(
        (scores[out] if scores[out] is not None else -1)
        <= (scores[stays] if scores[stays] is not None else -1)
        for out in left_out
        for stays in found.index
    )


def test_answers_of_a_comparison_become_views() -> None:
    lines = [shapely.LineString([(0, n), (1, n)]) for n in range(4)]
    comparison = Comparison(
        roads=frame(lines, osm=["same", "new", "same", "unknown"]),
        buildings=frame([], osm=[]),
        osm_roads=frame(lines, map=["same", "missing", "not looked at", "unknown"]),
        osm_buildings=frame([shapely.box(0, 0, 1, 1)], map=["missing"]),
    )
    assert [
        (view.name, view.style, len(view.features)) for view in comparison_views(comparison)
    ] == [
        ("New roads", "new", 1),
        ("Missing roads", "missing", 1),
        ("Missing buildings", "missing", 1),
        ("Same roads", "same", 2),
    ]


def test_no_crs_and_no_style_are_refused() -> None:
    line = [shapely.LineString([(0, 0), (1, 1)])]
    with pytest.raises(MappingError, match="no CRS"):
        VectorView("v", "map", frame(line, None), "road")
    with pytest.raises(MappingError, match="wanted one of road"):
        VectorView("v", "map", frame(line), "pink")


def test_the_same_window_is_the_same_bytes(tmp_path: Path) -> None:
    layer = labels_with_a_mark(tmp_path, 50, 60)
    part = Window(WINDOW.top, WINDOW.left, WINDOW.top + 100, WINDOW.left + 90)
    assert (
        raster_view(layer, part, "L", "labels").image
        == raster_view(layer, part, "L", "labels").image
    )
