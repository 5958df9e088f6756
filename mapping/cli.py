"""The command line: each verb reads its arguments, calls one function, says where the result is."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from .. import OrthoTraceError, __version__
from .errors import CellsFailed, MappingError
from .options import (
    Cluster,
    DataFolder,
    Device,
    Generation,
    Minutes,
    ModelFile,
    RegionName,
    Show,
    Steps,
    Target,
    Workers,
)
from .progress import Progress
from .session import DEMO_MINUTES, Settings, Verb

app = typer.Typer(
    name="orthotrace",
    help="From aerial imagery and an incomplete OpenStreetMap to a better map of roads and "
    "buildings. Start with `orthotrace demo`. A verb does what its own stage needs and no more: "
    "what is up to date is left alone.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

MENDABLE, CELLS_FAILED, INTERRUPTED = 2, 3, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; 0 done, 2 for what a person can mend, 3 if cells failed, 130 for Ctrl-C."""
    try:
        app(args=list(sys.argv[1:] if argv is None else argv))
    except CellsFailed as problem:
        return _ended(CELLS_FAILED, str(problem))
    except OrthoTraceError as problem:
        return _ended(MENDABLE, str(problem))
    except SystemExit as end:  # how typer ends, after --help and a wrong option too
        code = int(end.code or 0)
        if code == INTERRUPTED:
            return _ended(code, "stopped; what is done stays done, the next run goes on")
        return code
    return 0


def _ended(code: int, why: str) -> int:
    print(f"orthotrace: {why}", file=sys.stderr)
    return code


@app.callback(invoke_without_command=True)
def _version(
    version: Annotated[bool, typer.Option("--version", help="The version, and no more.")] = False,
) -> None:
    if version:
        print(__version__)
        raise typer.Exit


@app.command()
def demo(
    seed: Annotated[
        int, typer.Option(min=0, max=2**63 - 1, help="Another seed is another county.")
    ] = 0,
    minutes: Annotated[
        float, typer.Option(min=0.1, help="Time for each of two trainings.")
    ] = DEMO_MINUTES,
    device: Device = None,
    data: DataFolder = Path("data"),
    show: Show = True,
) -> None:
    """Make a small county, map it, and open the map: minutes, no network, no GPU.

    Imagery of two dates, an OSM extract that misses a third of the buildings and is shifted by
    some metres, and the truth to score against: every stage runs on them, with one round of
    refinement.
    """
    from .demo import run_demo

    page = run_demo(data, seed=seed, minutes=minutes, progress=Progress(), device=device)
    print(f"the map: {page}")
    if show:
        _open(page)


@app.command()
def tile(
    region: RegionName,
    imagery: Annotated[
        list[str] | None,
        typer.Option(
            help="For a new region: a GeoTIFF, folder or glob (several times if need be)."
        ),
    ] = None,
    osm: Annotated[
        Path | None, typer.Option(help="For a new region: an extract such as town.osm.pbf.")
    ] = None,
    workers: Workers = 1,
    cluster: Cluster = None,
    data: DataFolder = Path("data"),
) -> None:
    """Bring a region's imagery onto its grid, as the layer `imagery`.

    Imagery that stands on the grid's lattice is copied pixel by pixel; other imagery is
    resampled. Where there is no data there are no zeros but a mask. With --imagery and --osm a
    new region file is written first: regions/REGION.toml.
    """
    if imagery or osm:
        from . import stages

        stages.new_region(region, imagery or [], osm)
    _run("tile", region, data, Settings(workers=workers, cluster=cluster))


@app.command()
def label(
    region: RegionName,
    workers: Workers = 1,
    cluster: Cluster = None,
    data: DataFolder = Path("data"),
) -> None:
    """Burn OSM's roads and buildings onto the grid, as the layer `labels-g0`.

    1 is road or building, 0 is neither, 255 is unknown: along edges, on tunnels, and wherever
    OSM is not taken as complete.
    """
    _run("label", region, data, Settings(workers=workers, cluster=cluster))


@app.command()
def train(
    region: RegionName,
    generation: Generation = None,
    minutes: Minutes = None,
    steps: Steps = None,
    device: Device = None,
    workers: Workers = 1,
    data: DataFolder = Path("data"),
) -> None:
    """Train a U-Net on a region's labels, as models/gN.safetensors.

    Held-back tiles are never trained on; what is told while it runs is scored on them. Stopped
    half-way and run again, it goes on where it was.
    """
    settings = Settings(
        workers=workers, minutes=minutes, steps=steps, device=device, generation=generation
    )
    _run("train", region, data, settings)


@app.command()
def predict(
    target: Target,
    model: ModelFile = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="For a GeoTIFF: the scores to write.")
    ] = None,
    generation: Generation = None,
    device: Device = None,
    workers: Workers = 1,
    cluster: Cluster = None,
    data: DataFolder = Path("data"),
) -> None:
    """Score each pixel with a model: a region's layer `scores-gN`, or any GeoTIFF.

    Scores are probability x 254 in one band a class, 255 where there is no imagery. Memory does
    not grow with the raster.
    """
    if model is None:
        settings = Settings(workers=workers, cluster=cluster, device=device, generation=generation)
        _run("predict", target, data, settings)
        return
    from .prediction.predict import score_scene

    out = output or Path(target).with_suffix(".scores.tif")
    print(f"scores: {score_scene(Path(target), model, out, device=device, progress=Progress())}")


@app.command()
def refine(
    region: RegionName,
    generation: Generation = None,
    workers: Workers = 1,
    cluster: Cluster = None,
    data: DataFolder = Path("data"),
) -> None:
    """Make the next generation of labels from OSM and what the model proposes.

    Sure finds are added, unsure ones become unknown, nothing that is mapped is deleted. The
    threshold is set by mapped objects that were hidden from training.
    """
    settings = Settings(workers=workers, cluster=cluster, generation=generation)
    _run("refine", region, data, settings)


@app.command()
def trace(
    region: RegionName,
    generation: Generation = None,
    workers: Workers = 1,
    cluster: Cluster = None,
    data: DataFolder = Path("data"),
) -> None:
    """Turn scores into vector roads and buildings, in traced-gN; `export` hands them out."""
    settings = Settings(workers=workers, cluster=cluster, generation=generation)
    _run("trace", region, data, settings)


@app.command(name="map")
def map_(
    target: Target,
    model: ModelFile = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="For a GeoTIFF: a .gpkg, or a folder for all formats."),
    ] = None,
    device: Device = None,
    workers: Workers = 1,
    cluster: Cluster = None,
    data: DataFolder = Path("data"),
) -> None:
    """Predict and trace in one go: from a GeoTIFF and a model to vector roads and buildings."""
    if model is None:
        _run("trace", target, data, Settings(workers=workers, cluster=cluster, device=device))
        return
    from .scene import map_scene

    out = output or Path(target).with_suffix(".gpkg")
    written = map_scene(Path(target), model, out, device=device, progress=Progress())
    print(f"map: {', '.join(map(str, written))}")


@app.command()
def compare(region: RegionName, data: DataFolder = Path("data")) -> None:
    """Hold the map against OSM: what is the same, new, or missing."""
    _run("compare", region, data, Settings())


@app.command()
def evaluate(
    target: Annotated[
        str, typer.Argument(help="A region, or a map: .gpkg, .parquet, .fgb or .geojson.")
    ],
    truth: Annotated[
        Path | None, typer.Option(help="For a map: a file with layers roads and buildings.")
    ] = None,
    data: DataFolder = Path("data"),
) -> None:
    """Score labels, models and the exported map against a truth (or against OSM, if none).

    Pixels: IoU, precision, recall and F1, unknown left out, counts summed over the region.
    Buildings: one to one at IoU 0.5. Roads: by length within 3 m, both ways.
    """
    if truth is not None:
        from .results import evaluate_map

        print(evaluate_map(Path(target), truth))
        return
    _run("evaluate", target, data, Settings())


@app.command()
def export(
    region: RegionName,
    formats: Annotated[
        list[str] | None,
        typer.Option("--format", help="gpkg, parquet, fgb, geojson (several times if need be)."),
    ] = None,
    crs: Annotated[str | None, typer.Option(help="Such as EPSG:4326; else the grid's.")] = None,
    data: DataFolder = Path("data"),
) -> None:
    """Write the map for other programs, pure predictions apart from what is joined with OSM."""
    settings = Settings(formats=tuple(formats or ()), crs=crs)
    _run("export", region, data, settings)


@app.command()
def view(
    region: RegionName,
    data: DataFolder = Path("data"),
    show: Show = True,
) -> None:
    """Make the map page map/index.html, which needs no network, and open it."""
    page = _run("view", region, data, Settings())
    if show:
        _open(page)


@app.command()
def run(
    region: RegionName,
    minutes: Minutes = None,
    steps: Steps = None,
    device: Device = None,
    workers: Workers = 1,
    cluster: Cluster = None,
    data: DataFolder = Path("data"),
) -> None:
    """Every stage of a region that is not up to date, from imagery to the map page."""
    settings = Settings(
        workers=workers, cluster=cluster, minutes=minutes, steps=steps, device=device
    )
    _run("view", region, data, settings)


# -- inside --------------------------------------------------------------------------------


def _run(last: Verb, region: str, data: Path, settings: Settings) -> Path:
    from . import stages  # here, since torch and Dask take seconds that --help need not wait for

    result = stages.run_to(last, stages.find_region(region, data), data, settings, Progress())
    print(f"{last}: {result}")
    return result


def _open(page: Path) -> None:
    if not page.exists():
        raise MappingError(f"{page} is not there; run the region first")
    typer.launch(str(page.resolve()))
