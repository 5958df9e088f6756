"""The absolute lattice that everything stands on: numbers and rectangles, no files.

Inside, row comes before column (NumPy's order) and rows grow southwards; x comes before y only
where coordinates of the CRS are meant. Windows are half open and hold the grid's own indices,
which may be negative, so a window means the same place whatever region it was made for.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, Self

from affine import Affine
from odc.geo.geobox import GeoBox
from pyproj import CRS, Geod, Transformer
from pyproj.exceptions import CRSError, ProjError

from .errors import TilingError

ALIGNED = 1e-3
"""Fraction of a pixel within which two lattices count as the same (a millimetre at 1 m)."""


@dataclass(frozen=True, slots=True, order=True)
class Window:
    """A rectangle of pixels of a grid, half open: rows [top, bottom), columns [left, right)."""

    top: int
    left: int
    bottom: int
    right: int

    def __post_init__(self) -> None:
        if not (self.top < self.bottom and self.left < self.right):
            raise ValueError(f"a window holds at least one pixel, got {self}")

    @property
    def height(self) -> int:
        return self.bottom - self.top

    @property
    def width(self) -> int:
        return self.right - self.left

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.height, self.width

    def slices(self, inside: "Window") -> tuple[slice, slice]:
        """Rows and columns of this window in an array that holds the window `inside`."""
        return (
            slice(self.top - inside.top, self.bottom - inside.top),
            slice(self.left - inside.left, self.right - inside.left),
        )

    def overlap(self, other: "Window") -> "Window | None":
        """The pixels that both hold; None if they hold none in common."""
        top, left = max(self.top, other.top), max(self.left, other.left)
        bottom, right = min(self.bottom, other.bottom), min(self.right, other.right)
        return Window(top, left, bottom, right) if top < bottom and left < right else None

    def grown(self, margin: int) -> "Window":
        """The window and `margin` more pixels on each side."""
        return Window(
            self.top - margin, self.left - margin, self.bottom + margin, self.right + margin
        )

    def lattice(self, side: int) -> "Iterator[Window]":
        """The squares of the absolute lattice of `side` pixels that share a pixel with this window.

        >>> [(w.top, w.left) for w in Window(-1, 0, 1, 4).lattice(4)]
        [(-4, 0), (0, 0)]
        """
        for row in range(self.top // side, -(-self.bottom // side)):
            for col in range(self.left // side, -(-self.right // side)):
                yield Window(row * side, col * side, (row + 1) * side, (col + 1) * side)


@dataclass(frozen=True, slots=True, order=True)
class Cell:
    """The unit of work and of files: one square of the grid's lattice of cells."""

    row: int
    """Grows southwards."""

    col: int

    @property
    def name(self) -> str:
        """The cell's name in file names and tables.

        >>> Cell(-12, 34).name
        'r-00012_c000034'
        """
        return f"r{self.row:06d}_c{self.col:06d}"

    @classmethod
    def parse(cls, name: str) -> Self:
        """Undo `name`; ValueError for anything else.

        >>> Cell.parse("r-00012_c000034")
        Cell(row=-12, col=34)
        """
        found = re.fullmatch(r"r(-?\d+)_c(-?\d+)", name)
        if found is None:
            raise ValueError(f"{name!r} is no cell's name, such as {cls(-12, 34).name!r}")
        return cls(int(found[1]), int(found[2]))


@dataclass(frozen=True, slots=True)
class Grid:
    """An absolute lattice in one CRS and pixel size, cut into cells, cells into tiles."""

    crs: str
    """What pyproj reads: "EPSG:26986", or WKT for a CRS without a code."""

    pixel: tuple[float, float]
    """Width and height of a pixel in units of the CRS, both positive."""

    anchor: tuple[float, float] = (0.0, 0.0)
    """Where the lattice stands, in x and y: fractions of a pixel, in [0, 1)."""

    cell: int = 4096
    """Side of a cell in pixels, a multiple of the tile."""

    tile: int = 512
    """Side of a tile in pixels, a multiple of 16 (GeoTIFF's rule for blocks)."""

    def __post_init__(self) -> None:
        if min(self.pixel) <= 0 or not all(map(math.isfinite, self.pixel)):
            raise TilingError(f"a pixel has a positive size, got {self.pixel}")
        if not all(0 <= part < 1 for part in self.anchor):
            raise TilingError(f"an anchor is a fraction of a pixel in [0, 1), got {self.anchor}")
        if self.tile < 16 or self.tile % 16:
            raise TilingError(f"a tile's side is a positive multiple of 16, got {self.tile}")
        if self.cell < self.tile or self.cell % self.tile:
            raise TilingError(
                f"a cell's side is a multiple of the tile's {self.tile}, got {self.cell}"
            )

    def __str__(self) -> str:
        (width, height), (x, y) = self.pixel, self.anchor
        return (
            f"{short_crs(self.crs)} (pixels of {width:g} x {height:g} from {x:g}, {y:g}; "
            f"cells of {self.cell} px, tiles of {self.tile} px)"
        )

    @classmethod
    def of_raster(cls, crs: str, transform: Affine, cell: int = 4096, tile: int = 512) -> Self:
        """The grid on whose lattice a north-up raster stands (`transform`: pixel to CRS)."""
        if transform.b or transform.d or transform.a <= 0 or transform.e >= 0:
            raise TilingError(f"a raster that stands on a grid is north-up, got {transform!r}")
        x, y = transform.c / transform.a, transform.f / -transform.e
        return cls(crs, (transform.a, -transform.e), (_fraction(x), _fraction(y)), cell, tile)

    # -- pixels and coordinates ------------------------------------------------------------

    def transform(self, window: Window) -> Affine:
        """From (column, row) inside `window` to (x, y) in the CRS."""
        (width, height), (x, y) = self.pixel, self.anchor
        return Affine(
            width, 0.0, (x + window.left) * width, 0.0, -height, (y - window.top) * height
        )

    def bounds(self, window: Window) -> tuple[float, float, float, float]:
        """Left, bottom, right and top of `window` in the CRS."""
        at = self.transform(window)
        return at.c, at.f + at.e * window.height, at.c + at.a * window.width, at.f

    def geobox(self, window: Window) -> GeoBox:
        """The window as odc-geo has it."""
        return GeoBox(window.shape, self.transform(window), self.crs)

    def covering(self, bounds: tuple[float, float, float, float]) -> Window:
        """The smallest window that holds the rectangle (left, bottom, right, top) of the CRS.

        An edge within ALIGNED of a pixel's edge counts as on it.
        """
        left, bottom, right, top = bounds
        (width, height), (x, y) = self.pixel, self.anchor
        rows = _cover(y - top / height, y - bottom / height)
        cols = _cover(left / width - x, right / width - x)
        return Window(rows[0], cols[0], rows[1], cols[1])

    def stands_on(self, crs: str, transform: Affine) -> bool:
        """Whether a raster's pixels are this grid's own, so that they can be copied as they are."""
        if transform.b or transform.d or not same_crs(self.crs, crs):
            return False
        (width, height), (x, y) = self.pixel, self.anchor
        off = transform.c / width - x, transform.f / height - y
        # A size off by 1e-9 moves the far edge of 100,000 pixels by a tenth of ALIGNED.
        sizes = abs(transform.a / width - 1), abs(-transform.e / height - 1)
        return max(sizes) < 1e-9 and all(abs(o - round(o)) < ALIGNED for o in off)

    def ground_pixel(self, window: Window) -> tuple[float, float]:
        """Width and height in metres on the ground of the pixel at the middle of `window`.

        Metres of the map are not metres of the ground (1.51 apart in web Mercator at Seattle),
        so they are measured on the ellipsoid.
        """
        at = self.transform(window)
        col, row = window.width // 2, window.height // 2
        corners = [
            (at.c + at.a * c, at.f + at.e * r)
            for c, r in ((col, row), (col + 1, row), (col, row + 1))
        ]
        to_degrees = transformer(self.crs, "EPSG:4326")
        (lon, lat), *others = [to_degrees.transform(*corner) for corner in corners]
        metres = [_GEOD.inv(lon, lat, *other)[2] for other in others]
        if not all(map(math.isfinite, metres)):
            raise TilingError(
                f"the place {corners[0]} lies outside what {short_crs(self.crs)} can map"
            )
        return metres[0], metres[1]

    # -- cells -----------------------------------------------------------------------------

    def window(self, cell: Cell) -> Window:
        """The pixels of a cell."""
        top, left = cell.row * self.cell, cell.col * self.cell
        return Window(top, left, top + self.cell, left + self.cell)

    def cells(self, window: Window) -> list[Cell]:
        """The cells that share a pixel with `window`, row by row."""
        return [
            Cell(square.top // self.cell, square.left // self.cell)
            for square in window.lattice(self.cell)
        ]

    # -- as data ---------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """What `from_dict` reads, in types of JSON."""
        return {**asdict(self), "pixel": list(self.pixel), "anchor": list(self.anchor)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Undo `to_dict`."""
        pixel, anchor = data["pixel"], data["anchor"]
        return cls(
            data["crs"], (pixel[0], pixel[1]), (anchor[0], anchor[1]), data["cell"], data["tile"]
        )


_GEOD = Geod(ellps="WGS84")


@lru_cache(maxsize=64)
def transformer(source: str, target: str) -> Transformer:
    """From one CRS to another, x (or longitude) before y always."""
    return Transformer.from_crs(source, target, always_xy=True)


@lru_cache(maxsize=64)
def known_crs(told: str) -> str:
    """The same text; ValueError if it is no CRS of maps of Earth, in two dimensions."""
    try:
        found = CRS.from_user_input(told)
    except CRSError as problem:
        raise ValueError(
            f"{told!r} is no CRS that PROJ knows; wanted one such as EPSG:26918"
        ) from problem
    if not maps_earth(found) or len(found.axis_info) != 2:
        raise ValueError(
            f"{told!r} ({found.name}) is no CRS of maps of Earth; wanted one such as EPSG:26918"
        )
    return told


def maps_earth(crs: CRS) -> bool:
    """Whether a CRS gives places on Earth by two coordinates, with or without a height."""
    try:
        Transformer.from_crs(crs, "EPSG:4326")
    except ProjError:
        return False
    return bool(crs.is_projected or crs.is_geographic)


def same_crs(one: str, other: str) -> bool:
    """Whether two CRS are the same but for their names and order of axes."""
    return one == other or CRS(one).equals(CRS(other), ignore_axis_order=True)


@lru_cache(maxsize=64)
def short_crs(crs: str) -> str:
    """The CRS's code if it has one, else its name: for messages."""
    found = CRS(crs)
    code = found.to_authority(min_confidence=70)
    return ":".join(code) if code else found.name


def _fraction(number: float) -> float:
    """The fractional part in [0, 1); 0 where the number is whole to within ALIGNED."""
    part = number - math.floor(number)
    return 0.0 if min(part, 1 - part) < ALIGNED / 10 else part


def _cover(low: float, high: float) -> tuple[int, int]:
    """The smallest whole interval that holds [low, high] and at least one pixel."""
    start = math.floor(low + ALIGNED)
    return start, max(math.ceil(high - ALIGNED), start + 1)
