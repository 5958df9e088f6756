"""The stages of a region as data: in which order, what each reads and writes, and how they run.

A verb runs its own stage and, before it, whatever of the earlier ones is missing or stale. A cell
that fails is named and the rest goes on without it; the run ends with CellsFailed.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..tiling.catalogue import find_scenes, rooted
from ..tiling.coverage import Coverage
from ..tiling.files import alone_in, file_identity, fingerprint, make_folder, written_beside
from ..tiling.runner import runner
from . import generations, products, rasters, results, show
from .errors import CellsFailed, MappingError
from .parts import region_name
from .progress import Progress
from .region import read_region, region_of
from .session import Session, Settings, Verb
from .site import Site, resolve


@dataclass(frozen=True, slots=True)
class Stage:
    """One verb and what it does to a site in one generation."""

    verb: Verb

    work: Callable[[Site, int, Session], Path]
    """Does what is missing or stale and says where the result is."""

    result: str = ""
    """For what is made of the whole region at once: its file or folder in data/NAME."""


BEFORE = (
    Stage("tile", rasters.tile),
    Stage("label", rasters.label),
)

EACH_GENERATION = (
    Stage("train", generations.train),
    Stage("predict", rasters.predict),
    Stage("refine", generations.refine),
)
"""Repeated for each generation; the last one is not refined."""

AFTER = (
    Stage("trace", products.trace),
    Stage("compare", products.compare, "compared"),
    Stage("export", products.export, "map/{name}.gpkg"),
    Stage("evaluate", results.evaluate, "map/report.json"),
    Stage("view", show.view, "map/index.html"),
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
    # The labels that the last generation would be refined to train no model.
    count = site.generations - (1 if last == "refine" else 0)
    if (settings.generation or 0) >= count:
        raise MappingError(
            f"region {site.region.name} has {site.region.refine.rounds} rounds of refinement, so "
            f"{last} knows {count} generations, numbered from 0; got "
            f"{settings.generation or 0}: raise refine.rounds in {region_file}"
        )
    result = site.folder
    with alone_in(site.folder), runner(settings.workers, settings.cluster) as run:
        session = Session(settings, run, progress)
        for stage, generation in plan(site, last, settings.generation):
            if stage.verb == last or not _stands(stage, site, generation):
                result = stage.work(site, generation, session)
                _keep(stage, site, generation, settings)
    if session.failures:
        raise CellsFailed("\n".join(session.failures))
    return result


def _stands(stage: Stage, site: Site, generation: int) -> bool:
    """Whether a stage's result is there and of the same inputs; cells are looked at one by one."""
    path = site.folder / stage.result.format(name=site.region.name)
    known = site.lock().get(stage.verb)
    return bool(stage.result) and known == _made_of(site, generation) and path.exists()


def _keep(stage: Stage, site: Site, generation: int, settings: Settings) -> None:
    """Note what a result was made of; one in a person's own choice of formats is not for others."""
    if stage.result:
        whole = not settings.formats or "gpkg" in settings.formats
        site.write_lock(**{stage.verb: _made_of(site, generation) if whole else ""})


def _made_of(site: Site, generation: int) -> str:
    """The fingerprint of all that the results of a whole region depend on."""
    coverage = Coverage(site.folder, site.grid)
    truth = site.region.truth
    return fingerprint(
        site.region.model_dump_json(),
        str(generation),
        "" if truth is None else file_identity(truth.file),
        site.lock()["osm"]["fingerprint"],
        *(coverage.fingerprint(f"traced-g{generation}", cell) for cell in site.cells),
    )


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
    try:
        region_name(path.stem if name.endswith(".toml") else name)
    except ValueError as problem:
        raise MappingError(str(problem)) from problem
    if path.exists():
        raise MappingError(f"{path} is there already; edit it, or choose another name")
    if not imagery or osm is None:
        raise MappingError("a new region has both: --imagery scene.tif --osm extract.osm.pbf")
    if not osm.exists():
        raise MappingError(f"{osm} is not there")
    find_scenes(imagery, Path())  # what cannot be opened is said before anything is written
    sources = ", ".join(_toml(rooted(source, Path.cwd())) for source in imagery)
    text = (
        f"# A region of your own; all keys are in the manual, docs/regions.md.\n\n"
        f"[sources]\nimagery = [{sources}]\nosm = {_toml(str(osm.absolute()))}\n"
    )
    region_of(text, path)  # before it is written
    with written_beside(path) as part:
        part.write_text(text, encoding="utf-8")
    return path


def _toml(path: str) -> str:
    """A path as a string of TOML, which is UTF-8 and knows no surrogates."""
    try:
        path.encode()
    except UnicodeEncodeError as problem:
        raise MappingError(f"the name {path!r} is not in UTF-8; wanted it renamed") from problem
    return json.dumps(path, ensure_ascii=False)
