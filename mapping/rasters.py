"""The stages that fill layers cell by cell: imagery, OSM's labels, scores."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import geopandas as gpd
import shapely
from shapely.geometry.base import BaseGeometry

from ..models.card import load_model
from ..tiling.coverage import Coverage
from ..tiling.files import file_digest, file_identity, fingerprint
from ..tiling.grid import Cell, Grid, Window, transformer
from ..tiling.labels import LabelRules, burn, on_grid
from ..tiling.layer import Layer, Pixels
from ..tiling.mosaic import Mosaic, read_mosaic
from ..tiling.osm import load_extract, read_osm, save_extract
from ..tiling.overpass import read_overpass
from ..tiling.runner import run_here
from ..tiling.values import NO, UNKNOWN, YES
from .errors import MappingError
from .hidden import hide
from .prediction.predict import CellJob, score_cell
from .prediction.windows import all_seen
from .session import Session
from .site import Site, mapped_areas, stamp
from .sweep import fill

FRAMES = {"road": "roads", "building": "buildings"}
"""The file of data/NAME/osm that holds a class."""

Bounds = tuple[float, float, float, float]
"""West, south, east, north in degrees."""


# -- imagery -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TileJob:
    """One cell of the layer `imagery`."""

    cell: Cell
    layer: Layer
    mosaic: Mosaic
    """The scenes that may have pixels in the cell."""


def tile_cell(job: TileJob) -> Mapping[str, Any]:
    """Fill one cell from the scenes; the dates and files that gave it pixels."""
    pixels, used = read_mosaic(job.mosaic, job.layer.grid.window(job.cell))
    dates = sorted({scene.date for scene in used if scene.date})
    job.layer.write(job.cell, pixels, {"dates": " ".join(dates)})
    return {
        "dates": dates,
        "sources": [scene.path.name for scene in used],
        "valid": round(float(pixels.valid_HW.mean()), 6),
    }


def tile(site: Site, generation: int, session: Session) -> Path:
    """Bring the imagery onto the grid; the layer's index."""
    layer = site.imagery.save()
    for band, lacking in site.mosaic.left_out.items():
        session.progress.say(
            f"the band {band} is left out: {len(lacking)} of {len(site.mosaic.scenes)} scenes "
            f"lack it, such as {lacking[0].path}"
        )
    jobs = []
    for cell in site.cells:
        near = site.mosaic.within(site.grid.window(cell))
        files = sorted(scene.identity for scene in near.scenes)
        recipe = stamp({"grid": site.grid.to_dict(), "bands": near.bands})
        jobs.append((TileJob(cell, layer, near), fingerprint(recipe, *files)))
    return fill(layer, tile_cell, jobs, Coverage(site.folder, site.grid), session)


# -- labels --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LabelJob:
    """One cell of the layer `labels-g0`."""

    cell: Cell
    layer: Layer
    imagery: Layer
    rules: LabelRules
    osm: Path
    """data/NAME/osm."""

    mapped: Mapping[str, BaseGeometry]
    """By class: where OSM is taken as complete, in the grid's CRS."""

    hidden: tuple[float, int]
    """Share of the objects that is hidden from training, and the seed that chooses them."""


def label_cell(job: LabelJob) -> Mapping[str, Any]:
    """Burn one cell; how many pixels of each class are known and found."""
    window = job.layer.grid.window(job.cell)
    features = {
        name: hide(frame, *job.hidden)
        for name, frame in nearby_features(job.osm, job.rules, job.layer.grid, window).items()
    }
    valid_HW = job.imagery.read(window).valid_HW
    labels_KHW = burn(job.rules, job.layer.grid, window, features, job.mapped, valid_HW)
    job.layer.write(job.cell, Pixels(labels_KHW, (labels_KHW != UNKNOWN).any(axis=0)))
    return {
        name: {"yes": int((labels == YES).sum()), "no": int((labels == NO).sum())}
        for name, labels in zip(job.rules.classes, labels_KHW, strict=True)
    }


def label(site: Site, generation: int, session: Session) -> Path:
    """Read OSM and burn the labels of generation 0; the layer's index."""
    rules = label_rules(site)  # first, as they are checked and the reading takes long
    import_osm(site, session)
    layer = site.labels(0).save()
    coverage = Coverage(site.folder, site.grid)
    mapped = mapped_areas(site)
    recipe = stamp(
        {
            "labels": site.region.labels.model_dump(),
            "hidden": hidden_rule(site),
            "mapped": {name: shapely.to_wkb(area, hex=True) for name, area in mapped.items()},
        }
    )
    osm = site.lock()["osm"]["fingerprint"]
    jobs = [
        (
            LabelJob(
                cell,
                layer,
                site.imagery,
                rules,
                site.folder / "osm",
                mapped,
                hidden_rule(site),
            ),
            fingerprint(recipe, osm, coverage.fingerprint("imagery", cell)),
        )
        for cell in site.cells
    ]
    return fill(layer, label_cell, jobs, coverage, session)


def import_osm(site: Site, session: Session) -> None:
    """Read the extract into data/NAME/osm, unless what stands there is of the same source."""
    sources = site.region.sources
    told = file_identity(sources.osm) if sources.osm else f"overpass {sources.overpass}"
    made_of = fingerprint(told, site.boundary.wkt)
    folder = site.folder / "osm"
    there = all((folder / f"{name}.parquet").exists() for name in FRAMES.values())
    if there and site.lock().get("osm", {}).get("fingerprint") == made_of:
        return
    if sources.osm is not None:
        bounds = transformer(site.grid.crs, "EPSG:4326").transform_bounds(*site.boundary.bounds)
        extract = read_osm(sources.osm, _widened(bounds))
    else:
        area = gpd.GeoSeries([site.boundary], crs=site.grid.crs).to_crs("EPSG:4326").iloc[0]
        server = None if sources.overpass == "yes" else sources.overpass
        extract = read_overpass(area.buffer(max(_room(area.bounds))), endpoint=server)
    save_extract(extract, folder)
    dropped = dict(extract.dropped)
    site.write_lock(osm={"fingerprint": made_of, "snapshot": extract.snapshot, "left_out": dropped})
    session.progress.say(
        f"OSM of {extract.snapshot or 'an unknown day'}: {len(extract.roads)} roads, "
        f"{len(extract.buildings)} buildings; {sum(dropped.values())} left out"
    )
    for name, frame in FRAMES.items():
        if name in site.region.classes and getattr(extract, frame).empty:
            session.progress.say(
                f"OSM has no {frame} here, so all that is mapped counts as none: "
                f"if that is not so, leave {name} out of classes or tell [mapped.{name}]"
            )


def nearby_features(
    folder: Path, rules: LabelRules, grid: Grid, window: Window
) -> dict[str, gpd.GeoDataFrame]:
    """By class, OSM's features that may reach into `window`, in the grid's CRS."""
    bounds = transformer(grid.crs, "EPSG:4326").transform_bounds(*grid.bounds(window))
    return on_grid(load_extract(folder, _widened(bounds)), rules, grid)


def _widened(bounds: Bounds) -> Bounds:
    """The bounds in degrees with room for a road that lies outside and reaches in.

    MappingError across the 180th meridian, where what lies west of east has no box.
    """
    west, south, east, north = bounds
    if west > east:
        raise MappingError(
            f"the region lies across the 180th meridian, from {west:.4f} to {east:.4f} degrees; "
            "wanted two regions, one on each side"
        )
    along, down = _room(bounds)
    return west - along, south - down, east + along, north + down


def _room(bounds: Bounds) -> tuple[float, float]:
    """About 100 m in degrees, eastwards and northwards: no drawn road is half as wide."""
    down = 0.001
    latitude = max(abs(bounds[1]), abs(bounds[3]))
    return down / max(math.cos(math.radians(latitude)), 0.01), down


def label_rules(site: Site) -> LabelRules:
    labels = site.region.labels
    return LabelRules(
        classes=site.region.classes,
        widths=labels.widths,
        use_tags=labels.width_tags,
        guard_m=labels.guard_m,
    )


def hidden_rule(site: Site) -> tuple[float, int]:
    """Share and seed of what is hidden; nothing where nothing is refined."""
    refine = site.region.refine
    return (refine.hidden if refine.rounds else 0.0), refine.seed


# -- scores --------------------------------------------------------------------------------


def predict(site: Site, generation: int, session: Session) -> Path:
    """Score the imagery with the model of a generation; the layer's index.

    Local workers are left out: a network uses all cores (or the one GPU) by itself, and with
    another number of threads a score may round to the next byte.
    """
    if session.settings.cluster is None:
        session = replace(session, run=run_here)
    layer = site.scores(generation).save()
    coverage = Coverage(site.folder, site.grid)
    model = site.model(generation)
    weights, card = fingerprint(file_digest(model)), load_model(model).card
    jobs = []
    for cell in site.cells:
        seen = all_seen(site.grid.window(cell), card.window, card.margin)
        job = CellJob(cell, site.imagery, layer, model, session.settings.device)
        jobs.append((job, fingerprint(weights, coverage.fingerprint_over("imagery", seen))))
    return fill(layer, score_cell, jobs, coverage, session)
