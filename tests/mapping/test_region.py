"""A region file says what it means, and a wrong one is told what is wrong."""

import re
from pathlib import Path

import pytest
from orthotrace.mapping.errors import MappingError
from orthotrace.mapping.region import Region, read_region

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
        ("name = '../up'\n" + LEAST, "name"),
        ("[sources\n", "is no TOML"),
    ],
)
def test_a_wrong_region_is_one_sentence(tmp_path: Path, text: str, said: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(MappingError) as problem:
        read_region(path)
    assert said in str(problem.value) and str(path) in str(problem.value)


def test_no_region_is_said(tmp_path: Path) -> None:
    with pytest.raises(MappingError, match="wanted a region file"):
        read_region(tmp_path / "none.toml")


def test_every_region_file_of_the_project_is_right() -> None:
    for path in (ROOT / "regions").glob("*.toml"):
        read_region(path)


def test_the_manual_shows_every_key(tmp_path: Path) -> None:
    """Each key of the model stands in the manual, and the manual's example is a region."""
    page = (ROOT / "docs" / "regions.md").read_text()
    (example,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    read_region(write(tmp_path, example))
    for name, field in Region.model_fields.items():
        assert re.search(rf"\b{name}\b", example), name
        part = field.annotation
        if name != "recipe" and hasattr(part, "model_fields"):
            for key in part.model_fields:
                assert re.search(rf"\b{key} = ", example), f"{name}.{key}"
