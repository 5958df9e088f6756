"""The coverage table keeps what was told, whatever moment a run ends at."""

from pathlib import Path

import geopandas as gpd
import pytest
from orthotrace.tiling.coverage import Coverage, Record
from orthotrace.tiling.errors import TilingError
from orthotrace.tiling.grid import Cell, Grid

GRID = Grid("EPSG:26918", (1.0, 1.0), cell=512, tile=256)


def some_records() -> list[Record]:
    return [
        Record("imagery", Cell(0, 1).name, "done", "aa", {"dates": ["2022-06-20"]}),
        Record("imagery", Cell(-1, 0).name, "failed", "ab", {"problem": "torn file"}),
        Record("scores-g0", Cell(0, 1).name, "done", "ac"),
    ]


def filled(folder: Path) -> Coverage:
    coverage = Coverage(folder, GRID)
    for record in some_records():
        coverage.add(record)
    return coverage


def test_an_unsaved_table_is_found_in_its_journal(tmp_path: Path) -> None:
    filled(tmp_path)
    assert not (tmp_path / "coverage.parquet").exists()
    again = Coverage(tmp_path, GRID)
    assert again.get("imagery", Cell(0, 1)) == some_records()[0]
    assert again.fingerprint("imagery", Cell(-1, 0)) == ""  # failed is not done
    assert again.get("imagery", Cell(5, 5)) is None  # not looked at


def test_a_torn_last_line_costs_that_line_alone(tmp_path: Path) -> None:
    filled(tmp_path)
    journal = tmp_path / "coverage.journal.jsonl"
    journal.write_text(journal.read_text()[:-9])
    again = Coverage(tmp_path, GRID)
    assert again.get("scores-g0", Cell(0, 1)) is None
    assert again.get("imagery", Cell(0, 1)) == some_records()[0]
    again.add(some_records()[2])  # goes on after the torn line, not on it
    assert Coverage(tmp_path, GRID).get("scores-g0", Cell(0, 1)) == some_records()[2]


def test_saved_and_read_it_is_the_same_and_a_map_too(tmp_path: Path) -> None:
    filled(tmp_path).save()
    assert not (tmp_path / "coverage.journal.jsonl").exists()
    again = Coverage(tmp_path, GRID)
    assert [again.get(r.stage, Cell.parse(r.cell)) for r in some_records()] == some_records()
    table = gpd.read_parquet(tmp_path / "coverage.parquet")
    assert table.crs == GRID.crs and table.geometry.area.tolist() == [512.0**2] * 2


def test_the_same_records_are_the_same_bytes(tmp_path: Path) -> None:
    one = filled(tmp_path / "one").save().read_bytes()
    backwards = Coverage(tmp_path / "two", GRID)
    for record in reversed(some_records()):
        backwards.add(record)
    assert backwards.save().read_bytes() == one


def test_another_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "coverage.parquet").write_text("no table")
    with pytest.raises(TilingError, match="no coverage table"):
        Coverage(tmp_path, GRID)
