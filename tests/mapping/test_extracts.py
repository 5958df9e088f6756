"""Real extracts of every form through `label`: what is drawn is as large as what OSM has there."""

from pathlib import Path

import geopandas as gpd
import numpy as np
import pytest
import rasterio
import shapely
from numpy.typing import NDArray
from orthotrace.mapping.progress import Silent
from orthotrace.mapping.session import Settings
from orthotrace.mapping.stages import run_to
from orthotrace.tiling.layer import Layer
from orthotrace.tiling.osm import read_osm
from orthotrace.tiling.tags import ROAD_WIDTHS_M
from rasterio.transform import from_origin

SIDE_m, PIXEL_m, ROAD_m = 600, 0.5, 6.0

REGION = """
[sources]
imagery = ["scene.tif"]
osm = "{osm}"

[grid]
cell = 1024
tile = 256

[labels]
widths = {{ {widths} }}
width_tags = false
guard_m = 0.0

[refine]
rounds = 0
"""

WIDTHS = ", ".join(f"{kind} = {ROAD_m}" for kind in ROAD_WIDTHS_M)

EXTRACTS = (
    "Helsinki.osm.pbf",
    "graphhopper/beatty.osm",
    "graphhopper/monaco.osm.gz",
    "osm2pgsql/liechtenstein-2013-08-03.osm.pbf",
    "osmnx/West-Oakland.osm.bz2",
    "osm-binary/sample.pbf",
    "swellendam.gpkg",
)


@pytest.mark.real
@pytest.mark.parametrize("name", EXTRACTS)
def test_labels_are_as_large_as_what_osm_has(real_data: Path, tmp_path: Path, name: str) -> None:
    path = real_data / "osm" / name
    extract = read_osm(path)
    square = write_scene(tmp_path / "scene.tif", extract.roads)
    (tmp_path / "place.toml").write_text(REGION.format(osm=path, widths=WIDTHS))
    run_to("label", tmp_path / "place.toml", tmp_path / "data", Settings(), Silent())

    layer = Layer.open(tmp_path / "data" / "place" / "labels-g0")
    road_HW, building_HW = layer.read(layer.grid.covering(square.bounds)).data_CHW
    crs = layer.grid.crs
    roads, buildings = (
        frame[frame["label"] == "yes"].to_crs(crs).geometry
        for frame in (extract.roads, extract.buildings)
    )
    drawn = roads.where(roads.area > 0, roads.buffer(ROAD_m / 2, cap_style="flat"))
    check(road_HW, drawn, square)
    check(building_HW, buildings, square)


def check(labels_HW: NDArray[np.uint8], areas: gpd.GeoSeries, square: shapely.Polygon) -> None:
    """The area that is drawn is that of the polygons, but for pixels on their edges."""
    near = areas[areas.intersects(square)]
    wanted_m2 = near.make_valid().union_all().intersection(square).area
    drawn_m2 = (labels_HW == 1).sum() * PIXEL_m**2
    assert drawn_m2 == pytest.approx(wanted_m2, rel=0.02, abs=5)


def write_scene(path: Path, roads: gpd.GeoDataFrame) -> shapely.Polygon:
    """An image of a square in the middle of all roads, in metres; its outline."""
    crs = roads.estimate_utm_crs()
    middle = roads.to_crs(crs).centroid
    left, top = (round(float(np.median(along)) - SIDE_m / 2) for along in (middle.x, middle.y))
    top += SIDE_m
    pixels = round(SIDE_m / PIXEL_m)
    profile = {"driver": "GTiff", "width": pixels, "height": pixels, "count": 3, "dtype": "uint8"}
    transform = from_origin(left, top, PIXEL_m, PIXEL_m)
    with rasterio.open(path, "w", crs=crs, transform=transform, **profile) as target:
        target.write(np.random.default_rng(0).integers(1, 255, (3, pixels, pixels), np.uint8))
    return shapely.box(left, top - SIDE_m, left + SIDE_m, top)
