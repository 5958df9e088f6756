"""What a training tells while it runs: events, for a screen, a JSON-lines file and TensorBoard."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from ..tiling.files import add_line, written_beside
from .errors import ModelError

Kind = Literal["index", "budget", "step", "figures", "picture", "end"]
"""`index`: what is trained on; `budget`: steps are known; `step`: loss and rate; `figures`: on
held-back tiles; `picture`: one was drawn; `end`: the model is written."""


@dataclass(frozen=True, slots=True)
class Event:
    """One thing to tell."""

    kind: Kind

    step: int
    """Steps done."""

    steps: int | None
    """Steps in all; None while they are measured."""

    seconds: float
    """Since the start of this run."""

    values: Mapping[str, float] = field(default_factory=dict)
    """By name, such as "loss" or "iou/road"."""

    text: str = ""
    """A sentence for people, or the path of a picture."""


Report = Callable[[Event], None]


@contextmanager
def log_to(path: Path, after: int, report: Report, tensorboard: Path | None) -> Iterator[Report]:
    """Tell events to `report`, append them to a JSON-lines file and, if asked, to TensorBoard.

    Lines beyond step `after` are from a run that was cut off later than its last state; they will
    come again, so they are dropped.
    """
    kept = [line for line in _lines(path) if json.loads(line)["step"] <= after] if after else []
    with written_beside(path) as part:
        part.write_text("".join(line + "\n" for line in kept))
    board = _Board(tensorboard) if tensorboard is not None else None

    def tell(event: Event) -> None:
        add_line(path, json.dumps(asdict(event)))
        if board is not None:
            board.tell(event)
        report(event)

    try:
        yield tell
    finally:
        if board is not None:
            board.close()


def _lines(path: Path) -> list[str]:
    """The whole lines of a file; a last one that was cut off is left out."""
    return path.read_text().split("\n")[:-1] if path.exists() else []


class _Board:
    """TensorBoard's writer, for events."""

    def __init__(self, folder: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as problem:
            raise ModelError(
                'TensorBoard is not installed; wanted `pip install "orthotrace[tensorboard]"`'
            ) from problem
        self._writer = SummaryWriter(str(folder))

    def tell(self, event: Event) -> None:
        for name, value in event.values.items():
            self._writer.add_scalar(name, value, event.step)

    def close(self) -> None:
        self._writer.close()
