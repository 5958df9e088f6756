"""What the made-up county consists of: nouns without colour or light.

Coordinates are metres from the county's south-west corner, x eastwards and y northwards, until
`county` moves everything to its place in a CRS. A plan holds what stays where it is; cars, leaves
and light belong to a flight over it.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely import LineString, Polygon
from shapely.geometry.base import BaseGeometry

Floats = NDArray[np.float64]

ARTERIAL = ("primary", "secondary", "tertiary")
"""Kinds of road that cross the river."""

WIDTHS_M = {
    "primary": 13.5,
    "secondary": 10.0,
    "tertiary": 8.5,
    "unclassified": 6.5,
    "residential": 7.0,
    "service": 5.5,
    "parking_aisle": 5.5,
    "track": 3.2,
}
"""Usual width of the carriageway by kind of road."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A place and a direction: its own s axis runs along `angle`, t to the left of it."""

    x: float
    y: float
    angle: float
    """Of the s axis, in radians from east towards north."""

    def at(self, s: float, t: float) -> tuple[float, float]:
        """The county's (x, y) of a point of the frame."""
        cos, sin = math.cos(self.angle), math.sin(self.angle)
        return self.x + s * cos - t * sin, self.y + s * sin + t * cos

    def moved(self, s: float, t: float, turn: float = 0.0) -> Self:
        """The frame at another of its points, turned by `turn` radians."""
        return type(self)(*self.at(s, t), self.angle + turn)

    def box(self, s0: float, t0: float, s1: float, t1: float) -> Polygon:
        """A rectangle given by two of its corners."""
        return Polygon([self.at(s0, t0), self.at(s1, t0), self.at(s1, t1), self.at(s0, t1)])

    def line(self, points: Iterable[tuple[float, float]]) -> LineString:
        """A line through points of the frame."""
        return LineString([self.at(s, t) for s, t in points])


def one_polygon(shape: BaseGeometry) -> Polygon:
    """The shape, where it is known to be in one piece; ValueError where it is not."""
    if not isinstance(shape, Polygon):
        raise ValueError(f"wanted one polygon, got a {shape.geom_type}")
    return shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Road:
    """A stretch of one street."""

    line: LineString
    kind: str
    """One of WIDTHS_M."""

    width_m: float
    street: str
    """Name of the street; "" for one without. All stretches of a street share it."""

    bridge: bool = False
    turning_circle: bool = False
    """Whether the last point is the middle of one."""

    pavement: bool = False
    """Whether people can walk along it on both sides."""

    def __post_init__(self) -> None:
        if self.kind not in WIDTHS_M or self.width_m <= 0:
            raise ValueError(f"a road is one of {', '.join(WIDTHS_M)} and wide, got {self}")

    def surface(self) -> BaseGeometry:
        """What is paved, turning circle included."""
        flat = self.line.buffer(self.width_m / 2, cap_style="flat")
        if not self.turning_circle:
            return flat
        return flat.union(shapely.get_point(self.line, -1).buffer(self.width_m / 2 + 5.5))


def frame_beside(road: Road, along: float, side: int) -> Frame:
    """The frame at the edge of a road whose t axis points away from it (side 1: to its left)."""
    x, y = road.line.interpolate(along).coords[0]
    x0, y0 = road.line.interpolate(max(along - 4, 0)).coords[0]
    x1, y1 = road.line.interpolate(along + 4).coords[0]
    angle = math.atan2(y1 - y0, x1 - x0) + (0 if side > 0 else math.pi)
    return Frame(x, y, angle).moved(0, road.width_m / 2)


@dataclass(frozen=True, slots=True)
class Wing:
    """A rectangular part of a building, with its own roof over its middle `frame`."""

    frame: Frame
    """Its s axis is the ridge's direction."""

    half_length: float
    half_width: float
    roof: str
    """gable, hip or flat."""

    eaves_m: float
    pitch: float = 0.0
    """Rise of the roof per metre."""

    def outline(self) -> Polygon:
        return self.frame.box(
            -self.half_length, -self.half_width, self.half_length, self.half_width
        )

    def height_m(self, s: Floats, t: Floats) -> Floats:
        """Height of the roof at points of the frame; below the eaves outside the wing."""
        aside = self.half_width - np.abs(t)
        along = self.half_length - np.abs(s)
        if self.roof == "flat":
            return np.where(np.minimum(aside, along) > -0.8, self.eaves_m, 0.0)
        rise = np.minimum(aside, along) if self.roof == "hip" else aside
        return np.where(along > -0.8, self.eaves_m + self.pitch * rise, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Building:
    """A footprint and what stands on it."""

    footprint: Polygon
    wings: tuple[Wing, ...]
    kind: str
    """Value of OSM's tag `building`."""

    covering: str
    """What the roof is made of: a name in the painter's table."""

    tint: float
    """Brightness of the roof against others of its covering."""

    street: str
    """What it is mapped with: the street's name, or the site's."""

    row: str = ""
    """Buildings of one terrace share it."""


@dataclass(frozen=True, slots=True)
class Patch:
    """An area of ground of one material."""

    area: BaseGeometry
    material: str
    """A name in the painter's table."""

    tint: float = 1.0
    """Brightness against other ground of the material."""

    angle: float = 0.0
    """Direction of its rows in radians, where the material has rows."""


@dataclass(frozen=True, slots=True)
class Bay:
    """Room for one parked car."""

    frame: Frame
    """In its middle, s along the car."""

    share: float
    """How often there is one, in [0, 1]."""


@dataclass(frozen=True, slots=True)
class Box:
    """A small thing on a roof or on the ground: chimney, air conditioner, tank."""

    area: Polygon
    height_m: float
    """Above ground."""

    tint: float


@dataclass(frozen=True, slots=True)
class Trees:
    """Trees as columns."""

    x: Floats
    y: Floats
    radius_m: Floats
    height_m: Floats
    leaf: Floats
    """In [0, 1], which green it has; above 1 a conifer."""

    @classmethod
    def joined(cls, parts: "Sequence[Trees]") -> Self:
        names = ("x", "y", "radius_m", "height_m", "leaf")
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    def where(self, keep: NDArray[np.bool_]) -> Self:
        """Those of which `keep` is true."""
        columns = (self.x, self.y, self.radius_m, self.height_m, self.leaf)
        return type(self)(*(column[keep] for column in columns))


@dataclass(frozen=True, slots=True)
class Furnishing:
    """What one piece of land was given: every field in painting order."""

    buildings: tuple[Building, ...] = ()
    grounds: tuple[Patch, ...] = ()
    bays: tuple[Bay, ...] = ()
    boxes: tuple[Box, ...] = ()
    roads: tuple[Road, ...] = ()
    paths: tuple[LineString, ...] = ()
    """Footways: seen, but no roads."""

    trees: tuple[Trees, ...] = ()

    @classmethod
    def joined(cls, parts: "Sequence[Furnishing]") -> Self:
        def all_of(name: str) -> Any:
            return tuple(thing for part in parts for thing in getattr(part, name))

        names = ("buildings", "grounds", "bays", "boxes", "roads", "paths", "trees")
        return cls(*(all_of(name) for name in names))


@dataclass(frozen=True, slots=True)
class Plan:
    """A county on paper."""

    size_m: tuple[int, int]
    """Width and height."""

    roads: tuple[Road, ...]
    buildings: tuple[Building, ...]
    grounds: tuple[Patch, ...]
    """In painting order, roads not included."""

    bays: tuple[Bay, ...]
    boxes: tuple[Box, ...]
    paths: tuple[LineString, ...]
    trees: Trees
