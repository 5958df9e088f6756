"""The whole pipeline on a tiny county: what is done, what is left alone, and the same bytes."""

import hashlib
import os
import re
import shutil
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import geopandas as gpd
import numpy as np
import pytest
import rasterio
from orthotrace.mapping.county.make import County
from orthotrace.mapping.errors import CellsFailed, MappingError
from orthotrace.mapping.progress import Silent
from orthotrace.mapping.rasters import label_rules, nearby_features
from orthotrace.mapping.region import read_region
from orthotrace.mapping.session import Settings, Verb
from orthotrace.mapping.site import Site, mapped_areas, resolve
from orthotrace.mapping.stages import find_region, new_region, plan, run_to
from orthotrace.models.card import load_model
from orthotrace.tiling.catalogue import find_scenes
from orthotrace.tiling.coverage import Coverage
from orthotrace.tiling.errors import StorageError, TilingError
from orthotrace.tiling.files import alone_in
from orthotrace.tiling.grid import Window
from orthotrace.tiling.labels import burn

Write = Callable[..., Path]


def run(last: Verb, region: Path, data: Path, settings: Settings | None = None) -> Path:
    return run_to(last, region, data, settings or Settings(), Silent())


def digests(folder: Path) -> dict[str, str]:
    """Every file but the training's log, which tells seconds."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix != ".jsonl"
    }


def times(folder: Path, pattern: str) -> Mapping[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in folder.glob(pattern)}


def test_everything_is_made_and_a_second_run_gives_the_same_bytes(
    tiny: Write, tmp_path: Path
) -> None:
    page = run("view", tiny(), tmp_path / "one")
    site = page.parents[1]
    for name in ("tiny.gpkg", "roads.parquet", "buildings.parquet", "report.md", "picture.png"):
        assert (page.parent / name).stat().st_size > 0, name
    coverage = Coverage(site, resolve(read_region(tiny()), tmp_path / "one").grid)
    for stage in ("imagery", "labels-g0", "scores-g0", "traced-g0", "labels-g1", "traced-g1"):
        assert len(coverage.cells(stage)) == len(coverage.cells("imagery")) > 0, stage
    first = digests(site)
    before = times(site, "*/*.tif")

    run("view", tiny(), tmp_path / "one")
    assert times(site, "*/*.tif") == before, "what was up to date was done again"
    assert digests(site) == first

    run("view", tiny(), tmp_path / "two")
    other = digests(tmp_path / "two" / "tiny")
    assert {name for name in first if first[name] != other.get(name)} == set()


def test_cells_of_another_size_change_no_pixel_of_imagery_and_labels(
    tiny: Write, tmp_path: Path
) -> None:
    for cell in (128, 512):
        run("label", tiny(cell), tmp_path / str(cell))
    for layer in ("imagery", "labels-g0"):
        small, large = (_whole(tmp_path / str(cell) / "tiny" / layer) for cell in (128, 512))
        assert np.array_equal(small, large)


def _whole(folder: Path) -> Any:
    """The 384 x 384 px in the middle of a layer, at one place whatever its cells."""
    with rasterio.open(folder / "index.vrt") as source:
        row, col = source.index(499_780.0, 4_052_900.0)
        return source.read(window=rasterio.windows.Window(col - 100, row - 100, 200, 200))


def test_ended_half_way_only_the_rest_is_done(tiny: Write, tmp_path: Path) -> None:
    region = tiny()
    whole = run("label", region, tmp_path / "whole").parents[1]
    site = run("label", region, tmp_path / "cut").parents[1]
    lost = sorted((site / "labels-g0").glob("r*.tif"))[1]
    kept = times(site, "labels-g0/r*.tif")
    lost.unlink()
    run("label", region, tmp_path / "cut")
    again = times(site, "labels-g0/r*.tif")
    assert {name for name in kept if kept[name] != again[name]} == {lost.name}
    assert digests(site) == digests(whole)


@pytest.mark.parametrize("change", ["guard_m = 3.0", "widths = { default = 11.0 }"])
def test_a_changed_guard_or_width_makes_labels_stale_and_leaves_imagery_and_osm_alone(
    tiny: Write, tmp_path: Path, change: str
) -> None:
    site = run("label", tiny(), tmp_path).parents[1]
    labels = digests(site / "labels-g0")
    before = times(site, "imagery/r*.tif"), times(site, "osm/*.parquet")
    run("label", tiny(more=f"[labels]\n{change}\n"), tmp_path)
    assert (times(site, "imagery/r*.tif"), times(site, "osm/*.parquet")) == before
    changed = digests(site / "labels-g0")
    assert any(labels[name] != changed[name] for name in labels if name.endswith(".tif"))


def test_other_classes_make_all_labels_anew(tiny: Write, tmp_path: Path) -> None:
    region = tiny()
    run("label", region, tmp_path / "changed")
    region.write_text('classes = ["road"]' + region.read_text())
    for folder in ("changed", "fresh"):
        run("label", region, tmp_path / folder)
    fresh, changed = (
        digests(tmp_path / name / "tiny" / "labels-g0") for name in ("fresh", "changed")
    )
    assert fresh == changed and len(fresh) > 2


def test_a_second_run_of_the_same_region_is_refused(tiny: Write, tmp_path: Path) -> None:
    region = tiny()
    site = run("tile", region, tmp_path).parents[1]
    with alone_in(site), pytest.raises(StorageError, match=f"another run is at work in {site}"):
        run("label", region, tmp_path)
    run("label", region, tmp_path)


def test_dask_gives_the_same_bytes(tiny: Write, tmp_path: Path) -> None:
    region = tiny()
    run("train", region, tmp_path / "loop")
    shutil.copytree(tmp_path / "loop", tmp_path / "dask")
    for layer in ("imagery", "labels-g0"):
        shutil.rmtree(tmp_path / "dask" / "tiny" / layer)
    settings = Settings(generation=0)
    run("trace", region, tmp_path / "loop", settings)
    run("trace", region, tmp_path / "dask", replace(settings, workers=2))
    assert digests(tmp_path / "loop" / "tiny") == digests(tmp_path / "dask" / "tiny")


def test_a_model_of_a_told_budget_stands_until_another_is_told(tiny: Write, tmp_path: Path) -> None:
    region = tiny()
    model = run("train", region, tmp_path, Settings(steps=3))
    made = model.stat().st_mtime_ns
    run("predict", region, tmp_path)
    run("train", region, tmp_path, Settings(steps=3))
    assert model.stat().st_mtime_ns == made
    run("train", region, tmp_path, Settings(steps=5))
    assert load_model(model).card.recipe["steps"] == 5
    region.write_text(region.read_text().replace("steps = 4", "steps = 6"))
    run("train", region, tmp_path)
    assert load_model(model).card.recipe["steps"] == 6


def test_cells_outside_a_smaller_boundary_are_gone(tiny: Write, tmp_path: Path) -> None:
    """Old and new never mix: they would be trained on with the labels of another day."""
    region = tiny()
    site = run("label", region, tmp_path).parents[1]
    cells = resolve(read_region(region), tmp_path).cells
    west, south, east, north = gpd.read_file(boundary_file(region)).to_crs(4326).total_bounds
    half = [float(side) for side in (west, south, (west + east) / 2, north)]
    text = region.read_text().replace("[boundary]\nfile", f"[boundary]\nbbox = {half}\n#")
    region.write_text(text)
    run("label", region, tmp_path)
    left = {cell.name for cell in resolve(read_region(region), tmp_path).cells}
    assert 0 < len(left) < len(cells)
    for layer in ("imagery", "labels-g0"):
        assert {path.stem for path in (site / layer).glob("r*.tif")} == left
    table = gpd.read_parquet(site / "coverage.parquet")
    assert set(table["cell"]) == left


def boundary_file(region: Path) -> Path:
    """The boundary's file of a region."""
    return Path(tomllib.loads(region.read_text())["boundary"]["file"])


def test_an_export_in_a_persons_own_crs_is_left_alone(tiny: Write, tmp_path: Path) -> None:
    region = tiny()
    made = run("export", region, tmp_path, Settings(formats=("gpkg",), crs="EPSG:4326"))
    before = made.stat().st_mtime_ns
    run("view", region, tmp_path)
    assert made.stat().st_mtime_ns == before
    assert gpd.read_file(made, layer="roads").crs == "EPSG:4326"


def test_a_cell_that_fails_is_named_and_the_others_are_done(tiny: Write, tmp_path: Path) -> None:
    region = tiny()
    site = run("tile", region, tmp_path).parents[1]
    torn = sorted((site / "imagery").glob("r*.tif"))[0]
    torn.write_bytes(torn.read_bytes()[:2000])
    with pytest.raises(CellsFailed) as failed:
        run("label", region, tmp_path)
    assert torn.stem in str(failed.value) and "1 of" in str(failed.value)
    cells = len(list((site / "imagery").glob("r*.tif")))
    assert len(list((site / "labels-g0").glob("r*.tif"))) == cells - 1
    table = gpd.read_parquet(site / "coverage.parquet").set_index("cell")
    assert table.loc[torn.stem, "labels-g0:state"] == "failed"


def test_refining_adds_and_deletes_nothing_that_is_mapped(tiny: Write, tmp_path: Path) -> None:
    region = tiny()
    run("refine", region, tmp_path)
    site = resolve(read_region(region), tmp_path)
    for cell in site.cells:
        window = site.grid.window(cell)
        before = site.labels(0).read(window).data_CHW
        after = site.labels(1).read(window).data_CHW
        assert (after[before == 1] == 1).all()
        assert not ((before == 255) & (after == 0) & ~_known(site, window)).any()


def _known(site: Site, window: Window) -> Any:
    """What OSM's labels know where nothing is hidden: in generation 0 some of it was unknown."""
    rules = label_rules(site)
    near = nearby_features(site.folder / "osm", rules, site.grid, window)
    valid_HW = site.imagery.read(window).valid_HW
    return burn(rules, site.grid, window, near, mapped_areas(site), valid_HW) != 255


@pytest.mark.parametrize("change", ["[trace]\nmin_building_m2 = 60.0\n", "[refine]\nrounds = 2\n"])
def test_refined_labels_go_stale_with_what_they_were_made_by(
    tiny: Write, tmp_path: Path, change: str
) -> None:
    site = run("refine", tiny(), tmp_path).parents[1]
    made = times(site, "labels-g1/r*.tif")
    run("refine", tiny(), tmp_path)
    assert times(site, "labels-g1/r*.tif") == made
    run("refine", tiny(more=change), tmp_path, Settings(generation=0))
    assert all(made[name] != now for name, now in times(site, "labels-g1/r*.tif").items())


def test_the_plan_of_each_verb_ends_with_it(tiny: Write, tmp_path: Path) -> None:
    site = resolve(read_region(tiny()), tmp_path)

    def verbs(last: Verb, generation: int | None = None) -> list[str]:
        return [f"{stage.verb}{g}" for stage, g in plan(site, last, generation)]

    assert verbs("label") == ["tile0", "label0"]
    assert verbs("train") == ["tile0", "label0", "train0"]
    assert verbs("refine")[-1] == "refine0"
    assert verbs("trace")[2:] == ["train0", "predict0", "refine0", "train1", "predict1", "trace1"]
    assert verbs("trace", 0)[2:] == ["train0", "predict0", "trace0"]
    assert verbs("view")[-4:] == ["compare1", "export1", "evaluate1", "view1"]


def test_a_boundary_without_imagery_says_both_extents(tiny: Write, tmp_path: Path) -> None:
    text = (
        tiny().read_text().replace("[boundary]\nfile", "[boundary]\nbbox = [-77, 36, -76, 37]\n#")
    )
    (tmp_path / "far.toml").write_text(text)
    with pytest.raises(MappingError, match=r"-78\.0.*36\.6.* -77\.0.*, 3[56]\.\d+, -7[56]\.\d+"):
        run("tile", tmp_path / "far.toml", tmp_path)


@pytest.mark.parametrize("key", ["osm", "file", "truth", "held_back", "mapped"])
def test_a_file_that_is_not_there_is_said_before_any_work(
    tiny: Write, tmp_path: Path, key: str
) -> None:
    region = tiny()
    text = region.read_text().replace("share = 0.1\n", "")
    named = {
        "osm": ("sources.osm", r'osm = ".*"', 'osm = "no"'),
        "file": ("boundary.file", r'(\[boundary\]\n)file = ".*"', r'\1file = "no"'),
        "truth": ("truth.file", r'(\[truth\]\n)file = ".*"', r'\1file = "no"'),
        "held_back": ("held_back.file", r"(\[held_back\]\n)", r'\1file = "no"\n'),
        "mapped": ("mapped.road.file", r"\Z", '[mapped.road]\nfile = "no"\n'),
    }
    wanted, pattern, instead = named[key]
    region.write_text(re.sub(pattern, instead, text))
    with pytest.raises(MappingError, match=f"{wanted} is .*no; wanted a file"):
        run("tile", region, tmp_path / "data")
    assert not list((tmp_path / "data").rglob("*"))


@pytest.mark.parametrize("pixel", ["1e-6", "1e9"])
def test_a_pixel_far_from_the_imagerys_is_said(tiny: Write, tmp_path: Path, pixel: str) -> None:
    region = tiny()
    region.write_text(region.read_text().replace("pixel = 1.0", f"pixel = {pixel}"))
    with pytest.raises(MappingError, match=r"grid\.pixel is .* wanted at most 16 times"):
        run("tile", region, tmp_path / "data")


@pytest.mark.parametrize("text", ["", '{"gr', "[]", "\xff"])
def test_a_damaged_lock_file_is_said(tiny: Write, tmp_path: Path, text: str) -> None:
    site = resolve(read_region(tiny()), tmp_path)
    site.lock_path.write_text(text, encoding="latin-1")
    with pytest.raises(MappingError, match=r"region\.lock\.json is damaged.* remove it"):
        run("tile", tiny(), tmp_path)


def test_a_generation_that_the_region_has_not_is_said(tiny: Write, tmp_path: Path) -> None:
    with pytest.raises(MappingError, match=r"refine\.rounds"):
        run("train", tiny(), tmp_path, Settings(generation=5))


def test_a_region_that_is_not_there_is_told_how_to_make(tmp_path: Path) -> None:
    (tmp_path / "other.toml").touch()
    with pytest.raises(MappingError, match=r"other.*orthotrace tile town --imagery"):
        find_region("town", tmp_path / "data", tmp_path)


def test_an_image_without_a_model_is_asked_for_one(tmp_path: Path) -> None:
    (tmp_path / "scene.tif").touch()
    with pytest.raises(MappingError, match=r"scene\.tif is a file and no region.*--model"):
        find_region(str(tmp_path / "scene.tif"), tmp_path, tmp_path)


def test_a_new_region_is_written_once(
    county: County, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    scene = str(county.imagery[0])
    path = new_region("town", [scene], county.osm)
    assert read_region(path).sources.osm == county.osm
    with pytest.raises(MappingError, match="there already"):
        new_region("town", [scene], county.osm)


@pytest.mark.parametrize("name", ["My Town", "../evil", "Town.toml", ""])
def test_what_names_no_region_is_said_before_a_file_is_written(
    county: County, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MappingError, match="is no name of a region; wanted small letters"):
        new_region(name, [str(county.imagery[0])], county.osm)
    assert not list(tmp_path.iterdir())


def test_a_new_region_may_be_in_a_folder_of_any_name(
    county: County, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / 'Karte [1] 😀 " ö'
    folder.mkdir()
    monkeypatch.chdir(folder)
    shutil.copy(county.imagery[0], "a.tif")
    shutil.copy(county.osm, "😀.osm.pbf")
    region = read_region(new_region("town", ["*.tif"], Path("😀.osm.pbf")))
    assert [scene.path for scene in find_scenes(region.sources.imagery, Path())] == [
        folder / "a.tif"
    ]
    assert region.sources.osm == folder / "😀.osm.pbf"
    bad = Path(os.fsdecode(b"bad\xff.tif"))
    shutil.copy("a.tif", bad)
    with pytest.raises(MappingError, match="not in UTF-8"):
        new_region("city", ["a.tif"], bad)
    with pytest.raises(TilingError, match=r"tif cannot be read .*utf-8"):
        new_region("city", [str(bad)], Path("😀.osm.pbf"))
    assert [path.name for path in Path("regions").iterdir()] == ["town.toml"]


def test_a_new_region_that_is_refused_leaves_no_file(
    county: County, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "torn.tif").write_bytes(b"II*")
    for scene in ("gone.tif", str(tmp_path / "gone.tif"), "torn.tif"):
        with pytest.raises(TilingError, match=Path(scene).name):
            new_region("city", [scene], county.osm)
    with pytest.raises(MappingError, match=r"no\.pbf is not there"):
        new_region("city", [str(county.imagery[0])], Path("no.pbf"))
    with pytest.raises(MappingError, match="has both"):
        new_region("city", [str(county.imagery[0])], None)
    assert not (tmp_path / "regions").exists()
