"""The stages of a region as data: in which order, what each reads and writes, and how they run.

A verb runs its own stage and, before it, whatever of the earlier ones is missing or stale.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..tiling.files import make_folder, written_beside
from ..tiling.runner import runner
from . import generations, products, rasters, results, show
from .errors import MappingError
from .progress import Progress
from .region import read_region
from .session import Session, Settings, Verb
from .site import Site, resolve


@dataclass(frozen=True, slots=True)
class Stage:
    """One verb and what it does to a site in one generation."""

    verb: Verb

    reads: tuple[str, ...]
    """Layers and files, with {g} for the generation."""

    writes: str

    work: Callable[[Site, int, Session], Path]
    """Does what is missing or stale and says where the result is."""


EACH_GENERATION = (
    Stage("train", ("imagery", "labels-g{g}"), "models/g{g}.safetensors", generations.train),
    Stage("predict", ("imagery", "models/g{g}.safetensors"), "scores-g{g}", rasters.predict),
    Stage("refine", ("osm", "scores-g{g}"), "labels-g{g+1}", generations.refine),
)
"""Repeated for each generation; the last one is not refined."""

BEFORE = (
    Stage("tile", ("the imagery's files",), "imagery", rasters.tile),
    Stage("label", ("imagery", "the OSM extract"), "labels-g0", rasters.label),
)

AFTER = (
    Stage("trace", ("scores-g{g}",), "traced-g{g}", products.trace),
    Stage("compare", ("traced-g{g}", "osm"), "compared", products.compare),
    Stage("export", ("traced-g{g}", "compared"), "map/NAME.gpkg", products.export),
    Stage("evaluate", ("map/NAME.gpkg", "the truth"), "map/report.json", results.evaluate),
    Stage("view", ("map/report.json", "all layers"), "map/index.html", show.view),
)


def plan(site: Site, last: Verb, generation: int | None) -> Iterator[tuple[Stage, int]]:
    """The stages up to `last`, in order, each with its generation.

    `generation` is the last one to be trained; without it a verb that belongs to a generation
    stops at the first, and one that comes after them at the region's last.
    """
    for stage in BEFORE:
        yield stage, 0
        if stage.verb == last:
            return
    each = [stage.verb for stage in EACH_GENERATION]
    final = generation if generation is not None else (0 if last in each else site.generations - 1)
    for g in range(final + 1):
        for stage in EACH_GENERATION:
            if g == final and stage.verb == "refine" and last != "refine":
                break
            yield stage, g
            if g == final and stage.verb == last:
                return
    for stage in AFTER:
        yield stage, final
        if stage.verb == last:
            return


def run_to(
    last: Verb, region_file: Path, data: Path, settings: Settings, progress: Progress
) -> Path:
    """Bring a region up to date as far as the verb `last`; where its result is."""
    site = resolve(read_region(region_file), make_folder(data))
    if settings.generation is not None and settings.generation >= site.generations:
        raise MappingError(
            f"region {site.region.name} has the generations 0 to {site.generations - 1}, "
            f"got {settings.generation}: raise refine.rounds in {region_file}"
        )
    result = site.folder
    with runner(settings.workers, settings.cluster) as run:
        session = Session(settings, run, progress)
        for stage, generation in plan(site, last, settings.generation):
            result = stage.work(site, generation, session)
    return result


def find_region(told: str, data: Path, regions: Path = Path("regions")) -> Path:
    """The region file of a name, or the file itself; MappingError that lists what there is.

    A region that was made, not written (the demo's), has its file with its data.
    """
    if told.endswith(".toml"):
        return Path(told)
    for path in (regions / f"{told}.toml", data / told / "region.toml"):
        if path.exists():
            return path
    if Path(told).is_file():
        raise MappingError(
            f"{told} is a file and no region; to map a GeoTIFF, say which model is to do it: "
            f"--model data/NAME/models/g0.safetensors"
        )
    found = [*regions.glob("*.toml"), *(path.parent for path in data.glob("*/region.toml"))]
    known = ", ".join(sorted(path.stem for path in found)) or "none yet"
    raise MappingError(
        f"{regions / told}.toml is not there; regions here: {known}. A new one: "
        f"orthotrace tile {told} --imagery scene.tif --osm extract.osm.pbf"
    )


def new_region(name: str, imagery: Sequence[str], osm: Path | None) -> Path:
    """Write regions/NAME.toml for a person's own imagery and extract; an older one is kept."""
    path = Path(name) if name.endswith(".toml") else Path("regions") / f"{name}.toml"
    if path.exists():
        raise MappingError(f"{path} is there already; edit it, or choose another name")
    if not imagery or osm is None:
        raise MappingError("a new region has both: --imagery scene.tif --osm extract.osm.pbf")
    for source in (*imagery, str(osm)):
        if not list(Path().glob(source) if not Path(source).is_absolute() else [Path(source)]):
            raise MappingError(f"{source} is not there")
    sources = ", ".join(json.dumps(str(Path(source).absolute())) for source in imagery)
    text = (
        f"# A region of your own; all keys are in the manual, docs/regions.md.\n\n"
        f"[sources]\nimagery = [{sources}]\nosm = {json.dumps(str(osm.absolute()))}\n"
    )
    with written_beside(path) as part:
        part.write_text(text)
    read_region(path)
    return path
