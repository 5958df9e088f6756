"""The tables of a region file, each checked by itself: frozen, and closed to unknown keys."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pyproj import CRS

from ..models.recipe import Seed
from ..tiling.errors import TilingError
from ..tiling.grid import known_crs
from ..tiling.tags import check_widths

Crs = Annotated[str, AfterValidator(known_crs)]
"""What PROJ reads, such as "EPSG:26918"."""


def region_name(told: str) -> str:
    """The same text; ValueError if it cannot name a region."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]*", told):
        raise ValueError(
            f"{told!r} is no name of a region; wanted small letters, digits, - and _, as my-town"
        )
    return told


Name = Annotated[str, AfterValidator(region_name)]
"""A region's: it is a folder's name and a file's too."""


def _known_widths(told: Mapping[str, float]) -> Mapping[str, float]:
    try:
        check_widths(told)
    except TilingError as problem:
        raise ValueError(str(problem)) from problem
    return told


Widths = Annotated[Mapping[str, float], AfterValidator(_known_widths)]
"""Metres by highway class, or by "default"."""


class Part(BaseModel):
    """A table of the region file: frozen, and closed to keys that it does not know."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False
    )


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
        count = sum(told is not None for told in (self.bbox, self.file, self.place))
        if count > 1:
            raise ValueError(f"a boundary is one of bbox, file and place, got {count} of them")
        if self.bbox is not None:
            west, south, east, north = self.bbox
            if not (west < east and south < north):
                raise ValueError(f"a bbox is west, south, east, north, got {list(self.bbox)}")
            if CRS(self.crs).is_geographic and not (
                -360 <= west and east <= 360 and -90 <= south and north <= 90
            ):
                raise ValueError(f"a bbox in degrees is a place on Earth, got {list(self.bbox)}")
        return self


class GridPart(Part):
    """The lattice; what is not told is found from the imagery."""

    crs: Crs | None = None
    """Such as "EPSG:26918"."""

    pixel: Annotated[float, Field(gt=0)] | None = None
    """Side of a pixel in units of the CRS."""

    anchor: tuple[float, float] | None = None
    """Where the lattice stands, in fractions of a pixel, x and y."""

    cell: Annotated[int, Field(ge=16, le=16384)] = 4096
    """Side of a cell in pixels, a multiple of `tile`."""

    tile: Annotated[int, Field(ge=16, le=4096)] = 512
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
            found = "neither" if self.osm is None else "both"
            raise ValueError(f"sources have one of osm (a file) and overpass, got {found}")
        return self


class HeldBack(Part):
    """What no model is trained on, so that figures and thresholds are honest."""

    share: Annotated[float, Field(ge=0, le=0.9)] = 0.15
    """Share of the tiles (of whole cells, where there are ten or more) that is held back."""

    seed: Seed = 0
    """Chooses them."""

    file: Path | None = None
    """Instead of a share: polygons; tiles that touch them are held back."""

    layer: str | None = None


class Labels(Part):
    """How OSM becomes labels."""

    widths: Widths = {}
    """Metres by highway class, such as {residential = 6}; `default` is for all others."""

    width_tags: bool = True
    """Whether the tags `width` and `lanes` come before the table."""

    guard_m: Annotated[float, Field(ge=0, le=100)] = 1.0
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

    seed: Seed = 0
    """Chooses them."""


class Trace(Part):
    """How scores become roads and buildings; sizes are on the ground."""

    min_building_m2: Annotated[float, Field(ge=0)] = 15.0
    min_road_m: Annotated[float, Field(ge=0)] = 30.0
