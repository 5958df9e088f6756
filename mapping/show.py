"""The stage `view`: a page that opens from disk, and one picture of where most was found."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import shapely

from ..tiling.grid import Grid, Window
from .export import OSM
from .products import Features, read_comparison, read_features_of
from .scoreboard import truth_features
from .session import Session
from .site import Site
from .viewer.page import write_page
from .viewer.palette import STYLES, UNKNOWN
from .viewer.picture import Panel, write_picture
from .viewer.report import Table
from .viewer.thumbnail import thumbnail
from .viewer.views import RasterView, VectorView, comparison_views, raster_view

PICTURE_PX = 640
"""Side of the place that the picture shows."""


def view(site: Site, generation: int, session: Session) -> Path:
    """Write map/index.html and map/picture.png; the page."""
    features = read_features_of(site, generation)
    session.progress.say("drawing the page")
    page = write_page(
        site.map_folder / "index.html",
        title=f"Map of {site.region.name}",
        rasters=list(_rasters(site, generation)),
        vectors=list(_vectors(site, features)),
        tables=report_tables(site.map_folder / "report.json", "scores", "comparison"),
        attribution=f"{site.region.sources.imagery_attribution}; {OSM}",
        rest=f"{site.region.name}.gpkg beside this page",
    )
    _draw_picture(site, generation, features)
    return page


def _rasters(site: Site, generation: int) -> Iterator[RasterView]:
    window = site.window
    yield raster_view(site.imagery, window, "Imagery", "imagery", shown=True)
    for g in reversed(range(generation + 1)):
        named = f"Labels {g}" + (" (OSM)" if g == 0 else "")
        yield raster_view(site.labels(g), window, named, "labels", opacity=0.7)
        yield raster_view(site.scores(g), window, f"Scores {g}", "scores", opacity=0.8)


def _vectors(site: Site, features: Features) -> Iterator[VectorView]:
    yield VectorView("Roads", "map", features.roads, "road", shown=True)
    yield VectorView("Buildings", "map", features.buildings, "building", shown=True)
    comparison = read_comparison(site)
    yield from comparison_views(comparison)
    yield VectorView("OSM's roads", "osm", comparison.osm_roads, "osm")
    yield VectorView("OSM's buildings", "osm", comparison.osm_buildings, "osm")
    if site.region.truth is not None:
        for name, frame in truth_features(site.region.truth).items():
            yield VectorView(f"True {name}", "truth", frame, "truth")


def report_tables(report: Path, *sections: str) -> list[Table]:
    """The tables of some sections of a report.json."""
    told = json.loads(report.read_text())
    return [
        Table(title, tuple(rows[0]), tuple(tuple(row.values()) for row in rows))
        for section in sections
        for title, rows in told[section]["tables"].items()
        if rows
    ]


def _draw_picture(site: Site, generation: int, features: Features) -> Path:
    panels = _panels(site, generation, fullest(site.grid, site.window, features), features)
    legend = {name: STYLES[name].colour for name in site.region.classes} | {"unknown": UNKNOWN}
    path = site.map_folder / "picture.png"
    return write_picture(path, panels, legend=legend, title=f"Map of {site.region.name}")


def fullest(grid: Grid, area: Window, features: Features) -> Window:
    """The part inside `area` of the square of PICTURE_PX, on the grid's lattice, with most in it.

    A feature is where its middle is; the first of several squares, row by row. Where nothing was
    found it is the square in the middle of `area`.
    """
    frames = features.by_layer().values()
    middles = shapely.centroid(np.concatenate([frame.geometry.to_numpy() for frame in frames]))
    to_pixels = ~grid.transform(Window(0, 0, 1, 1))
    cols, rows = to_pixels * shapely.get_coordinates(middles).T
    inside = (rows >= area.top) & (rows < area.bottom) & (cols >= area.left) & (cols < area.right)
    if inside.any():
        at = np.floor(np.stack([rows, cols], axis=1)[inside] / PICTURE_PX)
        places, counts = np.unique(at, axis=0, return_counts=True)
        row, col = (places[counts.argmax()] * PICTURE_PX).astype(int).tolist()
    else:
        row, col = (area.top + area.bottom) // 2, (area.left + area.right) // 2
        row, col = row - PICTURE_PX // 2, col - PICTURE_PX // 2
    return Window(row, col, row + PICTURE_PX, col + PICTURE_PX).overlap(area) or area


def _panels(site: Site, generation: int, window: Window, features: Features) -> Sequence[Panel]:
    imagery = thumbnail(site.imagery, window, "imagery", PICTURE_PX)
    labels = thumbnail(site.labels(0), window, "labels", PICTURE_PX)
    scores = thumbnail(site.scores(generation), window, "scores", PICTURE_PX)
    shown = (
        VectorView("Roads", "map", features.roads, "road"),
        VectorView("Buildings", "map", features.buildings, "building"),
    )
    return (
        Panel("Imagery", (imagery,)),
        Panel("Labels 0: OSM", (imagery, labels)),
        Panel(f"Scores {generation}", (imagery, scores)),
        Panel("The map", (imagery,), shown, dimmed=True),
    )
