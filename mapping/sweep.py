"""One stage swept over a region's cells: only what is missing or stale is done."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from ..tiling.coverage import Coverage, Record
from ..tiling.grid import Cell
from ..tiling.layer import Layer
from ..tiling.runner import Runner
from .errors import CellsFailed
from .progress import Progress
from .session import Session


class Job(Protocol):
    """What a stage's function is given for one cell; small, and it pickles."""

    @property
    def cell(self) -> Cell: ...


J = TypeVar("J", bound=Job)


@dataclass(frozen=True, slots=True)
class Sweep:
    """What was done: numbers of cells."""

    done: int
    kept: int
    """Up to date before."""


def sweep(
    stage: str,
    work: Callable[[J], Mapping[str, Any]],
    jobs: Sequence[tuple[J, str]],
    *,
    output: Callable[[Cell], Path],
    coverage: Coverage,
    run: Runner,
    progress: Progress,
) -> Sweep:
    """Do `work` for each job whose cell has no output, or one of another fingerprint.

    `jobs` go with the fingerprint of their inputs and recipe; `work` writes `output(cell)` and
    returns the facts for the coverage table. CellsFailed names the cells that failed, after the
    others are done.
    """
    fingerprints = {job.cell: fingerprint for job, fingerprint in jobs}
    waiting = [
        job
        for job, fingerprint in jobs
        if coverage.fingerprint(stage, job.cell) != fingerprint or not output(job.cell).exists()
    ]
    failed: list[tuple[str, str]] = []
    try:
        with progress.bar(stage, len(waiting)) as advance:
            for outcome in run(work, waiting):
                cell = outcome.item.cell
                if outcome.value is None:
                    failed.append((cell.name, outcome.problem))
                    facts = {"problem": outcome.problem, "trace": outcome.trace}
                    coverage.add(Record(stage, cell.name, "failed", fingerprints[cell], facts))
                else:
                    record = Record(stage, cell.name, "done", fingerprints[cell], outcome.value)
                    coverage.add(record)
                advance()
    finally:
        coverage.save()
    if failed:
        listed = "\n".join(f"  {name}: {problem}" for name, problem in sorted(failed))
        raise CellsFailed(
            f"{stage}: {len(failed)} of {len(jobs)} cells failed, the others are done:\n{listed}"
        )
    return Sweep(len(waiting), len(jobs) - len(waiting))


def fill(
    layer: Layer,
    work: Callable[[J], Mapping[str, Any]],
    jobs: Sequence[tuple[J, str]],
    coverage: Coverage,
    session: Session,
) -> Path:
    """Sweep `work`, which writes the cells of a layer; the layer's index."""
    sweep(
        layer.folder.name,
        work,
        jobs,
        output=layer.path,
        coverage=coverage,
        run=session.run,
        progress=session.progress,
    )
    return layer.write_index()
