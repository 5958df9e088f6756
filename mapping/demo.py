"""The demo: makes a small county, maps it with one round of refinement, and says how good it is."""

import json
from pathlib import Path

from rich.console import Console
from rich.table import Table as ScreenTable

from ..tiling.files import written_beside
from .county.make import County, make_county
from .progress import Progress
from .session import DEMO_MINUTES, Settings
from .show import report_tables
from .stages import run_to
from .viewer.report import Table, words

NAME = "demo"


def run_demo(
    data: Path, *, seed: int, minutes: float, progress: Progress, device: str | None = None
) -> Path:
    """Make the county of a seed, run every stage on it, print its scores; the map page."""
    region = data / NAME / "region.toml"
    if not region.exists() or not region.read_text().startswith(_head(seed)):
        progress.say(f"making a county from seed {seed}")
        write_region(region, make_county(data / NAME / "county", seed), seed)
    settings = Settings(minutes=minutes, device=device)
    page = run_to("view", region, data, settings, progress)
    console = Console()
    for table in report_tables(data / NAME / "map" / "report.json", "scores"):
        console.print(_screen_table(table))
    return page


def write_region(path: Path, county: County, seed: int) -> Path:
    """The county's region file, in the folder above the county's."""

    def told(file: Path) -> str:
        return json.dumps(str(file.relative_to(path.parent)))

    with written_beside(path) as part:
        part.write_text(
            f"""{_head(seed)}
# `orthotrace VERB {NAME}` and `make VERB REGION={NAME}` find it here.

name = "{NAME}"

[sources]
imagery = [{", ".join(map(told, county.imagery))}]
osm = {told(county.osm)}
imagery_attribution = "made up by OrthoTrace"

[boundary]
file = {told(county.boundary)}

[grid]
crs = "{county.crs}"
pixel = 1.0
cell = 1024
tile = 512

[held_back]
share = 0.2

[truth]
file = {told(county.truth)}

[refine]
rounds = 1

[recipe]
minutes = {DEMO_MINUTES}
seed = {seed}
"""
        )
    return path


def _head(seed: int) -> str:
    """The first line of the region file, by which a county of the same seed is known again."""
    return f"# The demo's county, made from seed {seed}."


def _screen_table(table: Table) -> ScreenTable:
    shown = ScreenTable(title=table.title, title_justify="left", caption_justify="left")
    for number, column in enumerate(table.columns):
        shown.add_column(column, justify="right" if number else "left")
    for row in table.rows:
        shown.add_row(*(words(fact) for fact in row))
    return shown
