"""The made-up county: the same bytes from a seed, and everything in it that the demo is to show."""

import hashlib
import json
from pathlib import Path

import geopandas
import numpy as np
import osmium
import pyproj
import pytest
import rasterio
import shapely
from numpy.typing import NDArray
from orthotrace.mapping.county.canvas import Canvas, smooth_noise
from orthotrace.mapping.county.land import Land
from orthotrace.mapping.county.light import Light, lit
from orthotrace.mapping.county.make import County, make_county
from orthotrace.mapping.county.osm import SHIFT_M
from orthotrace.mapping.county.paint import Painting
from orthotrace.mapping.county.plan import Frame, Wing, one_polygon
from orthotrace.mapping.errors import MappingError

SMALL = (700, 620)


@pytest.fixture(scope="module")
def county(tmp_path_factory: pytest.TempPathFactory) -> County:
    return make_county(tmp_path_factory.mktemp("county"), seed=7, size_m=SMALL)


@pytest.fixture(scope="module")
def osm(county: County) -> geopandas.GeoDataFrame:
    """Ways and areas of the extract with their tags, in the truth's CRS."""
    form = osmium.geom.WKBFactory()
    shapes: list[str] = []
    tags: list[dict[str, str]] = []
    for thing in osmium.FileProcessor(str(county.osm)).with_areas():
        if isinstance(thing, osmium.osm.Way):
            shapes.append(form.create_linestring(thing))
        elif isinstance(thing, osmium.osm.Area):
            shapes.append(form.create_multipolygon(thing))
        else:
            continue
        tags.append(dict(thing.tags))
    frame = geopandas.GeoDataFrame(
        {"tags": tags}, geometry=shapely.from_wkb(shapes), crs="EPSG:4326"
    )
    return frame.to_crs(county.crs)


def digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def truth(county: County, layer: str) -> geopandas.GeoDataFrame:
    return geopandas.read_file(county.truth, layer=layer)


def tagged(osm: geopandas.GeoDataFrame, key: str) -> geopandas.GeoDataFrame:
    return osm[[key in tags for tags in osm.tags]]


def mapped_buildings(osm: geopandas.GeoDataFrame) -> geopandas.GeoDataFrame:
    """Those a reader must take: as areas (each closed way is a line too), above ground."""
    areas = tagged(osm, "building")
    areas = areas[areas.geom_type.isin(["Polygon", "MultiPolygon"])]
    real = [t["building"] != "no" and "location" not in t for t in areas.tags]
    return areas[real]


# -- seeds -------------------------------------------------------------------------------------


def test_same_seed_same_bytes(county: County, tmp_path: Path) -> None:
    again = make_county(tmp_path, seed=7, size_m=SMALL)
    assert digests(again.folder) == digests(county.folder)


def test_another_seed_is_another_county(county: County, tmp_path: Path) -> None:
    other = make_county(tmp_path, seed=8, size_m=SMALL)
    one, two = digests(county.folder), digests(other.folder)
    assert one.keys() == two.keys()
    same = {name for name in one if one[name] == two[name]}
    assert same == {"boundary.geojson"}
    assert len(truth(other, "buildings")) > 40


@pytest.mark.parametrize(("seed", "size_m"), [(1, (300, 900)), (-1, SMALL)])
def test_what_cannot_be_made_is_said(tmp_path: Path, seed: int, size_m: tuple[int, int]) -> None:
    with pytest.raises(MappingError, match="at least 500 m"):
        make_county(tmp_path / "county", seed, size_m)
    assert not (tmp_path / "county").exists()


# -- imagery -----------------------------------------------------------------------------------


def test_quads_are_of_two_zones_and_two_dates(county: County) -> None:
    crs = []
    for path in county.imagery:
        with rasterio.open(path) as quad:
            crs.append(quad.crs.to_string())
            assert quad.dtypes == ("uint8",) * 4
            assert quad.res == (1.0, 1.0)
            assert quad.nodata is None
            assert quad.colorinterp[3] is rasterio.enums.ColorInterp.undefined
            assert quad.profile["tiled"]
    assert crs == ["EPSG:26917", "EPSG:26918"]
    assert len({path.stem[-8:] for path in county.imagery}) == 2


def test_quads_overlap_and_cover_the_boundary(county: County) -> None:
    west, east = (flown(path, county.crs) for path in county.imagery)
    left, _, right, _ = west.intersection(east).bounds
    assert right - left > 100
    (feature,) = json.loads(county.boundary.read_text())["features"]
    boundary = geopandas.GeoSeries(
        [shapely.from_geojson(json.dumps(feature["geometry"]))], crs="EPSG:4326"
    ).to_crs(county.crs)[0]
    assert west.union(east).buffer(1.5).contains(boundary)


def flown(path: Path, crs: str) -> shapely.Polygon:
    """What a quad shows: the hull of its pixels that are not 0 in every band."""
    with rasterio.open(path) as quad:
        seen = quad.read().any(axis=0)
        rows = np.repeat(np.flatnonzero(seen.any(axis=1)), 2)
        first, last = seen.argmax(axis=1), seen.shape[1] - 1 - seen[:, ::-1].argmax(axis=1)
        cols = np.stack([first, last], axis=1)[rows[::2]].ravel()
        x, y = quad.xy(rows, cols)
        hull = shapely.convex_hull(shapely.multipoints(np.stack([x, y], axis=1)))
        placed = geopandas.GeoSeries([hull], crs=quad.crs).to_crs(crs)[0]
    return one_polygon(placed)


def test_the_western_quad_has_a_black_collar_and_the_eastern_has_none(county: County) -> None:
    shares = []
    for path in county.imagery:
        with rasterio.open(path) as quad:
            black = ~quad.read().any(axis=0)
        shares.append(black.mean())
        corners = black[[0, 0, -1, -1], [0, -1, 0, -1]]
        assert corners.all() if path == county.imagery[0] else not corners.any()
    assert 0.04 < shares[0] < 0.3
    assert shares[1] < 0.02


def test_deep_water_is_black_and_is_data(county: County) -> None:
    """Black pixels inside what was flown, away from the collar."""
    inner = 0
    for path in county.imagery:
        inside = flown(path, county.crs).buffer(-20)
        with rasterio.open(path) as quad:
            rows, cols = np.nonzero(~quad.read().any(axis=0))
            rows, cols = rows[::3], cols[::3]
            x, y = quad.xy(rows, cols)
            to_grid = pyproj.Transformer.from_crs(quad.crs, county.crs, always_xy=True)
        inner += int(shapely.contains_xy(inside, *to_grid.transform(x, y)).sum())
    assert inner > 5


def test_infrared_is_bright_on_lawns_and_dark_on_roads(county: County) -> None:
    roads, buildings = truth(county, "roads"), truth(county, "buildings")
    paved = shapely.union_all(roads.buffer(roads.width_m / 2 - 1.5))
    open_land = shapely.box(*county.bounds).difference(paved.buffer(8))
    open_land = open_land.difference(shapely.union_all(buildings.buffer(4)))
    with rasterio.open(county.imagery[1]) as quad:
        red, _, _, nir = quad.read().astype(float)
        index = (nir - red) / (nir + red + 1)
        on_road = rasterio.features.geometry_mask([paved], quad.shape, quad.transform, invert=True)
        on_land = rasterio.features.geometry_mask(
            [open_land], quad.shape, quad.transform, invert=True
        )
    assert np.median(index[on_land]) > np.median(index[on_road]) + 0.15


# -- truth -------------------------------------------------------------------------------------


def test_truth_is_valid_and_nothing_overlaps(county: County) -> None:
    roads, buildings = truth(county, "roads"), truth(county, "buildings")
    assert roads.crs == buildings.crs == county.crs
    assert buildings.is_valid.all() and roads.is_valid.all()
    assert (buildings.area > 12).all() and (roads.length > 0.5).all()
    assert set(buildings.geom_type) == {"Polygon"} and set(roads.geom_type) == {"LineString"}
    assert shapely.box(*county.bounds).contains(shapely.union_all(buildings.geometry))
    left, right = buildings.sindex.query(buildings.geometry, predicate="intersects")
    apart = left < right
    shared = buildings.geometry.values[left[apart]].intersection(
        buildings.geometry.values[right[apart]]
    )
    assert shapely.area(shared).max(initial=0.0) < 1e-6


def test_no_building_stands_on_a_road(county: County) -> None:
    roads, buildings = truth(county, "roads"), truth(county, "buildings")
    roads = roads[~roads["class"].isin(["service", "parking_aisle"])]
    paved = shapely.union_all(roads.buffer(roads.width_m / 2))
    assert buildings.intersection(paved).area.max() < 1e-6


def test_terraces_share_their_walls(county: County) -> None:
    terraces = truth(county, "buildings").query("`class` == 'terrace'")
    left, right = terraces.sindex.query(terraces.geometry, predicate="touches")
    pairs = left < right
    walls = terraces.geometry.values[left[pairs]].intersection(
        terraces.geometry.values[right[pairs]]
    )
    assert len(walls) > 10
    assert shapely.length(walls).min() > 8


# -- OSM ---------------------------------------------------------------------------------------


def test_osm_misses_a_third_of_the_buildings_by_whole_streets(
    county: County, osm: geopandas.GeoDataFrame
) -> None:
    buildings, mapped = truth(county, "buildings"), mapped_buildings(osm)
    missing = 1 - len(mapped) / len(buildings)
    assert 0.28 < missing < 0.40
    # Clustered: next to a missing house another one is missing more often than elsewhere.
    gone = is_missing(buildings, mapped)
    near = buildings.sindex.query(buildings.geometry, predicate="dwithin", distance=25)
    one, other = near[:, near[0] != near[1]]
    assert gone[other][gone[one]].mean() > gone.mean() + 0.1


def is_missing(
    buildings: geopandas.GeoDataFrame, mapped: geopandas.GeoDataFrame
) -> NDArray[np.bool_]:
    back = mapped.geometry.translate(-SHIFT_M[0], -SHIFT_M[1])
    hit = back.sindex.query(buildings.representative_point(), predicate="dwithin", distance=1.5)
    gone = np.ones(len(buildings), bool)
    gone[hit[0]] = False
    return gone


def test_osm_misses_a_sixth_of_the_roads_and_no_large_one(
    county: County, osm: geopandas.GeoDataFrame
) -> None:
    roads = truth(county, "roads")
    ways = tagged(osm, "highway")
    ways = ways[ways.geom_type == "LineString"]
    kinds = np.array([tags["highway"] for tags in ways.tags])
    is_road = ~np.isin(kinds, ["footway", "proposed"]) & ["tunnel" not in t for t in ways.tags]
    missing = 1 - ways[is_road].length.sum() / roads.length.sum()
    assert 0.08 < missing < 0.22
    for kind in ("primary", "secondary"):
        found = ways[kinds == kind].length.sum()
        assert found == pytest.approx(roads[roads["class"] == kind].length.sum(), rel=0.02)


def test_osm_lies_aside(county: County, osm: geopandas.GeoDataFrame) -> None:
    buildings, mapped = truth(county, "buildings"), mapped_buildings(osm)
    back = mapped.geometry.translate(-SHIFT_M[0], -SHIFT_M[1])
    here, there = buildings.sindex.nearest(back.representative_point(), return_all=False)
    # Same area: the same building.
    same = np.isclose(
        mapped.geometry.values[here].area, buildings.geometry.values[there].area, rtol=1e-3
    )
    assert same.mean() > 0.9
    one, other = mapped.geometry.values[here][same], buildings.geometry.values[there][same]
    aside = np.stack([one.centroid.x - other.centroid.x, one.centroid.y - other.centroid.y])
    assert np.median(aside, axis=1) == pytest.approx(SHIFT_M, abs=0.35)
    assert 0.2 < aside.std() / np.sqrt(2) < 3


def test_osm_has_awkward_names_and_what_must_be_left_out(osm: geopandas.GeoDataFrame) -> None:
    tags = list(osm.tags)
    assert any("<" in told.get("name", "") for told in tags)
    assert any(told.get("tunnel") == "yes" for told in tags)
    assert any(told.get("highway") == "proposed" for told in tags)
    assert any(told.get("building") == "no" for told in tags)
    assert any(told.get("parking") == "underground" for told in tags)
    assert any(told.get("highway") == "footway" for told in tags)
    assert any(told.get("bridge") == "yes" for told in tags)
    assert any("width" in told for told in tags)


def test_osm_roads_meet_in_shared_nodes(county: County) -> None:
    uses: dict[int, int] = {}
    for way in osmium.FileProcessor(str(county.osm), osmium.osm.WAY):
        if isinstance(way, osmium.osm.Way) and "highway" in way.tags:
            for ref in {node.ref for node in way.nodes}:
                uses[ref] = uses.get(ref, 0) + 1
    assert sum(count > 1 for count in uses.values()) > 15


def test_osm_says_its_date(county: County) -> None:
    with osmium.io.Reader(str(county.osm)) as reader:
        assert reader.header().get("osmosis_replication_timestamp") == "2022-01-15T00:00:00Z"


# -- parts -------------------------------------------------------------------------------------


def test_shadows_fall_away_from_the_sun() -> None:
    height_HW = np.zeros((80, 80), np.float32)
    height_HW[36:44, 36:44] = 10
    grey_CHW = np.full((4, 80, 80), 0.5, np.float32)
    light = Light(season="summer", sun_azimuth_deg=90, sun_elevation_deg=45, gain=(1, 1, 1, 1))
    bright = lit(Painting(rasterio.Affine.identity(), grey_CHW, height_HW), light)[0]
    # The sun is in the east, 45 degrees high: 10 m throw 10 m, that is 20 pixels, to the west.
    assert bright[40, 20] < 0.5 * bright[40, 60]
    assert bright[40, 10] == pytest.approx(bright[40, 60])
    assert bright[20, 40] == pytest.approx(bright[40, 60])


def test_a_hip_roof_is_a_gable_roof_cut_at_its_ends() -> None:
    place = Frame(0.0, 0.0, 0.0)
    gable, hip = (Wing(place, 8.0, 4.0, roof, 3.0, 0.5) for roof in ("gable", "hip"))
    s, t = np.array([0.0, 7.0, 0.0]), np.array([0.0, 0.0, 3.0])
    assert gable.height_m(s, t).tolist() == [5.0, 5.0, 3.5]
    assert hip.height_m(s, t).tolist() == [5.0, 3.5, 3.5]


def test_noise_is_smooth_and_of_unit_size() -> None:
    noise_HW = smooth_noise((900, 1100), 9, np.random.default_rng(3))
    assert noise_HW.shape == (900, 1100)
    assert abs(float(noise_HW.mean())) < 0.05
    assert float(noise_HW.std()) == pytest.approx(1.0, abs=0.06)
    assert float(np.abs(np.diff(noise_HW, axis=0)).max()) < 1.0


def test_what_is_taken_is_not_free() -> None:
    site = Land(np.zeros((60, 100), bool))
    house = shapely.box(20, 20, 30, 28)
    assert site.is_free(house)
    site.take(house)
    assert not site.is_free(shapely.box(29, 27, 40, 40))
    # Its corners are free, its middle is not.
    assert not site.is_free(shapely.box(10, 22, 50, 26))
    assert site.is_free(shapely.box(40, 20, 50, 28))
    assert not site.is_free(shapely.box(90, 20, 105, 28))


def test_the_last_area_is_seen_and_those_outside_cost_nothing() -> None:
    canvas = Canvas.of_bounds((0, 0, 10, 10))
    burnt = canvas.burn(
        [
            shapely.box(0, 0, 6, 6),
            shapely.box(50, 50, 60, 60),
            shapely.box(4, 4, 8, 8),
            shapely.Polygon(),
        ]
    )
    assert burnt.shape == (20, 20)
    assert np.unique(burnt).tolist() == [0, 1, 3]
    assert burnt[9, 9] == 3 and burnt[19, 0] == 1
    assert not canvas.burn([]).any()
