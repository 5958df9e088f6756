"""A region file says what it means, and a wrong one is told what is wrong."""

import re
from pathlib import Path

import pytest
from orthotrace.mapping.errors import MappingError
from orthotrace.mapping.region import Region, files_of, read_region

ROOT = Path(__file__).parents[2]
LEAST = '[sources]\nimagery = ["scene.tif"]\nosm = "town.osm.pbf"\n'


def write(folder: Path, text: str) -> Path:
    path = folder / "town.toml"
    path.write_text(text)
    return path


def test_the_least_region_has_defaults_and_paths_of_its_own_folder(tmp_path: Path) -> None:
    region = read_region(write(tmp_path, LEAST))
    assert region.name == "town"
    assert region.sources.imagery == (str(tmp_path / "scene.tif"),)
    assert region.sources.osm == tmp_path / "town.osm.pbf"
    assert region.classes == ("road", "building") and region.grid.cell == 4096


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (LEAST + "[labels]\ngard_m = 1\n", "unknown key 'labels.gard_m'; did you mean 'guard_m'?"),
        (LEAST + "[recipe]\nminuets = 3\n", "did you mean 'minutes'?"),
        ("clases = ['road']\n" + LEAST, "did you mean 'classes'?"),
        (LEAST + "[mapped.building]\nfiel = 'a'\n", "did you mean 'file'?"),
        (LEAST + "[grid]\ncell = 1000\n", "cell is a multiple of tile"),
        (LEAST + "[boundary]\nplace = 'x'\nbbox = [0, 0, 1, 1]\n", "one of bbox, file and place"),
        (LEAST + "[boundary]\nbbox = [1, 0, 0, 1]\n", "west, south, east, north"),
        ("[sources]\nimagery = ['a.tif']\n", "one of osm (a file) and overpass"),
        ("[sources]\nimagery = []\nosm = 'a.pbf'\n", "sources.imagery"),
        ("classes = ['tree']\n" + LEAST, "classes"),
        ("name = '../up'\n" + LEAST, "'../up' is no name of a region; wanted small letters"),
        ("classes = ['road', 'road']\n" + LEAST, "classes are different ones"),
        ("[sources]\nimagery = ['']\nosm = 'a.pbf'\n", "sources.imagery: a source of imagery"),
        ('[sources]\nimagery = ["a\\u0000"]\nosm = "a.pbf"\n', "file, folder or glob"),
        (LEAST + "[boundary]\nbbox = [-1000, -1000, 1000, 1000]\n", "place on Earth"),
        (LEAST + "[boundary]\nbbox = [-inf, -inf, inf, inf]\n", "boundary.bbox.0"),
        (LEAST + "[grid]\ncrs = 'EPSG:5703'\n", "grid.crs: 'EPSG:5703' (NAVD88 height)"),
        (LEAST + "[recipe]\nencoder = 'resnet181'\n", "recipe.encoder: 'resnet181' is no encoder"),
        (LEAST + "[recipe]\nencoder = 'resnet18'\n", "wanted weights = 'none' with 'resnet18'"),
        (LEAST + "[recipe]\ncrop = 32\nbatch = 1\n", "a crop of 32 in a batch of 1"),
        (LEAST + "[recipe]\ncrop = 1024\n", "recipe.crop is at most grid.tile, got 1024 and 512"),
        (
            LEAST + "[labels]\nwidths = {residental = 7.0}\n",
            "labels.widths: no road is of the kind",
        ),
        (LEAST + "[labels]\nwidths = {residential = inf}\n", "labels.widths.residential"),
        ("[sources\n", "is no TOML"),
    ],
)
def test_a_wrong_region_is_one_sentence(tmp_path: Path, text: str, said: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(MappingError) as problem:
        read_region(path)
    assert said in str(problem.value) and str(path) in str(problem.value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("grid.pixel", "inf"),
        ("grid.cell", "1048576"),
        ("grid.tile", "8192"),
        ("held_back.seed", "-1"),
        ("refine.seed", "-1"),
        ("recipe.seed", "-1"),
        ("recipe.seed", "99999999999999999999999"),
        ("recipe.minutes", "inf"),
        ("recipe.minutes", "1e-9"),
        ("recipe.learning_rate", "inf"),
        ("recipe.learning_rate", "1e6"),
        ("recipe.batch", "1000000"),
        ("recipe.crop", "1048576"),
        ("recipe.window", "1000000"),
        ("recipe.margin", "1000000"),
        ("recipe.evaluations", "1000000000"),
        ("recipe.warmup", "1000000000"),
        ("labels.guard_m", "inf"),
        ("trace.min_road_m", "nan"),
    ],
)
def test_a_number_out_of_bounds_is_refused_by_its_key(tmp_path: Path, key: str, value: str) -> None:
    table, name = key.split(".")
    path = write(tmp_path, f"{LEAST}[{table}]\n{name} = {value}\n")
    with pytest.raises(MappingError, match=rf"town\.toml: {key}: .*should be.*, got"):
        read_region(path)


def test_the_files_of_a_region_are_all_that_it_names(tmp_path: Path) -> None:
    more = (
        "[boundary]\nfile = 'b.gpkg'\n[mapped.road]\nfile = 'm.gpkg'\n"
        "[held_back]\nfile = 'h.gpkg'\n[truth]\nfile = 't.gpkg'\n"
    )
    found = dict(files_of(read_region(write(tmp_path, LEAST + more))))
    assert found == {
        "sources.osm": tmp_path / "town.osm.pbf",
        "boundary.file": tmp_path / "b.gpkg",
        "mapped.road.file": tmp_path / "m.gpkg",
        "held_back.file": tmp_path / "h.gpkg",
        "truth.file": tmp_path / "t.gpkg",
    }


def test_no_region_is_said(tmp_path: Path) -> None:
    with pytest.raises(MappingError, match="wanted a region file"):
        read_region(tmp_path / "none.toml")


def test_every_region_file_of_the_project_is_right() -> None:
    for path in (ROOT / "regions").glob("*.toml"):
        read_region(path)


def test_the_manual_shows_every_key(tmp_path: Path) -> None:
    """Each key of the model stands in the manual, and the manual's examples are regions."""
    page = (ROOT / "docs" / "regions.md").read_text()
    examples = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    for example in examples:
        read_region(write(tmp_path, example))
    example = examples[0]
    for name, field in Region.model_fields.items():
        assert re.search(rf"\b{name}\b", example), name
        part = field.annotation
        if name != "recipe" and hasattr(part, "model_fields"):
            for key in part.model_fields:
                assert re.search(rf"\b{key} = ", example), f"{name}.{key}"
