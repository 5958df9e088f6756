"""The stages that fill layers, on a made place of 200 m x 200 m."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import geopandas as gpd
import numpy as np
import pytest
import rasterio
from orthotrace.mapping import rasters
from orthotrace.mapping.prediction.windows import all_seen
from orthotrace.mapping.progress import Silent
from orthotrace.mapping.region import read_region
from orthotrace.mapping.session import Session, Settings
from orthotrace.mapping.site import Site, resolve
from orthotrace.mapping.tracing.trace import TraceRecipe, view_of
from orthotrace.tiling.coverage import Coverage, Record
from orthotrace.tiling.grid import Cell, Grid, Window
from orthotrace.tiling.layer import Layer
from orthotrace.tiling.osm import Extract, read_osm
from orthotrace.tiling.runner import run_here
from shapely import LineString, Polygon

UTM = "EPSG:32618"
WEST, NORTH = 500_000.0, 4_000_000.0
BOX = (WEST + 40, NORTH - 160, WEST + 160, NORTH - 40)
"""The boundary."""

REGION = """
name = "place"

[sources]
imagery = ["imagery"]
{osm}

[boundary]
bbox = {box}
crs = "EPSG:32618"

[grid]
cell = 256
tile = 128

[labels]
guard_m = 0.0

[recipe]
crop = 64
"""


class Heard(Silent):
    """Keeps what is said."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        self.lines.append(line)


@pytest.fixture
def place(tmp_path: Path) -> Callable[..., Site]:
    """Resolves the place, with one road 2 m north of its boundary, and images of so many bands."""
    road = LineString([(WEST, NORTH - 38), (WEST + 200, NORTH - 38)])
    frame = gpd.GeoDataFrame({"highway": ["residential"]}, geometry=[road], crs=UTM)
    frame.to_crs("EPSG:4326").to_file(tmp_path / "osm.geojson")

    def made(bands: tuple[int, ...] = (3,), osm: str = 'osm = "osm.geojson"') -> Site:
        (tmp_path / "imagery").mkdir(exist_ok=True)
        for number, count in enumerate(bands):
            image(tmp_path / "imagery" / f"{number}.tif", count)
        region = tmp_path / "place.toml"
        region.write_text(REGION.format(osm=osm, box=list(BOX)))
        return resolve(read_region(region), tmp_path / "data")

    return made


def image(path: Path, count: int) -> None:
    told = {"count": count, "height": 200, "width": 200, "dtype": "uint8", "crs": UTM}
    at = rasterio.Affine(1, 0, WEST, 0, -1, NORTH)
    with rasterio.open(path, "w", "GTiff", transform=at, photometric="RGB", **told) as file:
        file.write(np.random.default_rng(0).integers(1, 255, (count, 200, 200), np.uint8))


def session() -> Session:
    return Session(Settings(), run_here, Heard())


def heard(told: Session) -> list[str]:
    assert isinstance(told.progress, Heard)
    return told.progress.lines


# -- imagery -------------------------------------------------------------------------------


def test_a_band_that_is_left_out_is_said(place: Callable[..., Site]) -> None:
    told = session()
    rasters.tile(place((4, 3, 4)), 0, told)
    (line,) = heard(told)
    assert line.startswith("the band nir is left out: 1 of 3 scenes lack it, such as ")
    assert line.endswith("1.tif")


def test_nothing_is_said_of_bands_that_all_have(place: Callable[..., Site]) -> None:
    told = session()
    rasters.tile(place((4, 4)), 0, told)
    assert heard(told) == []


# -- labels --------------------------------------------------------------------------------


def test_a_road_outside_the_boundary_that_reaches_in_is_drawn(place: Callable[..., Site]) -> None:
    """Its line is 2 m beyond, its surface 3.5 m to each side."""
    site, told = place(), session()
    rasters.tile(site, 0, told)
    rasters.label(site, 0, told)
    window = site.grid.covering(BOX)
    road_HW = site.labels(0).read(window).data_CHW[0]
    rows = np.flatnonzero((road_HW == 1).all(axis=1))
    assert rows.tolist() in ([0], [0, 1])
    assert (road_HW[2:] == 0).all()


def test_a_server_is_asked_for_what_reaches_in_too(
    place: Callable[..., Site], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Polygon] = []

    def answer(area: Polygon, **_: Any) -> Extract:
        asked.append(area)
        return read_osm(tmp_path / "osm.geojson")

    monkeypatch.setattr(rasters, "read_overpass", answer)
    site = place(osm='overpass = "yes"')
    rasters.import_osm(site, session())
    (area,) = gpd.GeoSeries(asked, crs="EPSG:4326").to_crs(UTM)
    assert area.contains(site.boundary.buffer(90))
    assert area.area < site.boundary.buffer(200).area


# -- what reaches over cells ---------------------------------------------------------------


def test_views_and_traces_depend_on_cells_two_away(place: Callable[..., Site]) -> None:
    """Windows of 512 px with a margin of 64 reach 320 px out of a cell of 256 px."""
    seen = all_seen(Window(0, 0, 256, 256), 512, 64)
    assert seen == Window(-64, -64, 576, 576)
    site = place()
    coverage = Coverage(site.folder, site.grid)
    before = coverage.fingerprint_over("imagery", seen)
    coverage.add(Record("imagery", Cell(3, 0).name, "done", "far"))
    assert coverage.fingerprint_over("imagery", seen) == before
    coverage.add(Record("imagery", Cell(2, 2).name, "done", "near"))
    assert coverage.fingerprint_over("imagery", seen) != before


def test_all_that_is_traced_with_counts(place: Callable[..., Site]) -> None:
    """At 0.15 m the 100 m around a road are 667 px: more than a cell of 512 px."""
    grid = Grid(UTM, (0.15, 0.15), cell=512)
    scores = Layer(place().folder / "scores", grid, ("road",), nodata=255)
    cell = Cell(-52_084, 6_510)
    view = view_of(scores, cell, TraceRecipe())
    assert view == grid.window(cell).grown(667)
    assert {near.row - cell.row for near in grid.cells(view)} == {-2, -1, 0, 1, 2}
