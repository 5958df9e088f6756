"""How a run is done, as against what: workers, device, budget, and what a person sees."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from .errors import MappingError
from .progress import Progress

if TYPE_CHECKING:  # the command line needs settings at once, and Dask takes a second
    from ..tiling.runner import Runner

Verb = Literal[
    "tile",
    "label",
    "train",
    "predict",
    "refine",
    "trace",
    "compare",
    "export",
    "evaluate",
    "view",
]
"""The verbs of a region, in the order of their stages."""

DEMO_MINUTES = 1.5
"""For each of the demo's two trainings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What is told on the command line for one run and stands in no region file."""

    workers: int = 1
    """Processes that share the cells; 1 is a plain loop."""

    cluster: str | None = None
    """Address of a running Dask scheduler."""

    device: str | None = None
    """cuda, mps or cpu; the best there is if not told."""

    minutes: float | None = None
    """Time for a training, instead of the recipe's."""

    steps: int | None = None
    """Steps of a training outright."""

    generation: int | None = None
    """The generation meant; see `stages.plan`."""

    formats: tuple[str, ...] = ()
    """Of the export; all if not told."""

    crs: str | None = None
    """Of the export; the grid's if not told."""

    def __post_init__(self) -> None:
        if self.crs is not None:
            from ..tiling.grid import known_crs  # slow, and needed only where a CRS is told

            try:
                known_crs(self.crs)
            except ValueError as problem:
                raise MappingError(f"--crs: {problem}") from problem
        if self.formats:
            from .export import check_formats  # slow, and needed only where formats are told

            check_formats(self.formats)


@dataclass(frozen=True, slots=True)
class Session:
    """One run: its settings, its runner and its screen."""

    settings: Settings
    run: "Runner"
    progress: Progress

    failures: list[str] = field(default_factory=list)
    """What failed so far, a stage a sentence: the others go on, and the run ends with these."""
