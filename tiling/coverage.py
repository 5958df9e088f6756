"""The coverage table: for each cell what was looked at, with what, and how it ended.

`coverage.parquet` has one row a cell and three columns a stage: its state, the fingerprint of
its inputs and recipe, and its facts (JSON: dates, sources, counts). "Looked and found nothing" is a
row that is done; "not looked" is no row. While a stage runs, each cell that ends adds one line to
a journal beside the table, so that a run ended half-way has lost nothing; the next one folds it in.
"""

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import geopandas as gpd
import pandas as pd
from shapely import box

from .errors import TilingError
from .files import add_line, fingerprint, make_folder, remove, written_beside
from .grid import Cell, Grid, Window

State = Literal["done", "failed"]


@dataclass(frozen=True, slots=True)
class Record:
    """How one stage ended in one cell."""

    stage: str
    """The layer that the stage writes, or the stage's name: "imagery", "scores-g0"."""

    cell: str
    """The cell's name."""

    state: State

    fingerprint: str = ""
    """Of the stage's inputs and recipe: another one makes the cell stale."""

    facts: Mapping[str, Any] = field(default_factory=dict)
    """What a person may ask later, in types of JSON: dates, sources, counts, or the failure."""


class Coverage:
    """The table of one region, in memory and on disk; only one process writes it.

    Records come in one by one through `add`, which is durable at once; `save` folds them into
    the Parquet file.
    """

    def __init__(self, folder: Path, grid: Grid) -> None:
        self._table = folder / "coverage.parquet"
        self._journal = folder / "coverage.journal.jsonl"
        self._grid = grid
        self._records: dict[tuple[str, str], Record] = {}
        for record in (*_read_table(self._table), *_read_journal(self._journal)):
            self._records[record.stage, record.cell] = record
        if self._journal.exists():
            self.save()

    def add(self, record: Record) -> None:
        """Keep a record, in the journal too."""
        make_folder(self._journal.parent)
        add_line(self._journal, json.dumps(asdict(record), sort_keys=True))
        self._records[record.stage, record.cell] = record

    def get(self, stage: str, cell: Cell) -> Record | None:
        """How `stage` last ended in `cell`; None if it was never looked at."""
        return self._records.get((stage, cell.name))

    def fingerprint(self, stage: str, cell: Cell) -> str:
        """The fingerprint of what `stage` left in `cell`; empty if it is not done."""
        record = self.get(stage, cell)
        return record.fingerprint if record is not None and record.state == "done" else ""

    def cells(self, stage: str) -> list[Cell]:
        """The cells that `stage` has looked at, done or failed, row by row."""
        return sorted(Cell.parse(cell) for told, cell in self._records if told == stage)

    def forget(self, stage: str, cell: Cell) -> None:
        """Drop a record, for good with the next `save`."""
        self._records.pop((stage, cell.name), None)

    def fingerprint_over(self, stage: str, window: Window) -> str:
        """One for all that `stage` left, or has not done, in the cells that `window` touches.

        It changes with any of them: whoever reads that window depends on them all.
        """
        return fingerprint(*(self.fingerprint(stage, cell) for cell in self._grid.cells(window)))

    def facts(self, stage: str) -> dict[str, Mapping[str, Any]]:
        """The facts of `stage` by the name of the cell."""
        return {r.cell: r.facts for r in self._records.values() if r.stage == stage}

    def save(self) -> Path:
        """Write the table and end the journal."""
        table = _to_table(self._records.values(), self._grid)
        with written_beside(self._table) as part:
            table.to_parquet(part, compression="zstd", index=False)
        remove(self._journal)
        return self._table


def _to_table(records: Iterable[Record], grid: Grid) -> gpd.GeoDataFrame:
    rows: dict[str, dict[str, str]] = {}
    for record in sorted(records, key=lambda r: (r.cell, r.stage)):
        row = rows.setdefault(record.cell, {"cell": record.cell})
        row[f"{record.stage}:state"] = record.state
        row[f"{record.stage}:fingerprint"] = record.fingerprint
        row[f"{record.stage}:facts"] = json.dumps(record.facts, sort_keys=True)
    boxes = [box(*grid.bounds(grid.window(Cell.parse(name)))) for name in rows]
    columns = sorted({column for row in rows.values() for column in row} - {"cell"})
    table = pd.DataFrame(list(rows.values()), columns=["cell", *columns])
    return gpd.GeoDataFrame(table, geometry=boxes, crs=grid.crs)


def _read_table(path: Path) -> list[Record]:
    if not path.exists():
        return []
    try:
        table = gpd.read_parquet(path)
    except (OSError, ValueError) as problem:
        raise TilingError(
            f"{path} is no coverage table ({problem}); remove it and run the region again"
        ) from problem
    stages = sorted({column.rpartition(":")[0] for column in table if ":" in column})
    return [
        Record(
            stage,
            row["cell"],
            row[f"{stage}:state"],
            row[f"{stage}:fingerprint"],
            json.loads(row[f"{stage}:facts"]),
        )
        for row in table.to_dict("records")
        for stage in stages
        if isinstance(row[f"{stage}:state"], str)
    ]


def _read_journal(path: Path) -> list[Record]:
    """The journal's lines; one that is torn is as if its cell had not been looked at.

    The last one is, if the run was ended while writing it.
    """
    lines = path.read_text(errors="replace").split("\n") if path.exists() else []
    records = []
    for line in lines[:-1]:
        with suppress(ValueError, TypeError):
            records.append(Record(**json.loads(line)))
    return records
