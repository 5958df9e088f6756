"""The files of a map, as other programs read them."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import geopandas as gpd
import pyarrow.parquet
import pyogrio
import pytest
import shapely
from geopandas.testing import assert_geodataframe_equal
from orthotrace.mapping.errors import MappingError
from orthotrace.mapping.export import MapLayer, Notice, export, layers_of
from orthotrace.mapping.scoring.compare import compare
from orthotrace.mapping.scoring.features import read_features
from shapely import LineString, MultiPolygon, Polygon, box

UTM = "EPSG:26918"
NOTICE = Notice(imagery="USDA NAIP 2022, public domain")
NAME = '<script>alert("x")</script> & Café'


def at(shape: Any) -> Any:
    return shapely.transform(shape, lambda xy: xy + [400_000.0, 4_100_000.0])


def found() -> dict[str, gpd.GeoDataFrame]:
    roads = {
        "id": ["road/1", "road/2"],
        "class": "road",
        "score": [0.9, 0.5],
        "width_m": [6.5, 4.0],
        "date": ["2022-06-20", None],
    }
    lines = [LineString([(0, 0), (80, 0)]), LineString([(0, 50), (80, 50)])]
    buildings = {"id": [f"building/{n}" for n in range(12)], "class": "building", "score": 0.8}
    squares = [
        box(30 * (n % 4), 100 + 30 * (n // 4), 10 + 30 * (n % 4), 112 + 30 * (n // 4))
        for n in range(12)
    ]
    return {
        "roads": gpd.GeoDataFrame(roads, geometry=[at(s) for s in lines], crs=UTM),
        "buildings": gpd.GeoDataFrame(buildings, geometry=[at(s) for s in squares], crs=UTM),
    }


def osm() -> dict[str, gpd.GeoDataFrame]:
    ways = {"osm_id": ["way/1", "way/2"], "kind": "service", "label": "yes"}
    ways["tags"] = json.dumps({"highway": "service", "name": NAME}, sort_keys=True)
    lines = [LineString([(0, 1), (80, 1)]), LineString([(0, 90), (80, 90)])]
    houses = {"osm_id": ["way/3"], "kind": "house", "label": "yes", "tags": "{}"}
    return {
        "roads": gpd.GeoDataFrame(ways, geometry=[at(s) for s in lines], crs=UTM).to_crs(4326),
        "buildings": gpd.GeoDataFrame(houses, geometry=[at(box(0, 100, 10, 112))], crs=UTM).to_crs(
            4326
        ),
    }


def all_layers() -> list[MapLayer]:
    return layers_of(found(), compare(found(), osm()))


def test_a_geopackage_keeps_finds_and_what_is_joined_with_osm_apart(tmp_path: Path) -> None:
    (path,) = export(all_layers(), tmp_path, "county", notice=NOTICE, formats=["gpkg"])
    assert path == tmp_path / "county.gpkg"
    counts = {
        str(n): pyogrio.read_info(path, layer=n)["features"] for n, _ in pyogrio.list_layers(path)
    }
    assert counts == {
        "roads": 2,
        "buildings": 12,
        "roads_vs_osm": 2,
        "buildings_vs_osm": 12,
        "osm_missing_roads": 1,
        "osm_missing_buildings": 0,
    }
    pure = pyogrio.read_info(path, layer="buildings")
    assert not {"osm", "osm_id", "tags"} & set(pure["fields"])
    assert {"osm", "osm_id"} <= set(pyogrio.read_info(path, layer="buildings_vs_osm")["fields"])
    assert_geodataframe_equal(
        pyogrio.read_dataframe(path, layer="buildings"), found()["buildings"], check_dtype=False
    )
    for layer in counts:
        told = pyogrio.read_info(path, layer=layer)
        assert told["crs"] == UTM
        assert "ODbL-1.0" in told["layer_metadata"]["DESCRIPTION"]
        assert "USDA NAIP 2022" in told["layer_metadata"]["attribution"]
        assert "OpenStreetMap contributors" in told["layer_metadata"]["attribution"]
    assert [file.name for file in tmp_path.iterdir()] == [path.name], "a side-car was left"


@pytest.mark.parametrize("suffix", ["parquet", "fgb", "geojson"])
def test_other_formats_have_a_file_for_each_layer(tmp_path: Path, suffix: str) -> None:
    paths = export(layers_of(found()), tmp_path, "county", notice=NOTICE, formats=[suffix])
    assert paths == [tmp_path / f"roads.{suffix}", tmp_path / f"buildings.{suffix}"]
    back = read_features(paths[1])["buildings"].to_crs(UTM).set_index("id").sort_index()
    wanted = found()["buildings"].set_index("id").sort_index()
    assert back.index.tolist() == wanted.index.tolist()
    assert shapely.hausdorff_distance(back.geometry, wanted.geometry).max() < 0.02
    assert back["score"].tolist() == wanted["score"].tolist()
    if suffix == "fgb":
        told = pyogrio.read_info(paths[1])["layer_metadata"]
        assert told["licence"] == "ODbL-1.0" and "NAIP" in told["attribution"]


def test_the_same_map_gives_the_same_bytes(tmp_path: Path) -> None:
    one, two = (
        export(all_layers(), tmp_path / name, "county", notice=NOTICE) for name in ("one", "two")
    )
    assert len(one) == 1 + 3 * 6
    for first, second in zip(one, two, strict=True):
        assert first.read_bytes() == second.read_bytes(), first.name
    with closing(sqlite3.connect(one[0])) as package:
        dates = package.execute("SELECT last_change FROM gpkg_contents").fetchall()
        dates += package.execute("SELECT timestamp FROM gpkg_metadata_reference").fetchall()
    assert set(dates) == {("2000-01-01T00:00:00.000Z",)}
    assert pyogrio.get_gdal_config_option("OGR_CURRENT_DATE") is None


def test_geojson_is_longitude_before_latitude_with_seven_decimals(tmp_path: Path) -> None:
    (path,) = export(layers_of(found())[:1], tmp_path, "county", notice=NOTICE, formats=["geojson"])
    told = json.loads(path.read_text())
    assert "crs" not in told
    assert told["licence"] == "ODbL-1.0" and "OpenStreetMap" in told["attribution"]
    for lon, lat in told["features"][0]["geometry"]["coordinates"]:
        assert -77 < lon < -76 and 37 < lat < 38
        assert round(lon, 7) == lon and round(lat, 7) == lat


def test_geoparquet_has_boxes_and_is_read_by_others(tmp_path: Path) -> None:
    (_, path) = export(layers_of(found()), tmp_path, "county", notice=NOTICE, formats=["parquet"])
    told = pyarrow.parquet.read_schema(path).metadata
    geo = json.loads(told[b"geo"])
    assert geo["version"] == "1.1.0"
    assert "bbox" in geo["columns"]["geometry"]["covering"]
    assert told[b"licence"] == b"ODbL-1.0" and "©".encode() in told[b"attribution"]
    assert pyarrow.parquet.ParquetFile(path).metadata.row_group(0).column(0).compression == "ZSTD"
    left, bottom, right, top = at(box(0, 100, 20, 110)).bounds
    assert len(gpd.read_parquet(path, bbox=(left, bottom, right, top))) == 1
    with duckdb.connect() as duck:
        rows = duck.execute(
            f"SELECT id FROM '{path}' WHERE bbox.xmin < {right} AND bbox.ymin < {top}"
        ).fetchall()
    assert rows == [("building/0",)]


def test_markup_in_a_tag_is_plain_text(tmp_path: Path) -> None:
    paths = export(all_layers(), tmp_path, "county", notice=NOTICE)
    for path in paths:
        if path.stem == "osm_missing_roads":
            frame = gpd.read_parquet(path) if path.suffix == ".parquet" else gpd.read_file(path)
            assert json.loads(frame["tags"].iloc[0])["name"] == NAME


def test_empty_layers_keep_their_columns_and_crs(tmp_path: Path) -> None:
    empty = {name: features.iloc[:0] for name, features in found().items()}
    layers = layers_of(empty, compare(empty, {n: f.iloc[:0] for n, f in osm().items()}))
    paths = export(layers, tmp_path, "county", notice=NOTICE, formats=["gpkg", "parquet", "fgb"])
    for path in paths:
        back = (
            gpd.read_parquet(path)
            if path.suffix == ".parquet"
            else gpd.read_file(path, layer=None if path.suffix == ".fgb" else "roads")
        )
        assert len(back) == 0 and back.crs == UTM
        if path.stem in ("county", "roads", "buildings"):
            assert {"id", "class", "score"} <= set(back.columns)
    assert dict(pyogrio.list_layers(paths[0]).tolist()) == {
        layer.name: layer.kind for layer in layers
    }
    schema = pyarrow.parquet.read_schema(tmp_path / "roads_vs_osm.parquet")
    assert "string" in str(schema.field("osm_id").type)
    export(layers, tmp_path, "county", notice=NOTICE, formats=["geojson"])


def test_polygons_in_several_parts_make_the_layer_one_of_such(tmp_path: Path) -> None:
    features = found()
    both = MultiPolygon([at(box(0, 0, 9, 9)), at(box(20, 0, 29, 9))])
    features["buildings"].loc[0, "geometry"] = both
    paths = export(layers_of(features), tmp_path, "county", notice=NOTICE)
    for path in paths:
        if path.suffix == ".gpkg" or path.stem == "buildings":
            assert set(read_features(path)["buildings"].geom_type) == {"MultiPolygon"}


def test_another_crs_can_be_asked_for(tmp_path: Path) -> None:
    local = "+proj=tmerc +lat_0=37 +lon_0=-76 +datum=WGS84 +units=m"
    (path,) = export(
        layers_of(found()), tmp_path, "county", notice=NOTICE, formats=["gpkg"], crs=local
    )
    assert gpd.read_file(path, layer="roads").crs.equals(local, ignore_axis_order=True)


def test_a_thin_building_stays_a_valid_area_in_seven_decimals(tmp_path: Path) -> None:
    """Its waist is 2 mm wide, a fifth of the file's step."""
    waist = Polygon(
        [(0, 0), (10, 0), (10, 4), (5, 4.999), (10, 6), (10, 9), (0, 9), (0, 6), (5, 5.001), (0, 4)]
    )
    frame = gpd.GeoDataFrame(
        {"id": ["a", "b"]}, geometry=[at(waist), at(box(20, 0, 30, 9))], crs=UTM
    )
    layer = MapLayer("buildings", "Polygon", False, frame)
    (path,) = export([layer], tmp_path, "county", notice=NOTICE, formats=["geojson"])
    back = read_features(path)["buildings"]
    assert back.is_valid.all() and set(back.geom_type) == {"MultiPolygon"}
    assert back.to_crs(UTM).area.tolist() == pytest.approx([*frame.area], rel=0.01)


def test_what_cannot_be_exported_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    features = found()
    features["buildings"].loc[3, "geometry"] = at(Polygon([(0, 0), (9, 9), (9, 0), (0, 9)]))
    with pytest.raises(MappingError, match="row 3 of the layer buildings"):
        export(layers_of(features), tmp_path, "county", notice=NOTICE, formats=["gpkg"])
    with pytest.raises(MappingError, match="no export to shp"):
        export(layers_of(found()), tmp_path, "county", notice=NOTICE, formats=["shp"])
    assert list(tmp_path.iterdir()) == []
