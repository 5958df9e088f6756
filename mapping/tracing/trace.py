"""From a layer of scores to a map of vectors: buildings and roads, traced by cell and joined.

    FOLDER/CELL.buildings.parquet   what lies in the cell whole, GeoParquet in the grid's CRS
    FOLDER/CELL.roads.parquet
    FOLDER/CELL.open.npz            what touches the cell's edge, in whole pixels; written last
    FOLDER/joined.buildings.parquet what was cut by edges, made whole
    FOLDER/joined.roads.parquet

`trace_cell` writes the first three, one cell apart from the others; `join` reads all of
the third and writes the last two; `read_map` puts the features together. The result does not
depend on the cells (but for the column that names them), nor on the order in which they are done.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import geopandas
import numpy as np
import pandas
import shapely
from geopandas import GeoDataFrame
from numpy.typing import NDArray

from ...tiling.files import written_beside
from ...tiling.grid import Cell, Grid, Window
from ...tiling.layer import Layer
from ...tiling.scores import NODATA
from ..errors import MappingError
from .buildings import (
    BuildingRecipe,
    Buildings,
    OpenBuildings,
    building_margin,
    join_buildings,
    trace_buildings,
)
from .centrelines import Piece, Road
from .open_file import read_open, write_open
from .roads import Crossings, RoadRecipe, join_roads, road_margin, trace_roads

BUILDING_COLUMNS = ("id", "class", "score", "area_m2", "cell", "date")
ROAD_COLUMNS = ("id", "class", "score", "width_m", "length_m", "cell", "date")


@dataclass(frozen=True, slots=True)
class TraceRecipe:
    """How scores become a map; a class without a band is not traced."""

    building: BuildingRecipe = field(default_factory=BuildingRecipe)
    road: RoadRecipe = field(default_factory=RoadRecipe)


@dataclass(frozen=True, slots=True)
class TraceJob:
    """All that tracing one cell needs; small, and it pickles."""

    scores: Layer
    cell: Cell
    folder: Path
    """Where the files go."""

    recipe: TraceRecipe

    date: str | None = None
    """Of the cell's imagery."""


def open_path(folder: Path, cell: Cell) -> Path:
    """The file that `trace_cell` writes last: if it exists, the cell is done."""
    return folder / f"{cell.name}.open.npz"


def view_of(scores: Layer, cell: Cell, recipe: TraceRecipe) -> Window:
    """All that is read to trace a cell."""
    margins = _margins(scores, cell, recipe)
    return scores.grid.window(cell).grown(max(margins.values(), default=0))


def _margins(scores: Layer, cell: Cell, recipe: TraceRecipe) -> dict[str, int]:
    """By class that has a band, the pixels around a cell on which what is traced in it depends."""
    grid, core = scores.grid, scores.grid.window(cell)
    margins = {
        "building": building_margin(grid, core, recipe.building),
        "road": road_margin(grid, core, recipe.road),
    }
    return {name: margin for name, margin in margins.items() if name in scores.bands}


def trace_cell(job: TraceJob) -> Mapping[str, int]:
    """Trace one cell into its three files; how many features are whole and how many pieces open."""
    grid, core = job.scores.grid, job.scores.grid.window(job.cell)
    bands = job.scores.bands
    _check(job.scores)
    margins = _margins(job.scores, job.cell, job.recipe)
    view = view_of(job.scores, job.cell, job.recipe)
    scores_CHW = job.scores.read(view).data_CHW

    def seen(name: str) -> tuple[NDArray[np.uint8], Window]:
        near = core.grown(margins[name])
        return scores_CHW[bands.index(name)][near.slices(view)], near

    open_buildings: OpenBuildings | None = None
    whole_buildings: list[Buildings] = []
    roads: list[Road] = []
    pieces: list[Piece] = []
    if "building" in bands:
        found, open_buildings = trace_buildings(*seen("building"), core, grid, job.recipe.building)
        whole_buildings = [found]
    if "road" in bands:
        roads, pieces = trace_roads(*seen("road"), core, grid, job.recipe.road)

    dates = {job.cell.name: job.date}
    frames = building_frame(whole_buildings, grid, dates), road_frame(roads, grid, dates)
    _write(job.folder / f"{job.cell.name}.buildings.parquet", frames[0])
    _write(job.folder / f"{job.cell.name}.roads.parquet", frames[1])
    write_open(open_path(job.folder, job.cell), open_buildings, pieces)
    return {
        "buildings": len(frames[0]),
        "roads": len(frames[1]),
        "open_buildings": len(open_buildings.pieces.pixels) if open_buildings else 0,
        "open_roads": len(pieces),
    }


def _check(scores: Layer) -> None:
    if scores.dtype != "uint8" or scores.nodata != NODATA:
        raise MappingError(
            f"{scores.folder} is of {scores.dtype} with nodata {scores.nodata}; "
            f"wanted scores: uint8 with nodata {NODATA}"
        )


def join(
    folder: Path,
    cells: Iterable[Cell],
    grid: Grid,
    recipe: TraceRecipe,
    dates: Mapping[str, str] | None = None,
) -> Crossings:
    """Make whole what the edges of the traced `cells` had cut, and write it to the folder.

    What is returned says how the roads met at those edges.
    `dates` are the imagery's by a cell's name. Memory grows with what is cut, not with the map.
    """
    open_buildings: dict[Cell, OpenBuildings] = {}
    pieces: dict[Cell, Sequence[Piece]] = {}
    for cell in sorted(cells):
        found, pieces[cell] = read_open(open_path(folder, cell))
        if found is not None:
            open_buildings[cell] = found
    whole = join_buildings(open_buildings, grid, recipe.building)
    roads, crossings = join_roads(pieces, grid)
    _write(folder / "joined.buildings.parquet", building_frame([whole], grid, dates or {}))
    _write(folder / "joined.roads.parquet", road_frame(roads, grid, dates or {}))
    return crossings


def read_map(folder: Path, cells: Iterable[Cell]) -> tuple[GeoDataFrame, GeoDataFrame]:
    """All buildings and all roads of the traced and joined `cells`, sorted by place."""
    names = [*(cell.name for cell in sorted(cells)), "joined"]
    buildings = [_read(folder / f"{name}.buildings.parquet") for name in names]
    roads = [_read(folder / f"{name}.roads.parquet") for name in names]
    return _sorted(buildings), _sorted(roads)


# -- frames --------------------------------------------------------------------------------


def building_frame(
    parts: Sequence[Buildings], grid: Grid, dates: Mapping[str, str | None]
) -> GeoDataFrame:
    """Buildings as features in the grid's CRS; each is of the cell that holds a point inside it."""
    outlines = np.concatenate([np.empty(0, object), *(part.outlines for part in parts)])
    places = np.concatenate([np.empty((0, 2), int), *(part.places for part in parts)])
    inside = shapely.get_coordinates(shapely.point_on_surface(outlines))
    cells = _cells(inside[:, ::-1], grid)
    told = {
        "id": _ids("building", places),
        "class": ["building"] * len(outlines),
        "score": np.concatenate([np.empty(0), *(part.scores for part in parts)]),
        "area_m2": np.concatenate([np.empty(0), *(part.areas_m2 for part in parts)]),
        "cell": cells,
        "date": [dates.get(cell) for cell in cells],
    }
    return _frame(told, _to_crs(outlines, grid), grid)


def road_frame(roads: Sequence[Road], grid: Grid, dates: Mapping[str, str | None]) -> GeoDataFrame:
    """Roads as features in the grid's CRS; each is of the cell that holds its middle pixel."""
    places = np.array([road.place for road in roads], int).reshape(-1, 2)
    cells = _cells(places, grid)
    lines = np.empty(len(roads), object)
    for number, road in enumerate(roads):
        lines[number] = shapely.LineString(road.line[:, ::-1] + 0.5)  # a pixel's middle
    told = {
        "id": _ids("road", places),
        "class": ["road"] * len(roads),
        "score": np.array([road.score for road in roads], float),
        "width_m": np.array([road.width_m for road in roads], float),
        "length_m": np.array([road.length_m for road in roads], float),
        "cell": cells,
        "date": [dates.get(cell) for cell in cells],
    }
    return _frame(told, _to_crs(lines, grid), grid)


def _frame(told: Mapping[str, object], geometry: NDArray[np.object_], grid: Grid) -> GeoDataFrame:
    frame = GeoDataFrame(dict(told), geometry=geometry, crs=grid.crs)
    return frame.astype({name: "str" for name in ("id", "class", "cell", "date")})


def _ids(name: str, places: NDArray[np.integer]) -> list[str]:
    return [f"{name}/{row}_{col}" for row, col in places.tolist()]


def _cells(points: NDArray[np.number], grid: Grid) -> list[str]:
    """The name of the cell that holds each (row, column)."""
    cells = np.floor(points / grid.cell).astype(int).tolist()
    return [Cell(row, col).name for row, col in cells]


def _to_crs(shapes: NDArray[np.object_], grid: Grid) -> NDArray[np.object_]:
    """From pixels of the grid (x the column, y the row) to its CRS; rings turn as before."""
    at = grid.transform(Window(0, 0, 1, 1))
    scale, origin = np.array([at.a, at.e]), np.array([at.c, at.f])
    moved: NDArray[np.object_] = shapely.transform(shapes, lambda xy: xy * scale + origin)
    return moved


def _sorted(parts: Sequence[GeoDataFrame]) -> GeoDataFrame:
    """The features of all parts by row and column of their place."""
    filled = [part for part in parts if len(part)] or list(parts[:1])
    frame = pandas.concat(filled, ignore_index=True)
    places = frame["id"].str.extract(r"/(-?\d+)_(-?\d+)$").astype("int64")
    order = np.lexsort((places[1], places[0]))
    return frame.iloc[order].reset_index(drop=True)


def _write(path: Path, frame: GeoDataFrame) -> None:
    with written_beside(path) as part:
        frame.to_parquet(part, compression="zstd")


def _read(path: Path) -> GeoDataFrame:
    if not path.exists():
        raise MappingError(f"{path} is not there; wanted cells that were traced and joined")
    return geopandas.read_parquet(path)
