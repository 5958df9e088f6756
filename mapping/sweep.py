"""One stage swept over a region's cells: only what is missing or stale is done."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from ..tiling.coverage import Coverage, Record
from ..tiling.files import remove
from ..tiling.grid import Cell
from ..tiling.layer import Layer
from ..tiling.runner import Outcome
from .errors import CellsFailed
from .session import Session


class Job(Protocol):
    """What a stage's function is given for one cell; small, and it pickles."""

    @property
    def cell(self) -> Cell: ...


J = TypeVar("J", bound=Job)


def sweep(
    stage: str,
    work: Callable[[J], Mapping[str, Any]],
    jobs: Sequence[tuple[J, str]],
    *,
    output: Callable[[Cell], Path],
    coverage: Coverage,
    session: Session,
) -> None:
    """Do `work` for each job whose cell has no output, or one of another fingerprint.

    `jobs` go with the fingerprint of their inputs and recipe; `work` writes `output(cell)` and
    returns the facts for the coverage table. Old and new never mix: what stands for a cell that
    is no job's any more is removed, and so is the old output of a cell that failed. The session
    keeps the names of cells that failed; CellsFailed if none is left to go on with.
    """
    wanted = {job.cell: fingerprint for job, fingerprint in jobs}
    for cell in set(coverage.cells(stage)) - set(wanted):
        remove(output(cell))
        coverage.forget(stage, cell)
    waiting = [
        job
        for job, fingerprint in jobs
        if coverage.fingerprint(stage, job.cell) != fingerprint or not output(job.cell).exists()
    ]
    failed: list[Outcome[J, Mapping[str, Any]]] = []
    try:
        with session.progress.bar(stage, len(waiting)) as advance:
            for outcome in session.run(work, waiting):
                if outcome.value is None:
                    failed.append(outcome)
                    remove(output(outcome.item.cell))
                coverage.add(_record(stage, wanted[outcome.item.cell], outcome))
                advance()
    finally:
        coverage.save()
    if failed:
        _tell(stage, failed, len(jobs), session)


def _record(stage: str, fingerprint: str, outcome: Outcome[J, Mapping[str, Any]]) -> Record:
    name = outcome.item.cell.name
    if outcome.value is None:
        facts = {"problem": outcome.problem, "trace": outcome.trace}
        return Record(stage, name, "failed", fingerprint, facts)
    return Record(stage, name, "done", fingerprint, outcome.value)


def _tell(
    stage: str, failed: Sequence[Outcome[J, Mapping[str, Any]]], total: int, session: Session
) -> None:
    """Say which cells failed, now and at the end of the run."""
    listed = "\n".join(sorted(f"  {each.item.cell.name}: {each.problem}" for each in failed))
    problem = f"{stage}: {len(failed)} of {total} cells failed, the others are done:\n{listed}"
    session.failures.append(problem)
    if len(failed) == total:
        raise CellsFailed("\n".join(session.failures))
    session.progress.say(problem)


def fill(
    layer: Layer,
    work: Callable[[J], Mapping[str, Any]],
    jobs: Sequence[tuple[J, str]],
    coverage: Coverage,
    session: Session,
) -> Path:
    """Sweep `work`, which writes the cells of a layer; the layer's index."""
    name = layer.folder.name
    sweep(name, work, jobs, output=layer.path, coverage=coverage, session=session)
    return layer.write_index()
