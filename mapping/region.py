"""A region: a named area to map, as its TOML file says it; an unknown key is refused by name."""

import difflib
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from ..models.recipe import Recipe
from ..tiling.grid import known_crs
from .errors import MappingError

Crs = Annotated[str, AfterValidator(known_crs)]
"""What PROJ reads, such as "EPSG:26918"."""


class Part(BaseModel):
    """A table of the region file: frozen, and closed to keys that it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class Polygons(Part):
    """An area: polygons of a file in any CRS."""

    file: Path
    """GeoPackage, GeoJSON, GeoParquet or FlatGeobuf, from the region file's folder."""

    layer: str | None = None
    """The layer of the file; its only one if not told."""


class Boundary(Part):
    """What is mapped: one of a rectangle, a polygon file or a place; else all of the imagery."""

    bbox: tuple[float, float, float, float] | None = None
    """West, south, east, north, in `crs`."""

    crs: Crs = "EPSG:4326"
    """The CRS of `bbox`."""

    file: Path | None = None
    """A polygon file in any CRS."""

    layer: str | None = None

    place: str | None = None
    """A name that Nominatim knows, such as "Beatty, Nevada, USA": needs a network."""

    @model_validator(mode="after")
    def _one(self) -> Self:
        if sum(told is not None for told in (self.bbox, self.file, self.place)) > 1:
            raise ValueError("a boundary is one of bbox, file and place")
        if self.bbox is not None and not (
            self.bbox[0] < self.bbox[2] and self.bbox[1] < self.bbox[3]
        ):
            raise ValueError(f"a bbox is west, south, east, north, got {list(self.bbox)}")
        return self


class GridPart(Part):
    """The lattice; what is not told is found from the imagery."""

    crs: Crs | None = None
    """Such as "EPSG:26918"."""

    pixel: Annotated[float, Field(gt=0)] | None = None
    """Side of a pixel in units of the CRS."""

    anchor: tuple[float, float] | None = None
    """Where the lattice stands, in fractions of a pixel, x and y."""

    cell: Annotated[int, Field(gt=0)] = 4096
    """Side of a cell in pixels, a multiple of `tile`."""

    tile: Annotated[int, Field(gt=0)] = 512
    """Side of a tile in pixels, a multiple of 16."""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.tile % 16 or self.cell % self.tile:
            raise ValueError(
                f"cell is a multiple of tile and tile of 16, got cell {self.cell}, tile {self.tile}"
            )
        return self


class Sources(Part):
    """Where imagery and OSM come from."""

    imagery: Annotated[tuple[str, ...], Field(min_length=1)]
    """Files, folders and globs, from the region file's folder."""

    osm: Path | None = None
    """An extract: .osm.pbf, .osm, .osm.gz, .osm.bz2, GeoPackage, GeoJSON, GeoParquet."""

    overpass: str | None = None
    """Instead of a file, for a small area: "yes" for the public server, or a server's address."""

    imagery_attribution: str = "imagery: its owner"
    """Goes into every file that is exported."""

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.osm is None) == (self.overpass is None):
            raise ValueError("sources have one of osm (a file) and overpass")
        return self


class HeldBack(Part):
    """What no model is trained on, so that figures and thresholds are honest."""

    share: Annotated[float, Field(ge=0, le=0.9)] = 0.15
    """Share of the tiles (of whole cells, where there are ten or more) that is held back."""

    seed: int = 0
    """Chooses them."""

    file: Path | None = None
    """Instead of a share: polygons; tiles that touch them are held back."""

    layer: str | None = None


class Labels(Part):
    """How OSM becomes labels."""

    widths: Mapping[str, Annotated[float, Field(gt=0)]] = {}
    """Metres by highway class, such as {residential = 6}; `default` is for all others."""

    width_tags: bool = True
    """Whether the tags `width` and `lanes` come before the table."""

    guard_m: Annotated[float, Field(ge=0)] = 1.0
    """Width of the unknown band along the edge of what is drawn; 0 for none."""


class Truth(Part):
    """A file that is known to be right, for figures only; nothing is trained on it."""

    file: Path

    roads: str | None = "roads"
    """Its layer of road lines, with a column `width_m` if it has one; empty for none."""

    buildings: str | None = "buildings"
    """Its layer of building polygons; empty for none."""


class Refine(Part):
    """How labels are made better, round by round."""

    rounds: Annotated[int, Field(ge=0, le=9)] = 1
    """How often labels are refined and a model trained on them."""

    hidden: Annotated[float, Field(gt=0, le=0.5)] = 0.12
    """Share of the mapped objects that is hidden from training, to set the threshold by."""

    seed: int = 0
    """Chooses them."""


class Trace(Part):
    """How scores become roads and buildings; sizes are on the ground."""

    min_building_m2: Annotated[float, Field(ge=0)] = 15.0
    min_road_m: Annotated[float, Field(ge=0)] = 30.0


class Region(Part):
    """A named area to map."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")]
    """Names the folder data/NAME."""

    sources: Sources
    boundary: Boundary = Boundary()
    grid: GridPart = GridPart()

    classes: Annotated[tuple[Literal["road", "building"], ...], Field(min_length=1)] = (
        "road",
        "building",
    )
    """What is mapped."""

    mapped: Mapping[Literal["road", "building"], Polygons] = {}
    """By class: where OSM is taken as complete; the boundary if not told."""

    held_back: HeldBack = HeldBack()
    labels: Labels = Labels()
    truth: Truth | None = None

    recipe: Recipe = Recipe()
    """How models are trained."""

    refine: Refine = Refine()
    trace: Trace = Trace()


def read_region(path: Path) -> Region:
    """The region of a TOML file, its paths made absolute; MappingError that names what is wrong."""
    try:
        told = tomllib.loads(path.read_text())
    except OSError as problem:
        raise MappingError(
            f"{path} cannot be read ({problem.strerror}); wanted a region file, "
            "such as regions/demo.toml"
        ) from problem
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise MappingError(f"{path} is no TOML ({problem})") from problem
    try:
        region = Region.model_validate({"name": path.stem, **told})
    except ValidationError as problem:
        raise MappingError(f"{path}: {_sentence(problem)}") from problem
    return _absolute(region, path.parent.resolve())


def _sentence(problem: ValidationError) -> str:
    """The first fault in one sentence; for an unknown key the nearest that exists."""
    # A misspelt key may leave a needed one missing too: the typo is what to say.
    faults = sorted(problem.errors(), key=lambda fault: fault["type"] != "extra_forbidden")
    fault = faults[0]
    place = [str(part) for part in fault["loc"]]
    if fault["type"] == "extra_forbidden":
        known = _keys_at(place[:-1])
        nearest = difflib.get_close_matches(place[-1], known, n=1, cutoff=0.0)
        meant = f"did you mean {nearest[0]!r}?" if nearest else ""
        return f"unknown key {'.'.join(place)!r}; {meant} Known here: {', '.join(sorted(known))}"
    where = f"{'.'.join(place)}: " if place else ""
    return f"{where}{fault['msg'].removeprefix('Value error, ')}, got {_short(fault['input'])}"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _keys_at(place: Iterable[str]) -> list[str]:
    """The keys that a table of the region file may have."""
    model: Any = Region
    for name in place:
        told = model.model_fields.get(name) if hasattr(model, "model_fields") else None
        if told is None:
            return sorted(Polygons.model_fields)
        model = told.annotation
    if hasattr(model, "model_fields"):
        return list(model.model_fields)
    return list(getattr(model, "__dataclass_fields__", {}))


def _absolute(region: Region, folder: Path) -> Region:
    """The region with its paths taken from the folder of its file."""

    def at(part: Any) -> Any:
        if isinstance(part, Path):
            return folder / part
        if isinstance(part, Part):
            told = {name: at(getattr(part, name)) for name in type(part).model_fields}
            return part.model_copy(update=told)
        if isinstance(part, Mapping):
            return {key: at(value) for key, value in part.items()}
        return part

    absolute: Region = at(region)
    imagery = tuple(str(folder / source) for source in region.sources.imagery)
    sources = absolute.sources.model_copy(update={"imagery": imagery})
    return absolute.model_copy(update={"sources": sources})
