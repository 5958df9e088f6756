"""Areas of files, rectangles and places: repaired, brought to the grid, or one sentence."""

from pathlib import Path

import geopandas as gpd
import pandas as pd
import pyogrio
import pytest
import shapely
from orthotrace.mapping.areas import boundary_of, read_polygons
from orthotrace.mapping.errors import MappingError
from orthotrace.mapping.parts import Polygons
from orthotrace.mapping.region import Region
from shapely import Polygon, box

UTM = "EPSG:32618"
NEAR = (500_000.0, 3_999_900.0, 500_100.0, 4_000_000.0)
SQUARE = box(500_010, 3_999_910, 500_090, 3_999_990)
BOW_TIE = Polygon(
    [(500_010, 3_999_910), (500_090, 3_999_990), (500_090, 3_999_910), (500_010, 3_999_990)]
)
LOCAL = 'LOCAL_CS["x",UNIT["m",1]]'


def write(path: Path, *areas: shapely.Geometry, crs: str = UTM, layer: str = "area") -> Path:
    gpd.GeoDataFrame(geometry=list(areas), crs=crs).to_file(path, layer=layer)
    return path


def region(**boundary: object) -> Region:
    sources = {"imagery": ["a.tif"], "osm": "a.pbf"}
    return Region.model_validate({"name": "town", "sources": sources, "boundary": boundary})


def test_a_ring_that_crosses_itself_is_its_two_wings(tmp_path: Path) -> None:
    file = write(tmp_path / "bow.gpkg", BOW_TIE)
    area = read_polygons(Polygons(file=file), UTM, NEAR)
    assert area.is_valid and area.area == pytest.approx(3200)
    found = boundary_of(region(file=file), UTM, box(*NEAR), tmp_path)
    assert found.equals(area)


def two_layers(folder: Path) -> Path:
    path = write(folder / "two.gpkg", SQUARE, layer="one")
    return write(path, SQUARE, layer="two")


def a_table(folder: Path) -> Path:
    pd.DataFrame({"a": [1]}).to_csv(folder / "t.csv")
    return folder / "t.csv"


def a_layer_without_shapes(folder: Path) -> Path:
    pyogrio.write_dataframe(pd.DataFrame({"a": [1]}), folder / "t.gpkg")
    return folder / "t.gpkg"


def no_number(folder: Path) -> Path:
    ring = [(500_010, 3_999_910), (float("nan"), 3_999_910), (500_010, 3_999_990)]
    return write(folder / "nan.gpkg", Polygon(ring))


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
@pytest.mark.parametrize(
    ("made", "said"),
    [
        (two_layers, "2 layers of shapes (one, two)"),
        (a_table, "0 layers of shapes (none)"),
        (a_layer_without_shapes, "0 layers of shapes (none)"),
        (no_number, "no finite number"),
        (lambda folder: write(folder / "l.gpkg", SQUARE, crs=LOCAL), "wanted at least one polygon"),
        (lambda folder: write(folder / "l.gpkg", SQUARE.boundary), "0 polygons"),
        (lambda folder: folder / "none.gpkg", "cannot be read"),
    ],
)
def test_a_file_of_no_use_is_one_sentence(made: object, said: str, tmp_path: Path) -> None:
    # The table of cases is of object, since it mixes makers and sentences.
    file = made(tmp_path)  # type: ignore[operator]
    with pytest.raises(MappingError) as problem:
        read_polygons(Polygons(file=file), UTM, NEAR)
    assert said in str(problem.value) and str(file) in str(problem.value)


def test_the_told_layer_is_read(tmp_path: Path) -> None:
    file = two_layers(tmp_path)
    assert read_polygons(Polygons(file=file, layer="two"), UTM, NEAR).equals(SQUARE)
    pyogrio.write_dataframe(pd.DataFrame({"a": [1]}), file, layer="notes")
    with pytest.raises(MappingError, match="no shapes in notes"):
        read_polygons(Polygons(file=file, layer="notes"), UTM, NEAR)


@pytest.mark.parametrize("crs", ["EPSG:32618", "EPSG:3857", "EPSG:32660", "EPSG:32701"])
def test_the_whole_world_is_all_of_the_imagery(crs: str, tmp_path: Path) -> None:
    """UTM has no shape for the world; the last two are imagery over the antimeridian."""
    x = 830_000 if crs == "EPSG:32660" else 180_000 if crs == "EPSG:32701" else 500_000
    y = 8_000_000 if crs == "EPSG:32701" else 100_000 if crs == "EPSG:32660" else 4_000_000
    imagery = box(x - 10_000, y, x + 10_000, y + 10_000)
    world = (-180.0, -90.0, 180.0, 90.0) if x == 500_000 else (170.0, -90.0, 190.0, 90.0)
    file = write(tmp_path / "world.gpkg", box(*world), crs="EPSG:4326")
    for told in (region(bbox=world), region(file=file)):
        found = boundary_of(told, crs, imagery, tmp_path)
        assert found.intersection(imagery).area == pytest.approx(imagery.area)
    mapped = read_polygons(Polygons(file=file), crs, imagery.bounds)
    assert mapped.intersection(imagery).area == pytest.approx(imagery.area)


def test_polygons_far_away_are_empty_and_a_boundary_there_says_both_extents(
    tmp_path: Path,
) -> None:
    file = write(tmp_path / "far.gpkg", box(10, 10, 11, 11), crs="EPSG:4326")
    assert read_polygons(Polygons(file=file), UTM, NEAR).is_empty
    with pytest.raises(MappingError, match=r"-75\.0.*36\.1.*10\.0000, 10\.0000, 11\.0000"):
        boundary_of(region(file=file), UTM, box(*NEAR), tmp_path)
