"""The stages after the last model, which make what people get: trace, compare, export."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import geopandas as gpd
import shapely
from geopandas import GeoDataFrame

from ..models.card import load_model
from ..tiling.coverage import Coverage
from ..tiling.files import fingerprint, written_beside
from ..tiling.labels import with_widths
from ..tiling.osm import load_extract
from .export import Notice, layers_of
from .export import export as export_layers
from .rasters import label_rules
from .scoring.compare import Comparison
from .scoring.compare import compare as compare_features
from .seen import looked_at
from .session import Session
from .site import Site, stamp
from .sweep import sweep
from .tracing.buildings import BuildingRecipe
from .tracing.roads import RoadRecipe
from .tracing.trace import (
    TraceJob,
    TraceRecipe,
    join,
    open_path,
    read_map,
    trace_cell,
    view_of,
)


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """Vector roads and buildings of one region."""

    roads: GeoDataFrame
    buildings: GeoDataFrame

    def by_layer(self) -> dict[str, GeoDataFrame]:
        return {"roads": self.roads, "buildings": self.buildings}


# -- trace ---------------------------------------------------------------------------------


def trace(site: Site, generation: int, session: Session) -> Path:
    """Trace the scores of a generation, cut at its model's own thresholds."""
    trace_features(site, generation, map_thresholds(site, generation), session)
    return trace_folder(site, generation)


def trace_features(
    site: Site, generation: int, thresholds: Mapping[str, float], session: Session
) -> Features:
    """What the scores of a generation show from the thresholds on, inside the boundary."""
    scores, folder = site.scores(generation), trace_folder(site, generation)
    coverage = Coverage(site.folder, site.grid)
    recipe, dates = trace_recipe(site, thresholds), imagery_dates(coverage)
    told = stamp({"recipe": repr(recipe)})
    jobs = []
    for cell in site.cells:
        seen = coverage.fingerprint_over(scores.folder.name, view_of(scores, cell, recipe))
        job = TraceJob(scores, cell, folder, recipe, dates.get(cell.name))
        jobs.append((job, fingerprint(told, str(dates.get(cell.name)), seen)))
    sweep(
        folder.name,
        trace_cell,
        jobs,
        output=lambda cell: open_path(folder, cell),
        coverage=coverage,
        session=session,
    )
    crossings = join(folder, site.cells, site.grid, recipe, dates)
    if crossings.unmatched:
        total = 2 * (crossings.met + crossings.snapped) + crossings.unmatched
        session.progress.say(
            f"{folder.name}: {crossings.unmatched} of {total} road ends at cell edges "
            "found no other side"
        )
    return read_features_of(site, generation)


def read_features_of(site: Site, generation: int) -> Features:
    """What was traced of a generation, inside the boundary."""
    buildings, roads = read_map(trace_folder(site, generation), site.cells)
    shapely.prepare(site.boundary)
    return Features(
        roads[roads.intersects(site.boundary)].reset_index(drop=True),
        buildings[buildings.intersects(site.boundary)].reset_index(drop=True),
    )


def trace_folder(site: Site, generation: int) -> Path:
    return site.folder / f"traced-g{generation}"


def trace_recipe(site: Site, thresholds: Mapping[str, float]) -> TraceRecipe:
    """The region's sizes with thresholds by class (0.5 for one that is not told)."""
    sizes = site.region.trace
    return TraceRecipe(
        BuildingRecipe(
            threshold=thresholds.get("building", 0.5),
            min_area_m2=sizes.min_building_m2,
            hole_m2=min(BuildingRecipe.hole_m2, sizes.min_building_m2),
        ),
        RoadRecipe(threshold=thresholds.get("road", 0.5), min_length_m=sizes.min_road_m),
    )


def map_thresholds(site: Site, generation: int) -> dict[str, float]:
    """By class, the probability from which a pixel goes to the map: the model's own."""
    card = load_model(site.model(generation)).card
    return {name: card.threshold(name) for name in site.region.classes}


def imagery_dates(coverage: Coverage) -> dict[str, str]:
    """By cell, the newest date of its imagery, where it is known."""
    facts = coverage.facts("imagery")
    return {name: max(told["dates"]) for name, told in facts.items() if told.get("dates")}


# -- compare and export --------------------------------------------------------------------


def compare(site: Site, generation: int, session: Session) -> Path:
    """Hold the map against OSM; the folder of what is the same, new and missing."""
    found = read_features_of(site, generation)
    comparison = compare_with_osm(site, found)
    folder = site.folder / "compared"
    for name in COMPARED:
        with written_beside(folder / f"{name}.parquet") as part:
            frame: GeoDataFrame = getattr(comparison, name)
            frame.to_parquet(part, compression="zstd")
    counts = comparison.counts
    session.progress.say(
        f"new to OSM: {counts['roads_km'].get('new', 0):.2f} km of road, "
        f"{counts['buildings'].get('new', 0):.0f} buildings; missing in the map: "
        f"{counts['osm_roads_km'].get('missing', 0):.2f} km, "
        f"{counts['osm_buildings'].get('missing', 0):.0f} buildings"
    )
    return folder


COMPARED = ("roads", "buildings", "osm_roads", "osm_buildings")


def compare_with_osm(site: Site, found: Features) -> Comparison:
    """The comparison of what was found with the region's OSM, where imagery was looked at."""
    extract = load_extract(site.folder / "osm")
    osm = {"roads": with_widths(extract.roads, label_rules(site)), "buildings": extract.buildings}
    return compare_features(found.by_layer(), osm, looked_at=looked_at(site))


def read_comparison(site: Site) -> Comparison:
    """What `compare` wrote."""
    folder = site.folder / "compared"
    return Comparison(*(gpd.read_parquet(folder / f"{name}.parquet") for name in COMPARED))


def export(site: Site, generation: int, session: Session) -> Path:
    """Write map/NAME.gpkg and its like for other programs; the GeoPackage, or the folder."""
    settings = session.settings
    layers = layers_of(read_features_of(site, generation).by_layer(), read_comparison(site))
    paths = export_layers(
        layers,
        site.map_folder,
        site.region.name,
        notice=Notice(imagery=site.region.sources.imagery_attribution),
        formats=settings.formats,
        crs=settings.crs,
    )
    return paths[0] if len(paths) == 1 or paths[0].suffix == ".gpkg" else site.map_folder
