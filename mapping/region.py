"""A region: a named area to map, as its TOML file says it; an unknown key is refused by name."""

import difflib
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from ..models.recipe import Recipe
from ..tiling.catalogue import rooted
from ..tiling.errors import TilingError
from .errors import MappingError
from .parts import (
    Boundary,
    GridPart,
    HeldBack,
    Labels,
    Name,
    Part,
    Polygons,
    Refine,
    Sources,
    Trace,
    Truth,
)


class Region(Part):
    """A named area to map."""

    name: Name
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

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if len(set(self.classes)) < len(self.classes):
            raise ValueError(f"classes are different ones, got {list(self.classes)}")
        if self.recipe.crop > self.grid.tile:
            raise ValueError(
                f"recipe.crop is at most grid.tile, got {self.recipe.crop} and {self.grid.tile}"
            )
        return self


def read_region(path: Path) -> Region:
    """The region of a TOML file, its paths made absolute; MappingError that names what is wrong."""
    try:
        return region_of(path.read_text(encoding="utf-8"), path)
    except OSError as problem:
        raise MappingError(
            f"{path} cannot be read ({problem.strerror}); wanted a region file, "
            "such as regions/demo.toml"
        ) from problem
    except UnicodeDecodeError as problem:
        raise MappingError(f"{path} is no TOML ({problem})") from problem


def region_of(text: str, path: Path) -> Region:
    """The region that `read_region` would find, if this text stood in the file."""
    try:
        region = Region.model_validate({"name": path.stem, **tomllib.loads(text)})
    except tomllib.TOMLDecodeError as problem:
        raise MappingError(f"{path} is no TOML ({problem})") from problem
    except ValidationError as problem:
        raise MappingError(f"{path}: {_sentence(problem)}") from problem
    try:
        return _absolute(region, path.parent.resolve())
    except TilingError as problem:
        raise MappingError(f"{path}: sources.imagery: {problem}") from problem


def files_of(region: Region) -> Iterator[tuple[str, Path]]:
    """The files that a region names, imagery apart, each with its key."""

    def within(key: str, part: Any) -> Iterator[tuple[str, Path]]:
        if isinstance(part, Path):
            yield key, part
        elif isinstance(part, Part | Mapping):
            for name, value in part.items() if isinstance(part, Mapping) else part:
                yield from within(f"{key}.{name}".lstrip("."), value)

    return within("", region)


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
    if fault["type"] == "value_error":  # our own sentence says what was found
        return f"{where}{fault['msg'].removeprefix('Value error, ')}"
    return f"{where}{fault['msg']}, got {_short(fault['input'])}"


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
    imagery = tuple(rooted(source, folder) for source in region.sources.imagery)
    sources = absolute.sources.model_copy(update={"imagery": imagery})
    return absolute.model_copy(update={"sources": sources})
