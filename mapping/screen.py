"""A training as a person sees it: a bar with the loss, and a line for each set of figures."""

from collections.abc import Iterator
from contextlib import contextmanager

from ..models.log import Event, Report
from .progress import Progress


@contextmanager
def training_screen(progress: Progress, title: str) -> Iterator[Report]:
    """What a training reports to: lines at figures, and between them a bar on a terminal."""
    with progress.gauge(title) as move:
        loss = ""

        def report(event: Event) -> None:
            nonlocal loss
            if event.kind == "step":
                loss = f"loss {event.values['loss']:.3f}"
                move(event.step, event.steps, loss)
            elif event.kind == "figures":
                progress.say(f"{title}: step {event.step}, {_figures(event)}")
            elif event.kind in ("index", "budget", "end") and event.text:
                progress.say(f"{title}: {event.text}")

        yield report


def _figures(event: Event) -> str:
    ious = [
        f"{name.removeprefix('iou/')} IoU {value:.3f}"
        for name, value in event.values.items()
        if name.startswith("iou/")
    ]
    return ", ".join(ious) + " on held-back tiles" if ious else "nothing is held back to score on"
