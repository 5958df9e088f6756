"""The demo: makes a small county, maps it with one round of refinement, and says how good it is."""

import json
from pathlib import Path

from rich.console import Console
from rich.table import Table as Grid

from .county.make import County, make_county
from .progress import Progress
from .session import Settings
from .show import report_tables
from .stages import run_to
from .viewer.report import Table, words

NAME = "demo"


def run_demo(
    data: Path, *, seed: int, minutes: float, progress: Progress, settings: Settings | None = None
) -> Path:
    """Make the county of a seed, run every stage on it, print its scores; the map page."""
    progress.say(f"making a county from seed {seed}")
    county = make_county(data / NAME / "county", seed)
    region = write_region(county, seed=seed, minutes=minutes)
    page = run_to("view", region, data, settings or Settings(), progress)
    console = Console()
    for table in report_tables(data / NAME / "map" / "report.json", "scores"):
        console.print(_screen_table(table))
    return page


def write_region(county: County, *, seed: int, minutes: float) -> Path:
    """The county's region file, beside its files; the same arguments, the same bytes."""
    path = county.folder / f"{NAME}.toml"
    quads = ", ".join(json.dumps(str(quad.relative_to(county.folder))) for quad in county.imagery)
    path.write_text(
        f"""# The demo's county, made from seed {seed}.

[sources]
imagery = [{quads}]
osm = "{county.osm.name}"
imagery_attribution = "made up by OrthoTrace"

[boundary]
file = "{county.boundary.name}"

[grid]
crs = "{county.crs}"
pixel = 1.0
cell = 1024
tile = 256

[held_back]
share = 0.12

[truth]
file = "{county.truth.name}"

[refine]
rounds = 1

[recipe]
minutes = {minutes}
seed = {seed}
"""
    )
    return path


def _screen_table(table: Table) -> Grid:
    grid = Grid(title=table.title, title_justify="left", caption_justify="left")
    for number, column in enumerate(table.columns):
        grid.add_column(column, justify="right" if number else "left")
    for row in table.rows:
        grid.add_row(*(words(fact) for fact in row))
    return grid
