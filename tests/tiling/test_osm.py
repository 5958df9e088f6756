"""Reading OSM files of every form, and keeping what was read."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import osmium
import pyarrow.parquet
import pyogrio
import pytest
import shapely
from geopandas.testing import assert_geodataframe_equal
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from orthotrace.tiling import elements as elements_module
from orthotrace.tiling.elements import elements
from orthotrace.tiling.errors import TilingError
from orthotrace.tiling.osm import (
    COLUMNS,
    Extract,
    load_extract,
    read_osm,
    save_extract,
)
from osmium.osm import mutable
from shapely import LineString, MultiLineString, MultiPolygon, Polygon, box

Tags = dict[str, str]

LON, LAT = 25.0, 60.0
STEP = 1e-4
"""Degrees between the nodes of a square lattice; node r * 100 + c + 1 stands in row r, column c."""


def node(row: int, col: int) -> int:
    return row * 100 + col + 1


def place(row: int, col: int) -> tuple[float, float]:
    return LON + col * STEP, LAT + row * STEP


def square(row: int, col: int, side: int = 2) -> list[int]:
    """The nodes of a closed ring whose south-west corner is given."""
    corners = [(row, col), (row, col + side), (row + side, col + side), (row + side, col)]
    return [node(*corner) for corner in [*corners, corners[0]]]


def write(
    path: Path,
    ways: dict[int, tuple[list[int], Tags]],
    relations: dict[int, tuple[list[tuple[str, int, str]], Tags]] | None = None,
    missing: tuple[int, ...] = (),
    header: osmium.io.Header | None = None,
) -> Path:
    """An OSM file of the form that its name says, with the lattice's nodes that the ways need."""
    needed = {ref for refs, _ in ways.values() for ref in refs} - set(missing)
    with osmium.SimpleWriter(str(path), header=header, overwrite=True) as writer:
        for ref in sorted(needed):
            row, col = divmod(ref - 1, 100)
            writer.add_node(mutable.Node(id=ref, location=place(row, col)))
        for number, (refs, tags) in sorted(ways.items()):
            writer.add_way(mutable.Way(id=number, nodes=refs, tags=tags))
        for number, (members, tags) in sorted((relations or {}).items()):
            writer.add_relation(mutable.Relation(id=number, members=members, tags=tags))
    return path


STREET = ([node(0, 0), node(0, 9)], {"highway": "residential", "name": "Kaarikuja"})
HOUSE = (square(2, 2), {"building": "house"})


def kinds(frame: geopandas.GeoDataFrame) -> dict[str, str]:
    return dict(zip(frame["osm_id"], frame["kind"], strict=True))


def shape(frame: geopandas.GeoDataFrame, osm_id: str) -> Any:
    return frame.geometry[frame["osm_id"] == osm_id].item()


# -- what becomes of an element ----------------------------------------------------------------


def test_roads_are_lines_unless_they_say_area(tmp_path: Path) -> None:
    told = read_osm(
        write(
            tmp_path / "a.osm",
            {
                1: STREET,
                2: (square(10, 10), {"highway": "primary", "junction": "roundabout"}),
                3: (square(20, 20), {"highway": "service", "area": "yes"}),
                4: (square(30, 30), {"highway": "pedestrian", "area": "yes"}),
                5: ([node(40, 0), node(40, 5)], {"highway": "footway"}),
                6: ([node(41, 0), node(41, 5)], {"highway": "tertiary", "tunnel": "yes"}),
                7: (square(50, 50), {"area:highway": "primary"}),
                8: ([node(42, 0), node(42, 5)], {"highway": "service", "area": "yes"}),
                9: ([node(43, 0), node(43, 5)], {"railway": "rail"}),
            },
        )
    )
    assert {
        i: g.geom_type for i, g in zip(told.roads["osm_id"], told.roads.geometry, strict=True)
    } == {
        "way/1": "LineString",
        "way/2": "LineString",
        "way/3": "Polygon",
        "way/4": "Polygon",
        "way/6": "LineString",
        "way/8": "LineString",  # says area but is not closed
    }
    assert dict(zip(told.roads["osm_id"], told.roads["label"], strict=True)) == {
        **dict.fromkeys(["way/1", "way/2", "way/3", "way/8"], "yes"),
        **dict.fromkeys(["way/4", "way/6"], "unknown"),
    }
    assert json.loads(told.roads["tags"].iloc[0]) == STREET[1]
    assert told.dropped == {"road: path": 1}
    assert told.buildings.empty


def test_buildings_keep_their_courtyards_and_count_once(tmp_path: Path) -> None:
    outer, inner = square(0, 0, 9), square(3, 3, 2)
    told = read_osm(
        write(
            tmp_path / "a.osm.pbf",
            {
                1: (outer, {"building": "yes"}),  # tagged like its relation: would fill the yard
                2: (inner, {}),
                3: (square(4, 40), {"building:part": "yes"}),
                4: (square(0, 20), {"building": "garage"}),
                5: (square(3, 60, 4), {"building": "yes", "area": "no"}),
            },
            {
                7: (
                    [("w", 1, "outer"), ("w", 2, "inner")],
                    {"type": "multipolygon", "building": "apartments"},
                ),
                8: ([("w", 4, "outline")], {"type": "building"}),
            },
        )
    )
    assert kinds(told.buildings) == {"way/4": "garage", "relation/7": "apartments"}
    block = shape(told.buildings, "relation/7")
    assert len(block.interiors) == 1
    assert block.equals(box(*place(0, 0), *place(9, 9)) - box(*place(3, 3), *place(5, 5)))
    assert told.dropped == {
        "building: not closed": 1,
        "building: outline of a multipolygon": 1,
        "building: part of a building": 1,
    }


def test_a_multipolygon_of_several_blocks_and_a_road_area(tmp_path: Path) -> None:
    ways = {1: (square(0, 0), {}), 2: (square(0, 10), {}), 3: (square(0, 20), {})}
    pair = [("w", 1, "outer"), ("w", 2, "outer")]
    plaza = {"type": "multipolygon", "highway": "service"}
    relations = {
        4: (pair, {"type": "multipolygon", "building": "school"}),
        5: ([("w", 3, "outer")], plaza),
    }
    told = read_osm(write(tmp_path / "a.osm", ways, relations))
    assert isinstance(shape(told.buildings, "relation/4"), MultiPolygon)
    assert isinstance(shape(told.roads, "relation/5"), Polygon)


def test_a_bow_tie_becomes_two_triangles(tmp_path: Path) -> None:
    ring = [node(0, 0), node(2, 2), node(0, 2), node(2, 0), node(0, 0)]
    told = read_osm(write(tmp_path / "a.osm", {1: (ring, {"building": "yes"}), 2: HOUSE}))
    tie = shape(told.buildings, "way/1")
    assert tie.is_valid and len(tie.geoms) == 2
    assert tie.area == pytest.approx(2 * STEP**2)


def test_what_has_no_area_is_counted_and_the_rest_kept(tmp_path: Path) -> None:
    flat = [node(9, 0), node(9, 1), node(9, 0)]
    told = read_osm(
        write(
            tmp_path / "a.osm",
            {
                1: HOUSE,
                2: (square(0, 20)[:4], {"building": "yes"}),
                3: (square(0, 30), {"building": "yes"}),
                4: (flat, {"building": "yes"}),
                5: ([node(7, 7)], {"highway": "primary"}),
                6: (square(6, 50), {"building": "no"}),
                7: (square(6, 60), {"building": "yes", "location": "underground"}),
            },
            {8: ([("w", 99, "outer")], {"type": "multipolygon", "building": "yes"})},
            missing=(node(0, 30),),
        )
    )
    assert kinds(told.buildings) == {"way/1": "house"}
    assert told.dropped == {
        "building: broken ring": 1,
        "building: incomplete relation": 1,
        "building: no building": 1,
        "building: node missing": 1,
        "building: not closed": 1,
        "building: underground": 1,
        "road: a single point": 1,
    }


def test_a_road_is_kept_in_pieces_where_nodes_are_missing(tmp_path: Path) -> None:
    refs = [node(0, col) for col in range(8)]
    ways = {1: (refs, {"highway": "primary"}), 2: (refs[5:7], {"highway": "primary"})}
    told = read_osm(write(tmp_path / "a.osm", ways, missing=(refs[2], refs[6])))
    pieces = MultiLineString([[place(0, 0), place(0, 1)], [place(0, 3), place(0, 4), place(0, 5)]])
    assert kinds(told.roads) == {"way/1": "primary"}
    assert shape(told.roads, "way/1").equals_exact(pieces, 1e-9)
    assert told.dropped == {"road: node missing": 1}


# -- forms -------------------------------------------------------------------------------------

TOWN = {
    1: STREET,
    2: HOUSE,
    3: (square(10, 10), {"highway": "primary", "junction": "roundabout", "lanes": "2"}),
    4: ([node(20, 0), node(22, 8)], {"highway": "track", "note": 'a "quoted" name, Ångström'}),
}


def same(one: Extract, other: Extract) -> None:
    """The same but for the order, which is the file's."""
    for ours, theirs in ((one.roads, other.roads), (one.buildings, other.buildings)):
        ours, theirs = (f.sort_values("osm_id", ignore_index=True) for f in (ours, theirs))
        assert_geodataframe_equal(ours, theirs, check_less_precise=True, normalize=True)


@pytest.mark.parametrize("suffix", [".osm", ".osm.gz", ".osm.bz2", ".pbf"])
def test_every_form_of_osm_s_own_tells_the_same(tmp_path: Path, suffix: str) -> None:
    told = read_osm(write(tmp_path / f"a{suffix}", TOWN))
    same(told, read_osm(write(tmp_path / "b.osm.pbf", TOWN)))
    assert len(told.roads) == 3 and len(told.buildings) == 1


def layers_of(told: Extract) -> Iterator[tuple[str, geopandas.GeoDataFrame]]:
    """The extract as other programs write it: a column for each tag."""
    for name, key, frame in (
        ("roads", "highway", told.roads),
        ("buildings", "building", told.buildings),
    ):
        tags = geopandas.pd.DataFrame([json.loads(text) for text in frame["tags"]])
        assert key in tags
        yield (
            name,
            geopandas.GeoDataFrame(tags.assign(full_id=frame["osm_id"]), geometry=frame.geometry),
        )


@pytest.mark.parametrize("suffix", [".gpkg", ".geojson", ".fgb", ".parquet"])
def test_vector_files_tell_the_same(tmp_path: Path, suffix: str) -> None:
    told = read_osm(write(tmp_path / "a.osm", TOWN))
    whole, found = tmp_path / f"town{suffix}", {}
    for name, frame in layers_of(told):
        if suffix == ".gpkg":
            frame.to_crs("EPSG:3067").to_file(whole, layer=name)
            continue
        path = tmp_path / f"{name}{suffix}"
        frame.to_parquet(path) if suffix == ".parquet" else frame.to_file(path)
        found[name] = read_osm(path)
    if suffix == ".gpkg":
        same(read_osm(whole), told)
    else:
        assert found["roads"].buildings.empty and found["buildings"].roads.empty
        same(Extract(found["roads"].roads, found["buildings"].buildings), told)


def test_one_geojson_holds_both(tmp_path: Path) -> None:
    told = read_osm(write(tmp_path / "a.osm", TOWN))
    both = geopandas.pd.concat([frame for _, frame in layers_of(told)])
    both.rename(columns={"full_id": "@id"}).to_file(tmp_path / "export.geojson")
    same(read_osm(tmp_path / "export.geojson"), told)


def test_the_files_of_gdal_keep_other_tags(tmp_path: Path) -> None:
    lines = geopandas.GeoDataFrame(
        {
            "osm_id": ["12"],
            "highway": ["service"],
            "other_tags": ['"width"=>"4 m","note"=>"a \\"b\\""'],
        },
        geometry=[LineString([place(0, 0), place(0, 9)])],
        crs="EPSG:4326",
    )
    polygons = geopandas.GeoDataFrame(
        {"osm_id": ["5", None], "osm_way_id": [None, "6"], "building": ["yes", "yes"]},
        geometry=[box(*place(2, 2), *place(4, 4)), box(*place(2, 6), *place(4, 8))],
        crs="EPSG:4326",
    )
    lines.to_file(tmp_path / "a.gpkg", layer="lines")
    polygons.to_file(tmp_path / "a.gpkg", layer="multipolygons")
    told = read_osm(tmp_path / "a.gpkg")
    assert kinds(told.roads) == {"way/12": "service"}
    assert (
        json.loads(told.roads["tags"].item()).items() >= {"width": "4 m", "note": 'a "b"'}.items()
    )
    assert set(kinds(told.buildings)) == {"relation/5", "way/6"}


def test_layers_without_tags_go_by_their_names(tmp_path: Path) -> None:
    line, house = LineString([place(0, 0), place(0, 9)]), box(*place(2, 2), *place(4, 4))
    bow = Polygon([place(5, 5), place(7, 7), place(5, 7), place(7, 5)])
    path = tmp_path / "a.gpkg"
    for name, shapes in (("my_roads", [line]), ("footprints", [house, bow]), ("lakes", [house])):
        geopandas.GeoDataFrame(geometry=shapes, crs="EPSG:4326").to_file(path, layer=name)
    told = read_osm(path)
    assert kinds(told.roads) == {"my_roads/0": "road"}
    assert kinds(told.buildings) == {"footprints/0": "yes", "footprints/1": "yes"}
    assert told.buildings.is_valid.all()
    alone = tmp_path / "anything.fgb"
    geopandas.GeoDataFrame(geometry=[house], crs="EPSG:4326").to_file(alone)
    assert len(read_osm(alone).buildings) == 1


def test_own_files_are_read_like_others(tmp_path: Path) -> None:
    told = read_osm(write(tmp_path / "a.osm", TOWN))
    save_extract(told, tmp_path / "osm")
    kept = load_extract(tmp_path / "osm")
    assert_geodataframe_equal(read_osm(tmp_path / "osm/roads.parquet").roads, kept.roads)


def test_ways_before_their_nodes_are_sorted_first(tmp_path: Path) -> None:
    path = write(tmp_path / "a.osm", TOWN)
    lines = path.read_text().splitlines()
    nodes = [line for line in lines if "<node" in line]
    rest = [line for line in lines if "<node" not in line]
    shuffled = tmp_path / "b.osm"
    shuffled.write_text("\n".join([*rest[:-1], *nodes, rest[-1]]))
    same(read_osm(shuffled), read_osm(path))


def test_places_of_many_nodes_go_to_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.osm.pbf", TOWN)
    expected = read_osm(path)
    monkeypatch.setattr(elements_module, "_IN_MEMORY_BYTES", 0)
    same(read_osm(path), expected)


def test_areas_tell_of_any_tag(tmp_path: Path) -> None:
    path = write(tmp_path / "a.osm", {1: (square(0, 0), {"landuse": "forest"}), 2: STREET})
    [area] = (element for element in elements(path) if element.area)
    assert (area.osm_id, area.tags) == ("way/1", {"landuse": "forest"})
    assert shapely.equals(area.geometry, box(*place(0, 0), *place(2, 2)))
    assert list(elements(path, ("building",))) == []


# -- bounds ------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".osm", ".gpkg"])
def test_only_what_touches_the_bounds_is_read(tmp_path: Path, suffix: str) -> None:
    ways = {
        1: ([node(0, 0), node(9, 9)], {"highway": "primary"}),  # its box holds them, it does not
        2: ([node(0, 6), node(9, 6)], {"highway": "primary"}),
        3: (square(0, 0, 9), {"building": "warehouse"}),  # holds the bounds
        4: (square(20, 20), {"building": "yes"}),
    }
    told = read_osm(write(tmp_path / "a.osm", ways))
    if suffix == ".gpkg":
        for name, frame in layers_of(told):
            frame.to_file(tmp_path / "a.gpkg", layer=name)
    near = (*place(2, 5), *place(4, 7))
    told = read_osm(tmp_path / f"a{suffix}", (near[0], near[1], near[2], near[3]))
    assert set(kinds(told.roads)) == {"way/2"}
    assert set(kinds(told.buildings)) == {"way/3"}


@pytest.mark.parametrize("suffix", [".osm.pbf", ".gpkg", ".parquet"])
def test_another_place_is_refused_with_both_extents(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / "a.osm.pbf", TOWN)
    told = read_osm(path)
    for name, frame in layers_of(told):
        if suffix == ".gpkg":
            path = tmp_path / "a.gpkg"
            frame.to_file(path, layer=name)
        elif suffix == ".parquet":
            path = tmp_path / "b.parquet"
            frame.to_parquet(path)
    with pytest.raises(TilingError) as caught:
        read_osm(path, (-71.1, 42.1, -71.0, 42.2))
    said = str(caught.value)
    assert said.startswith(str(path)) and "\n" not in said
    assert "longitude 25.000" in said and "latitude 60.000" in said
    assert "longitude -71.1000 to -71.0000, latitude 42.1000 to 42.2000" in said


def test_nothing_in_bounds_that_overlap_is_fine(tmp_path: Path) -> None:
    ways = {1: (STREET[0], STREET[1]), 2: (square(50, 50), {"building": "yes"})}
    west, south, east, north = (*place(20, 20), *place(30, 30))
    told = read_osm(write(tmp_path / "a.osm", ways), (west, south, east, north))
    assert told.roads.empty and told.buildings.empty


@pytest.mark.parametrize(
    ("ways", "empty", "full"),
    [({1: STREET}, "buildings", "roads"), ({1: HOUSE}, "roads", "buildings")],
)
def test_an_extract_may_lack_a_class(
    tmp_path: Path, ways: dict[int, Any], empty: str, full: str
) -> None:
    both = read_osm(write(tmp_path / "b.osm", TOWN))
    told = read_osm(write(tmp_path / "a.osm", ways))
    assert getattr(told, empty).empty and len(getattr(told, full)) == 1
    assert (told.roads.dtypes == both.roads.dtypes).all()
    assert (told.buildings.dtypes == both.buildings.dtypes).all()
    assert tuple(told.roads.columns) == tuple(told.buildings.columns) == COLUMNS
    save_extract(told, tmp_path / "osm")
    again = load_extract(tmp_path / "osm")
    assert (again.roads.dtypes == told.roads.dtypes).all()
    assert (again.buildings.dtypes == told.buildings.dtypes).all()


# -- what cannot be read -----------------------------------------------------------------------


def refused(path: Path, *wanted: str) -> None:
    with pytest.raises(TilingError) as caught:
        read_osm(path)
    said = str(caught.value)
    assert said.startswith(str(path)) and "; wanted" in said and "\n" not in said
    assert all(word in said for word in wanted), said


@pytest.mark.parametrize("suffix", [".osm.pbf", ".osm", ".osm.gz", ".osm.bz2", ".gpkg", ".fgb"])
@pytest.mark.parametrize("content", [b"", b"no OSM data at all\n" * 40, b"<html></html>"])
def test_a_file_that_is_no_osm_data_is_refused(tmp_path: Path, suffix: str, content: bytes) -> None:
    path = tmp_path / f"a{suffix}"
    path.write_bytes(content)
    refused(path)


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.sampled_from([".osm.pbf", ".osm", ".osm.gz", ".osm.bz2"]), st.floats(0, 0.999))
def test_a_file_cut_anywhere_is_refused(tmp_path: Path, suffix: str, share: float) -> None:
    whole = write(tmp_path / f"whole{suffix}", TOWN)
    content = whole.read_bytes().rstrip()
    cut = tmp_path / f"cut{suffix}"
    cut.write_bytes(content[: int(share * len(content))])
    refused(cut)


def test_files_that_are_not_there_or_of_no_known_form_are_refused(tmp_path: Path) -> None:
    for name in ("no.osm.pbf", "no.gpkg", "no.parquet"):
        refused(tmp_path / name, "is no file")
    shapefile = tmp_path / "a.shp"
    shapefile.write_bytes(b"x")
    refused(shapefile, "no form of OSM data", ".pbf", ".osm.bz2", ".gpkg")
    folder = tmp_path / "a.osm"
    folder.mkdir()
    refused(folder, "is no file")


def test_a_file_with_neither_roads_nor_buildings_is_refused(tmp_path: Path) -> None:
    refused(write(tmp_path / "a.osm", {1: (square(0, 0), {"landuse": "forest"})}), "no road and no")
    refused(write(tmp_path / "b.osm.pbf", {}), "no road and no building")


def test_ways_whose_nodes_are_elsewhere_are_refused(tmp_path: Path) -> None:
    refs = STREET[0]
    refused(write(tmp_path / "a.osm", {1: STREET}, missing=tuple(refs)), "the places of none")
    text = write(tmp_path / "b.osm", {1: STREET}).read_text()
    for ref in refs:
        text = text.replace(f'node id="{ref}"', f'node id="-{ref}"').replace(
            f'ref="{ref}"', f'ref="-{ref}"'
        )
    (tmp_path / "c.osm").write_text(text)
    refused(tmp_path / "c.osm", "positive ids")


def test_a_vector_file_without_a_crs_is_refused(tmp_path: Path) -> None:
    frame = geopandas.GeoDataFrame(geometry=[box(0, 0, 1, 1)])
    with pytest.warns(UserWarning, match="'crs' was not provided"):
        pyogrio.write_dataframe(frame, tmp_path / "a.fgb")
    refused(tmp_path / "a.fgb", "has no CRS")


# -- dates -------------------------------------------------------------------------------------


def test_the_snapshot_is_the_file_s_own_date(tmp_path: Path) -> None:
    header = osmium.io.Header()
    header.set("osmosis_replication_timestamp", "2024-05-01T00:00:00Z")
    assert (
        read_osm(write(tmp_path / "a.osm.pbf", TOWN, header=header)).snapshot
        == "2024-05-01T00:00:00Z"
    )


def test_the_snapshot_is_else_the_newest_edit_else_none(tmp_path: Path) -> None:
    path = write(tmp_path / "a.osm", TOWN)
    assert read_osm(path).snapshot is None
    text = path.read_text()
    for number, year in ((1, 2012), (2, 2019), (3, 2015)):
        text = text.replace(
            f'way id="{number}"', f'way id="{number}" timestamp="{year}-02-03T04:05:06Z"'
        )
    path.write_text(text)
    assert read_osm(path).snapshot == "2019-02-03T04:05:06Z"


# -- kept --------------------------------------------------------------------------------------


def test_an_extract_is_kept_whole(tmp_path: Path) -> None:
    ways = {**TOWN, 9: (square(30, 30), {"building": "no"})}
    told = read_osm(write(tmp_path / "a.osm", ways))
    told = Extract(told.roads, told.buildings, "2024-05-01", told.dropped)
    save_extract(told, tmp_path / "osm")
    again = load_extract(tmp_path / "osm")
    for kept, frame in ((again.roads, told.roads), (again.buildings, told.buildings)):
        kept, frame = (each.sort_values("osm_id", ignore_index=True) for each in (kept, frame))
        assert_geodataframe_equal(kept, frame)
    assert (again.snapshot, again.dropped) == ("2024-05-01", {"building: no building": 1})
    first = (tmp_path / "osm/roads.parquet").read_bytes()
    save_extract(again, tmp_path / "osm")
    assert (tmp_path / "osm/roads.parquet").read_bytes() == first


def test_a_cell_decodes_few_groups_of_rows(tmp_path: Path) -> None:
    """Of 30 000 buildings in no order, those of a corner stand in one or two groups of eight."""
    random = np.random.default_rng(0)
    left, bottom = random.permutation(30_000) % 200 * 0.001, random.uniform(0, 0.15, 30_000)
    frame = geopandas.GeoDataFrame(
        {name: ["yes"] * 30_000 for name in ("osm_id", "kind", "tags", "label")},
        geometry=shapely.box(left, bottom, left + 5e-4, bottom + 5e-4),
        crs="EPSG:4326",
    )
    told = read_osm(write(tmp_path / "a.osm", TOWN))
    save_extract(Extract(told.roads, frame), tmp_path)
    corner = box(0.01, 0.01, 0.02, 0.02)
    found = load_extract(tmp_path, corner.bounds).buildings
    assert len(found) == frame.intersects(corner).sum()
    metadata = pyarrow.parquet.ParquetFile(tmp_path / "buildings.parquet").metadata
    touched = 0
    for number in range(metadata.num_row_groups):
        columns = [metadata.row_group(number).column(i) for i in range(metadata.num_columns)]
        span = {each.path_in_schema: each.statistics for each in columns}
        touched += (
            span["bbox.xmin"].min <= 0.02
            and span["bbox.xmax"].max >= 0.01
            and span["bbox.ymin"].min <= 0.02
            and span["bbox.ymax"].max >= 0.01
        )
    assert metadata.num_row_groups == 8 and 1 <= touched <= 2


def test_the_files_are_geoparquet_and_name_the_licence(tmp_path: Path) -> None:
    save_extract(read_osm(write(tmp_path / "a.osm", TOWN)), tmp_path)
    metadata = pyarrow.parquet.read_schema(tmp_path / "roads.parquet").metadata
    geo = json.loads(metadata[b"geo"])
    assert geo["version"] == "1.1.0" and "covering" in geo["columns"]["geometry"]
    told = json.loads(metadata[b"orthotrace"])
    assert told["licence"] == "ODbL-1.0" and "OpenStreetMap" in told["attribution"]
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix == ".parquet") == [
        "buildings.parquet",
        "roads.parquet",
    ]


def test_another_parquet_is_no_extract(tmp_path: Path) -> None:
    with pytest.raises(TilingError, match=r"roads\.parquet is no extract"):
        load_extract(tmp_path)
    geopandas.GeoDataFrame(geometry=[box(0, 0, 1, 1)], crs="EPSG:4326").to_parquet(
        tmp_path / "roads.parquet"
    )
    with pytest.raises(TilingError, match=r"roads\.parquet is no extract"):
        load_extract(tmp_path)


def test_frames_of_another_schema_are_refused(tmp_path: Path) -> None:
    told = read_osm(write(tmp_path / "a.osm", TOWN))
    with pytest.raises(ValueError, match="an extract has"):
        Extract(told.roads.drop(columns="tags"), told.buildings)
    with pytest.raises(ValueError, match="in EPSG:3067"):
        Extract(told.roads.to_crs("EPSG:3067"), told.buildings)


# -- real extracts -----------------------------------------------------------------------------


@pytest.mark.real
@pytest.mark.parametrize(
    ("name", "roads", "buildings", "snapshot", "dropped"),
    [
        ("osm/Helsinki.osm.pbf", 1033, 443, "2019-04", {"building: incomplete relation": 6}),
        ("osm/osm2pgsql/liechtenstein-2013-08-03.osm.pbf", 2187, 3721, "2013-08", {}),
        ("osm/graphhopper/monaco.osm.gz", 546, 965, "2012-06", {"building: underground": 1}),
        ("osm/graphhopper/beatty.osm", 158, 104, "2017-06", {"road: path": 12}),
        ("osm/osmnx/West-Oakland.osm.bz2", 23, 23, "2016-07", {}),
        ("osm/osm-binary/sample.pbf", 26, 2, "2012-05", {}),  # out of order
        ("osm/swellendam.gpkg", 675, 4708, "", {"road: path": 42}),
        ("massachusetts/massachusetts.osm.pbf", 2655, 1628, "", {}),
    ],
)
def test_real_extracts(
    real_data: Path, name: str, roads: int, buildings: int, snapshot: str, dropped: dict[str, int]
) -> None:
    told = read_osm(real_data / name)
    assert (len(told.roads), len(told.buildings)) == (roads, buildings)
    assert (told.snapshot or "").startswith(snapshot)
    assert told.dropped.items() >= dropped.items()
    assert told.roads.is_valid.all() and told.buildings.is_valid.all()
    assert not Counter(told.buildings.geom_type).keys() - {"Polygon", "MultiPolygon"}
    assert set(told.roads["label"]) | set(told.buildings["label"]) <= {"yes", "unknown"}


ODD_XML = {
    "a long value": '<way id="1"><nd ref="1"/><tag k="highway" v="{}"/></way>'.format("x" * 9000),
    "no number": '<node id="abc" lat="1" lon="1"/>',
    "a huge number": f'<node id="{"9" * 24}" lat="1" lon="1"/>',
    "no latitude": '<node id="1" lat="nan" lon="1"/>',
    "off the Earth": '<node id="1" lat="1e10" lon="1"/>',
    "no time": '<node id="1" lat="1" lon="1" timestamp="yesterday"/>',
}


@pytest.mark.parametrize("odd", ODD_XML)
def test_xml_that_osm_cannot_hold_is_one_sentence(tmp_path: Path, odd: str) -> None:
    path = tmp_path / "a.osm"
    path.write_text(f'<osm version="0.6">{ODD_XML[odd]}</osm>')
    with pytest.raises(TilingError) as caught:
        read_osm(path)
    assert str(caught.value).startswith(str(path)) and "\n" not in str(caught.value)


def geojson(path: Path, geometry: dict[str, Any], **properties: Any) -> Path:
    feature = {"type": "Feature", "geometry": geometry, "properties": properties}
    path.write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}))
    return path


LINE = {"type": "LineString", "coordinates": [[25.0, 60.0], [25.001, 60.0]]}


@pytest.mark.parametrize(
    ("geometry", "tags"),
    [
        (LINE, {"tags": "{hello"}),
        (LINE, {"tags": ["a", "b"]}),
        ({"type": "LineString", "coordinates": [[25.0, 60.0]]}, {"highway": "primary"}),
    ],
)
def test_a_vector_file_of_nonsense_is_one_sentence(
    tmp_path: Path, geometry: dict[str, Any], tags: dict[str, Any]
) -> None:
    path = geojson(tmp_path / "a.geojson", geometry, **tags)
    with pytest.raises(TilingError) as caught:
        read_osm(path)
    assert str(caught.value).startswith(str(path)) and "\n" not in str(caught.value)


def test_a_file_that_says_nothing_of_roads_and_buildings_is_refused(tmp_path: Path) -> None:
    """It would be read as "nothing is there", and all ground as neither."""
    path = tmp_path / "a.gpkg"
    line, area = shapely.LineString(LINE["coordinates"]), box(25, 60, 25.001, 60.001)
    for name, shape in (("foo", line), ("bar", area)):
        frame = geopandas.GeoDataFrame({"x": [1]}, geometry=[shape], crs="EPSG:4326")
        frame.to_file(path, layer=name)
    for bounds in (None, (24.9, 59.9, 25.1, 60.1)):
        with pytest.raises(TilingError, match="does not say what is a road or a building"):
            read_osm(path, bounds)


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_a_road_without_a_place_is_refused(tmp_path: Path) -> None:
    line = shapely.LineString([(1, 1), (2, np.nan)])
    frame = geopandas.GeoDataFrame({"highway": ["primary"]}, geometry=[line], crs=4326)
    frame.to_parquet(tmp_path / "a.parquet")
    with pytest.raises(TilingError, match=r"a\.parquet .* is no finite number"):
        read_osm(tmp_path / "a.parquet")


def test_a_building_in_a_collection_is_counted(tmp_path: Path) -> None:
    whole = {"type": "GeometryCollection", "geometries": [LINE]}
    path = geojson(tmp_path / "a.geojson", whole, building="yes")
    told = read_osm(path, (24.9, 59.9, 25.1, 60.1))
    assert told.dropped == {"building: neither a line nor an area": 1}
