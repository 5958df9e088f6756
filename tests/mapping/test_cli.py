"""The command line: its verbs, its exit codes, and what it says when a person errs."""

import os
import re
import runpy
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from orthotrace.mapping import cli, stages
from orthotrace.mapping.errors import CellsFailed
from orthotrace.models.errors import ModelError

ROOT = Path(__file__).parents[2]
VERBS = "demo tile label train predict refine trace map compare evaluate export view run".split()
Write = Callable[..., Path]


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str], code: int = 2) -> str:
    """Run a command that must end with a code and, after what it did, one sentence."""
    assert cli.main(arguments) == code
    told = capsys.readouterr().err
    assert told.count("orthotrace: ") == 1 and "Traceback" not in told, told
    return told.splitlines()[-1]


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_of_each_verb_is_worth_reading(
    verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([verb, "--help"]) == 0
    assert len(capsys.readouterr().out.split()) > 25


def test_only_verbs_that_exist_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["--help"])
    listed = re.findall(r"^│ (\w+) ", capsys.readouterr().out, re.MULTILINE)
    assert [verb for verb in listed if verb not in ("version", "help")] == VERBS


def test_every_verb_of_a_region_is_a_target_of_make() -> None:
    makefile = (ROOT / "Makefile").read_text()
    (line,) = re.findall(r"^VERBS := (.*)$", makefile, re.MULTILINE)
    assert set(line.split()) | {"demo"} == set(VERBS)


def test_make_without_a_region_says_what_it_needs() -> None:
    told = subprocess.run(
        ["make", "--dry-run", "train"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert "make train REGION=demo" in told.stdout + told.stderr


def test_a_typo_in_a_region_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "town.toml"
    path.write_text('[sources]\nimagery = ["a.tif"]\nosm = "a.pbf"\n[labels]\ngaurd_m = 1\n')
    told = refused(["label", str(path), "--data", str(tmp_path)], capsys)
    assert "gaurd_m" in told and "guard_m" in told


def test_a_verb_or_option_that_is_not_there_is_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["trian", "town"]) == 2
    assert cli.main(["train", "town", "--minuets", "3"]) == 2
    assert "minutes" in capsys.readouterr().err


def test_codes_are_2_3_and_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def ends_with(problem: BaseException) -> Callable[..., Path]:
        def run_to(*told: object) -> Path:
            raise problem

        return run_to

    for problem, code in (
        (ModelError("the labels are all unknown"), 2),
        (CellsFailed("1 of 9 cells failed"), 3),
        (KeyboardInterrupt(), 130),
    ):
        monkeypatch.setattr(stages, "run_to", ends_with(problem))
        assert cli.main(["train", "some.toml"]) == code
        assert capsys.readouterr().err.count("\n") == 1


def test_the_module_ends_with_the_commands_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["orthotrace", "trian"])
    with pytest.raises(SystemExit) as end:
        runpy.run_module("orthotrace", run_name="__main__")
    assert end.value.code == 2


def test_formats_and_crs_of_an_export_are_known_before_any_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for option, value, said in (
        ("--format", "shp", "no export to shp; wanted some of gpkg"),
        ("--crs", "EPSG:4978", "no CRS of maps of Earth"),
        ("--crs", "IAU_2015:30100", "no CRS of maps of Earth"),
    ):
        assert said in refused(["export", "none", option, value, "--data", str(tmp_path)], capsys)


@pytest.mark.parametrize("seed", ["-1", "99999999999999999999999"])
def test_a_county_has_a_seed_in_bounds(
    seed: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["demo", "--seed", seed, "--data", str(tmp_path)]) == 2
    assert "--seed" in capsys.readouterr().err and not list(tmp_path.iterdir())


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of two megabytes."""
    if os.geteuid() != 0 or not sys.platform.startswith("linux"):
        pytest.skip("needs root on Linux to mount a small disk")
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", disk], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip(f"no small disk can be mounted here: {mounted.stderr.decode().strip()}")
    yield disk
    subprocess.run(["umount", "--lazy", disk], check=True)


def test_a_full_disk_is_one_sentence_and_leaves_nothing_half_written(
    tiny: Write, small_disk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    region = tiny(cell=512)
    (small_disk / "filler").write_bytes(b"0" * 1_500_000)
    told = refused(["label", str(region), "--data", str(small_disk)], capsys)
    assert "full" in told and str(small_disk) in told
    assert not list(small_disk.rglob(".part-*"))


def test_labels_that_are_all_unknown_are_nothing_to_train_on(
    tiny: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import geopandas as gpd
    from shapely import box

    far = gpd.GeoDataFrame(geometry=[box(0, 0, 1, 1)], crs="EPSG:4326")
    far.to_file(tmp_path / "far.gpkg", layer="far", driver="GPKG")
    mapped = "".join(f'[mapped.{name}]\nfile = "far.gpkg"\n' for name in ("road", "building"))
    told = refused(
        ["train", str(tiny(more=mapped)), "--steps", "2", "--data", str(tmp_path)], capsys
    )
    assert "without known labels" in told


def test_an_extract_of_another_place_says_both_extents(
    tiny: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import osmium

    path = tmp_path / "other.osm.pbf"
    with osmium.SimpleWriter(str(path)) as writer:
        for number, lon in ((1, 7.41), (2, 7.42)):
            writer.add_node(osmium.osm.mutable.Node(id=number, location=(lon, 43.73), version=1))
        road = osmium.osm.mutable.Way(
            id=1, nodes=[1, 2], tags={"highway": "residential"}, version=1
        )
        writer.add_way(road)
    region = tiny()
    region.write_text(re.sub(r'osm = ".*"', f'osm = "{path}"', region.read_text()))
    told = refused(["label", str(region), "--data", str(tmp_path)], capsys)
    assert "7.4" in told and "-78.0" in told
