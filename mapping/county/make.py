"""Makes a small county from a seed: imagery, an incomplete OSM extract, and the truth.

It stands for what a region really has: two quads of NAIP-like imagery, flown in two seasons and
delivered in two UTM zones that meet at 78 degrees west; an extract that lacks streets and houses
and lies a few metres aside. Nothing in it exists.

    FOLDER/quads/*.tif         1 m, red, green, blue, near infrared; uint8
    FOLDER/county.osm.pbf
    FOLDER/truth.gpkg          layers roads, buildings, area in EPSG:26918
    FOLDER/boundary.geojson
    FOLDER/README.txt
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import geopandas
import numpy as np
import pyogrio
import shapely

from ...tiling.files import make_folder, written_beside
from ...tiling.grid import transformer
from ..errors import MappingError
from .layout import draw_plan
from .osm import SHIFT_M, SNAPSHOT, write_osm
from .plan import Floats, Plan
from .quads import FLIGHTS, seam_m, write_quad

CRS = "EPSG:26918"
"""UTM zone 18 north: where the county is planned, and the truth's CRS."""

SIZE_M = (2200, 2000)
"""Width and height of the county of the demo."""

_SMALLEST_M = 500
_PLACE = (-78.0, 36.62)
"""Longitude and latitude of the middle of the seam between zones 17 and 18, in Virginia."""


@dataclass(frozen=True, slots=True)
class County:
    """Where the files of a made-up county are."""

    folder: Path
    imagery: tuple[Path, ...]
    """The quads, west to east."""

    osm: Path
    truth: Path
    """GeoPackage: `roads` (class, name, width_m), `buildings` (class), `area` (the county)."""

    boundary: Path
    """GeoJSON: one polygon in WGS84, wholly inside the imagery."""

    crs: str
    """Of truth and of the eastern quad; the grid to map on."""

    bounds: tuple[float, float, float, float]
    """Left, bottom, right and top in `crs`."""


def make_county(folder: Path, seed: int, size_m: tuple[int, int] = SIZE_M) -> County:
    """Make a county in `folder`; the same seed and size, the same bytes.

    Sizes are whole metres, at least 500 each; MappingError otherwise. Files that are there already
    are written anew.
    """
    if min(size_m) < _SMALLEST_M or seed < 0:
        raise MappingError(
            f"a county is at least {_SMALLEST_M} m wide and high and its seed no less than 0, "
            f"got {size_m} and {seed}"
        )
    make_folder(folder)
    # Each step has its own generator: a change of one leaves the others as they were.
    for_plan, for_osm, *for_flights = np.random.default_rng(seed).spawn(2 + len(FLIGHTS))
    plan = draw_plan(size_m, for_plan)
    origin = _origin(size_m)
    imagery = tuple(
        write_quad(folder / "quads", flight, plan, CRS, origin, rng)
        for flight, rng in zip(FLIGHTS, for_flights, strict=True)
    )
    county = County(
        folder=folder,
        imagery=imagery,
        osm=folder / "county.osm.pbf",
        truth=folder / "truth.gpkg",
        boundary=folder / "boundary.geojson",
        crs=CRS,
        bounds=(origin[0], origin[1], origin[0] + size_m[0], origin[1] + size_m[1]),
    )
    with written_beside(county.osm) as part:
        write_osm(part, plan, partial(_to_degrees, origin=origin), for_osm)
    _write_truth(county, plan, origin)
    _write_boundary(county)
    _write_readme(county, plan, seed)
    return county


def _origin(size_m: tuple[int, int]) -> tuple[float, float]:
    """The south-west corner in CRS: whole metres, so that the eastern quad is on the grid."""
    x, y = transformer("EPSG:4326", CRS).transform(*_PLACE)
    return float(round(x) - seam_m(size_m[0])), float(round(y) - size_m[1] // 2)


def _to_degrees(xy_N2: Floats, origin: tuple[float, float]) -> Floats:
    x, y = (xy_N2 + np.array(origin)).T
    return np.stack(transformer(CRS, "EPSG:4326").transform(x, y), axis=1)


# -- vectors and words -------------------------------------------------------------------------


def _write_truth(county: County, plan: Plan, origin: tuple[float, float]) -> None:
    def placed(shapes: list[shapely.Geometry]) -> geopandas.GeoSeries:
        return geopandas.GeoSeries(
            [shapely.transform(shape, lambda xy: xy + origin) for shape in shapes], crs=CRS
        )

    roads = geopandas.GeoDataFrame(
        {
            "class": [road.kind for road in plan.roads],
            "name": [road.street for road in plan.roads],
            "width_m": [road.width_m for road in plan.roads],
        },
        geometry=placed([road.line for road in plan.roads]),
    )
    buildings = geopandas.GeoDataFrame(
        {"class": [building.kind for building in plan.buildings]},
        geometry=placed([building.footprint for building in plan.buildings]),
    )
    area = geopandas.GeoDataFrame(
        {"name": ["county"]}, geometry=geopandas.GeoSeries([shapely.box(*county.bounds)], crs=CRS)
    )
    with written_beside(county.truth) as part, _dated(SNAPSHOT):
        for name, layer in (("roads", roads), ("buildings", buildings), ("area", area)):
            layer.to_file(part, layer=name, driver="GPKG", engine="pyogrio")


@contextmanager
def _dated(date: str) -> Iterator[None]:
    """GeoPackages written inside say that they are of `date`, so that their bytes repeat."""
    pyogrio.set_gdal_config_options({"OGR_CURRENT_DATE": date})
    try:
        yield
    finally:
        pyogrio.set_gdal_config_options({"OGR_CURRENT_DATE": None})


def _write_boundary(county: County) -> None:
    """The county less a few metres: the quads' edges are no whole pixels in the other zone."""
    left, bottom, right, top = county.bounds
    inner = shapely.segmentize(shapely.box(left + 4, bottom + 4, right - 4, top - 4), 200.0)
    degrees = shapely.transform(inner, partial(_to_degrees, origin=(0.0, 0.0)))
    feature = {
        "type": "Feature",
        "properties": {"name": "county"},
        "geometry": json.loads(shapely.to_geojson(shapely.set_precision(degrees, 1e-7))),
    }
    with written_beside(county.boundary) as part:
        part.write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}) + "\n")


def _write_readme(county: County, plan: Plan, seed: int) -> None:
    quads = "\n".join(f"  quads/{path.name}" for path in county.imagery)
    words = f"""A county that does not exist, made by OrthoTrace from the seed {seed}.

It is {plan.size_m[0]} x {plan.size_m[1]} m, with {len(plan.roads)} stretches of road and \
{len(plan.buildings)} buildings.

Imagery, 1 m, red, green, blue and near infrared, in two seasons and two UTM zones:
{quads}
The western quad is turned against its raster, so it has a black collar and no tag that says so;
deep water is black too, and is data.

county.osm.pbf lacks a third of the buildings and a sixth of the roads, and has everything
{SHIFT_M[0]} m east and {-SHIFT_M[1]} m south of where it is.
truth.gpkg has what is really there. boundary.geojson is the area to map.

Anyone may use these files for anything (CC0 1.0).
"""
    with written_beside(county.folder / "README.txt") as part:
        part.write_text(words, encoding="utf-8")
