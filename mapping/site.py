"""A region resolved on this machine: its grid, scenes and cells, and where its files are.

What was resolved stands in `data/NAME/region.lock.json`, to be looked up and compared: grid,
scenes, seeds, versions, and of what each result was made.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import shapely
from shapely.geometry.base import BaseGeometry

from ..models.held import hold_back, touching
from ..tiling.catalogue import common_grid, find_scenes, order
from ..tiling.files import written_beside
from ..tiling.grid import Cell, Grid, Window, same_crs, short_crs
from ..tiling.layer import Layer
from ..tiling.mosaic import Mosaic, make_mosaic
from ..tiling.scene import Scene
from ..tiling.scores import NODATA
from ..tiling.values import UNKNOWN
from .areas import boundary_of, read_polygons
from .errors import MappingError
from .parts import Polygons
from .region import Region, files_of

LIBRARIES = ("orthotrace", "torch", "segmentation-models-pytorch", "rasterio", "shapely", "osmium")
"""Whose versions are kept with a result, since another one may change it."""


FAR = 16
"""A grid's pixels are at most this many times larger or smaller than the imagery's."""


@dataclass(frozen=True, slots=True)
class Site:
    """A region, its grid and scenes, and the folder of its files."""

    region: Region
    folder: Path
    """data/NAME."""

    mosaic: Mosaic
    """The scenes, best first, with the grid, bands and type that they have in common."""

    boundary: BaseGeometry
    """What is mapped, in the grid's CRS."""

    cells: tuple[Cell, ...]
    """The cells in which the boundary meets imagery, row by row."""

    @property
    def grid(self) -> Grid:
        return self.mosaic.grid

    @property
    def window(self) -> Window:
        """The smallest window that holds the boundary."""
        return self.grid.covering(self.boundary.bounds)

    @property
    def generations(self) -> int:
        """The number of models: one on OSM's labels, one more for each round of refinement."""
        return self.region.refine.rounds + 1

    # -- layers ----------------------------------------------------------------------------

    @property
    def imagery(self) -> Layer:
        return Layer(self.folder / "imagery", self.grid, self.mosaic.bands, self.mosaic.dtype)

    def labels(self, generation: int) -> Layer:
        """Labels of a generation; 0 are OSM's."""
        folder = self.folder / f"labels-g{generation}"
        return Layer(folder, self.grid, self.region.classes, nodata=UNKNOWN)

    def scores(self, generation: int) -> Layer:
        """What the model of a generation sees."""
        folder = self.folder / f"scores-g{generation}"
        return Layer(folder, self.grid, self.region.classes, nodata=NODATA)

    def model(self, generation: int) -> Path:
        return self.folder / "models" / f"g{generation}.safetensors"

    @property
    def map_folder(self) -> Path:
        return self.folder / "map"

    # -- what was resolved -----------------------------------------------------------------

    @property
    def lock_path(self) -> Path:
        return self.folder / "region.lock.json"

    def lock(self) -> dict[str, Any]:
        """What the lock file says; empty before the first run. MappingError for a damaged one."""
        if not self.lock_path.exists():
            return {}
        try:
            told = json.loads(self.lock_path.read_text())
            if isinstance(told, dict):
                return told
            problem: Exception | None = None
        except (OSError, ValueError) as fault:
            problem = fault
        raise MappingError(
            f"{self.lock_path} is damaged; wanted the lock file of a region: remove it and run "
            "the region again"
        ) from problem

    def write_lock(self, **told: Any) -> None:
        """Keep `told` in the lock file beside what stands there."""
        lock = {**self.lock(), **told}
        with written_beside(self.lock_path) as part:
            part.write_text(json.dumps(lock, indent=1, sort_keys=True) + "\n")


def resolve(region: Region, data: Path) -> Site:
    """Find the region's scenes, grid and cells; nothing is written but the lock file.

    `data` is the folder of all regions. MappingError or TilingError if a file that the region
    names is not there, and if the imagery, the boundary and the grid do not make a region.
    """
    for key, file in files_of(region):
        if not file.is_file():
            raise MappingError(f"region {region.name}: {key} is {file}; wanted a file that exists")
    scenes = order(find_scenes(region.sources.imagery, Path()))
    grid = _grid(region, scenes)
    mosaic = make_mosaic(scenes, grid)
    footprints = _footprints(scenes, grid.crs)
    folder = data / region.name
    boundary = boundary_of(region, grid.crs, shapely.union_all(footprints), folder)
    cells = _cells(grid, boundary, footprints)
    site = Site(region, folder, mosaic, boundary, cells)
    site.write_lock(
        grid=grid.to_dict(),
        bands=list(mosaic.bands),
        dtype=mosaic.dtype,
        cells=len(cells),
        scenes=[{"file": scene.path.name, "date": scene.date} for scene in scenes],
        seeds={
            "held_back": region.held_back.seed,
            "hidden": region.refine.seed,
            "recipe": region.recipe.seed,
        },
        versions=versions(),
    )
    return site


def versions() -> dict[str, str]:
    """Versions of the libraries that shape a result."""
    return {name: version(name) for name in LIBRARIES}


def held_tiles(site: Site) -> frozenset[Window]:
    """The tiles of a region that no model is trained on."""
    told = site.region.held_back
    if told.file is not None:
        around = shapely.union_all([_square(site.grid, cell) for cell in site.cells]).bounds
        polygons = Polygons(file=told.file, layer=told.layer)
        area = read_polygons(polygons, site.grid.crs, around)
        return touching(site.grid, site.cells, [area])
    mapped = shapely.union_all(list(mapped_areas(site).values()))
    known = mapped.intersection(shapely.union_all(_footprints(site.mosaic.scenes, site.grid.crs)))
    return hold_back(site.grid, site.cells, known, told.share, told.seed)


def mapped_areas(site: Site) -> dict[str, BaseGeometry]:
    """By class, where OSM is taken as complete: the boundary if the region does not say."""
    told = site.region.mapped
    return {
        name: read_polygons(told[name], site.grid.crs, site.boundary.bounds).intersection(
            site.boundary
        )
        if name in told
        else site.boundary
        for name in site.region.classes
    }


def _footprints(scenes: Sequence[Scene], crs: str) -> list[BaseGeometry]:
    return [shapely.box(*scene.bounds_in(crs)) for scene in scenes]


def _grid(region: Region, scenes: Sequence[Scene]) -> Grid:
    part = region.grid
    found = common_grid(scenes, cell=part.cell, tile=part.tile)
    crs = part.crs or found.crs
    same = same_crs(crs, found.crs)
    if part.pixel is None and not same:
        raise MappingError(
            f"region {region.name}: grid.crs is {part.crs} and the imagery's is "
            f"{short_crs(found.crs)}, so grid.pixel must say how large a pixel is in {part.crs}"
        )
    if part.pixel is not None:
        _check_pixel(region.name, part.pixel, crs, scenes)
    pixel = found.pixel if part.pixel is None else (part.pixel, part.pixel)
    kept = same and pixel == found.pixel
    anchor = part.anchor or (found.anchor if kept else (0.0, 0.0))
    return Grid(found.crs if same else crs, pixel, anchor, part.cell, part.tile)


def _check_pixel(name: str, pixel: float, crs: str, scenes: Sequence[Scene]) -> None:
    """MappingError for a pixel that is far from all of the imagery's: a slip of the unit."""
    spans = [(scene.bounds_in(crs), scene.width) for scene in scenes]
    sizes = [(right - left) / width for (left, _, right, _), width in spans]
    if not min(sizes) / FAR <= pixel <= max(sizes) * FAR:
        raise MappingError(
            f"region {name}: grid.pixel is {pixel:g} and the imagery's pixels are about "
            f"{min(sizes):.3g} to {max(sizes):.3g} in units of {short_crs(crs)}; "
            f"wanted at most {FAR} times more or less"
        )


def _cells(
    grid: Grid, boundary: BaseGeometry, footprints: Sequence[BaseGeometry]
) -> tuple[Cell, ...]:
    area = shapely.union_all([boundary.intersection(footprint) for footprint in footprints])
    shapely.prepare(area)
    near = grid.cells(grid.covering(area.bounds))
    # Touching at an edge alone shares no pixel.
    return tuple(cell for cell in near if area.intersection(_square(grid, cell)).area > 0)


def _square(grid: Grid, cell: Cell) -> BaseGeometry:
    return shapely.box(*grid.bounds(grid.window(cell)))


def stamp(told: Mapping[str, Any]) -> str:
    """A text that is the same for the same recipe: what fingerprints are made of."""
    return json.dumps(told, sort_keys=True, default=str)
