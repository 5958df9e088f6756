"""Arguments of the command line that verbs share: their names, bounds and help."""

from pathlib import Path
from typing import Annotated

import typer

RegionName = Annotated[
    str, typer.Argument(metavar="REGION", help="A name (of regions/NAME.toml) or a region file.")
]
Target = Annotated[str, typer.Argument(help="A GeoTIFF, or a region.")]
DataFolder = Annotated[Path, typer.Option("--data", help="The folder of all regions' files.")]
Workers = Annotated[
    int, typer.Option(min=1, help="Processes that share the cells; 1 is a plain loop.")
]
Cluster = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="A Dask scheduler, tcp://HOST:PORT.")
]
Device = Annotated[str | None, typer.Option(help="cuda, mps or cpu; else the best there is.")]
Minutes = Annotated[
    float | None,
    typer.Option(min=0.1, help="Time for training; turned once, by a measurement, into steps."),
]
Steps = Annotated[int | None, typer.Option(min=1, help="Training steps outright, for a repeat.")]
Generation = Annotated[
    int | None, typer.Option(min=0, help="Of labels and model; 0 is OSM's own labels.")
]
ModelFile = Annotated[
    Path | None, typer.Option("--model", "-m", help="For a GeoTIFF: the model file.")
]
Show = Annotated[bool, typer.Option("--open/--no-open", help="Open the map in a browser.")]
