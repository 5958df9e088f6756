"""A scene: one image file, described once, so that readers need only its description."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import rasterio
from affine import Affine
from numpy.typing import NDArray
from pyproj import CRS, Geod
from pyproj.exceptions import CRSError
from rasterio.control import GroundControlPoint
from rasterio.errors import NotGeoreferencedWarning, RasterioError
from rasterio.transform import GCPTransformer, from_gcps

from .acquired import date_taken
from .channels import Channels, channels_of
from .errors import TilingError
from .files import file_identity, fingerprint
from .grid import short_crs, transformer
from .validity import Validity, any_valid, find_validity

Floats = NDArray[np.float64]

_DTYPES = {
    **{kept: kept for kept in ("uint8", "uint16", "int16", "float32")},
    **{"int8": "int16", "int32": "float32", "uint32": "float32", "float64": "float32"},
}
"""The type in which each type of file is read. Integers are exact in float32 up to 2**24."""

_GEOD = Geod(ellps="WGS84")
_EARTH_m = 6378137.0
_EDGE_POINTS = 21
"""Points on each side of an outline: enough to follow its bend in another CRS."""


@dataclass(frozen=True, slots=True)
class Scene:
    """One image file, described; values are the file's own (tags of scale and offset stay unused).

    Of a file of many pages it is the first.
    """

    path: Path

    crs: str
    """A code such as "EPSG:26986", or WKT; with ground control points, theirs."""

    transform: Affine
    """From (column, row) to (x, y); of ground control points the plain fit."""

    width: int

    height: int

    channels: Channels
    """Which of the file's bands are read, and their names."""

    dtype: str
    """The type in which values are read: uint8, uint16, int16 or float32."""

    date: str | None
    """The day it was taken (ISO), as far as the file tells."""

    validity: Validity
    """How it tells where it holds data."""

    identity: str
    """What changes when any file does that it is read from: side-cars and a VRT's sources too."""

    gcps: tuple[tuple[float, float, float, float], ...] = ()
    """Row, column, x and y of each ground control point, if it is these that place the image."""

    @property
    def ground_px_m(self) -> tuple[float, float]:
        """Width and height in metres on the ground of the pixel in the middle; turned ones too."""
        # The middle, one pixel on, one pixel down.
        cols, rows = np.array([0.0, 1.0, 0.0]), np.array([0.0, 0.0, 1.0])
        xs, ys = coordinates(self.transform, self.width / 2 + cols, self.height / 2 + rows)
        lons, lats = transformer(self.crs, "EPSG:4326").transform(xs, ys)
        if not (np.isfinite(lons).all() and np.isfinite(lats).all()):
            raise TilingError(
                f"{self.path} has its middle at ({xs[0]}, {ys[0]}), outside what "
                f"{short_crs(self.crs)} can map; wanted a place on the Earth"
            )
        metres = _GEOD.inv(lons[[0, 0]], lats[[0, 0]], lons[1:], lats[1:])[2]
        return float(metres[0]), float(metres[1])

    @property
    def bands(self) -> tuple[str, ...]:
        """The names of the bands: red, green and blue first."""
        return self.channels.names

    def control(self, top: int = 0, left: int = 0) -> list[GroundControlPoint]:
        """The ground control points, their rows and columns counted from (top, left)."""
        return [GroundControlPoint(row - top, col - left, x, y) for row, col, x, y in self.gcps]

    def bounds_in(self, crs: str) -> tuple[float, float, float, float]:
        """Left, bottom, right and top of the image's outline in `crs`.

        In degrees the right edge of an image over the antimeridian is beyond 180. TilingError if
        the outline has no place in `crs`.
        """
        return _bounds(self, crs)


def open_scene(path: Path) -> Scene:
    """Describe an image file; TilingError, in one sentence, for a file that is no usable image.

    Reads the header, the image's edge, and a reduced image if there may be a collar to find.
    """
    with opened(path) as source:
        _refuse_content(path, source)
        crs = _crs(path, source)
        _refuse_place(path, source, CRS(crs).is_geographic)
        gcps = tuple((p.row, p.col, p.x, p.y) for p in source.gcps[0]) if _by_points(source) else ()
        channels = channels_of(source)
        validity, regions = find_validity(source, channels)
        if not any_valid(source, channels, validity, regions):
            raise TilingError(f"{path} holds no data in any pixel; wanted an image with some")
        return Scene(
            path=path,
            crs=crs,
            transform=from_gcps(source.gcps[0]) if gcps else source.transform,
            width=source.width,
            height=source.height,
            channels=channels,
            dtype="uint8" if channels.palette else _DTYPES[source.dtypes[0]],
            date=date_taken(path.stem, source.tags() | source.tags(ns="IMAGERY")),
            validity=validity,
            identity=fingerprint(*map(file_identity, _files(path))),
            gcps=gcps,
        )


@contextmanager
def opened(path: Path) -> Iterator[rasterio.DatasetReader]:
    """The open image file; what fails in opening or reading it is a TilingError that names it."""
    if not path.is_file():
        found = "is a folder" if path.is_dir() else "does not exist"
        raise TilingError(f"{path} {found}; wanted an image file")
    if path.stat().st_size == 0:
        raise TilingError(f"{path} is empty (0 bytes); wanted an image file")
    with readable(path):
        with warnings.catch_warnings():
            # `_crs` refuses such a file, in a sentence.
            warnings.simplefilter("ignore", NotGeoreferencedWarning)
            source = rasterio.open(path)
        with source:
            yield source


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """What fails in reading an image file becomes a TilingError that names it."""
    try:
        yield
    except (RasterioError, UnicodeEncodeError) as problem:  # a name that is not in UTF-8
        reason = problem.__cause__ or problem
        raise TilingError(
            f"{path} cannot be read ({reason}); wanted a whole image file and all it refers to"
        ) from problem


def _files(path: Path) -> list[Path]:
    """The files on disk that an image is read from; GDAL itself looks into no VRT in a VRT."""
    found: set[Path] = set()
    waiting = [path]
    while waiting:
        at = waiting.pop()
        if at not in found and at.is_file():
            found.add(at)
            if at == path or at.suffix.lower() == ".vrt":
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", NotGeoreferencedWarning)
                    with rasterio.open(at) as source:
                        waiting.extend(map(Path, source.files))
    return sorted(found)


def _refuse_content(path: Path, source: rasterio.DatasetReader) -> None:
    dtypes = set(source.dtypes)
    if any(dtype.startswith("complex") for dtype in dtypes):
        raise TilingError(
            f"{path} holds complex numbers ({', '.join(sorted(dtypes))}: raw radar); "
            "wanted brightness"
        )
    if len(dtypes) > 1 or not dtypes <= _DTYPES.keys():
        raise TilingError(
            f"{path} holds {', '.join(sorted(dtypes))}; wanted one of {', '.join(_DTYPES)}"
        )


def _by_points(source: rasterio.DatasetReader) -> bool:
    """Whether ground control points place the image, and no transform does."""
    return source.crs is None and bool(source.gcps[0]) and source.gcps[1] is not None


def _crs(path: Path, source: rasterio.DatasetReader) -> str:
    """The CRS as text; TilingError where the image has no place on a map of the Earth."""
    found = source.gcps[1] if _by_points(source) else source.crs
    if not found:
        has = "a transform but no CRS" if source.transform != Affine.identity() else "no place"
        raise TilingError(
            f"{path} has {has}; wanted a georeferenced image "
            "(`gdal_edit.py -a_srs` or QGIS's Assign Projection gives one a CRS)"
        )
    text = str(found.to_string())
    try:
        crs = CRS(text)
    except CRSError as problem:
        raise TilingError(
            f"{path} has a CRS that cannot be read ({problem}); wanted one that PROJ knows"
        ) from problem
    body = crs.ellipsoid.semi_major_metre if crs.ellipsoid else 0.0
    if abs(body / _EARTH_m - 1) > 0.01 or not (crs.is_projected or crs.is_geographic):
        raise TilingError(
            f"{path} is in {crs.name} ({crs.type_name}, a body of {body / 1000:.0f} km radius); "
            "wanted a map of the Earth"
        )
    return text


def _refuse_place(path: Path, source: rasterio.DatasetReader, is_geographic: bool) -> None:
    if not _by_points(source):
        if source.transform.is_degenerate:
            raise TilingError(
                f"{path} has pixels without area ({tuple(source.transform)[:6]}); wanted a place"
            )
        return
    xs = [point.x for point in source.gcps[0]]
    if len(xs) < 3:
        raise TilingError(f"{path} has {len(xs)} ground control points; wanted at least 3")
    if is_geographic and max(xs) - min(xs) > 180:
        raise TilingError(
            f"{path} has ground control points on both sides of the antimeridian "
            f"(longitudes {min(xs):.1f} to {max(xs):.1f}); wanted longitudes without a jump"
        )


def coordinates(at: Affine, cols: Floats, rows: Floats) -> tuple[Floats, Floats]:
    """Apply a transform to many points (or undo one, with its inverse)."""
    return at.a * cols + at.b * rows + at.c, at.d * cols + at.e * rows + at.f


@lru_cache(maxsize=4096)
def _bounds(scene: Scene, crs: str) -> tuple[float, float, float, float]:
    cols, rows = _outline(scene.width, scene.height)
    if scene.gcps:
        with GCPTransformer(scene.control()) as at:
            xs, ys = at.xy(rows, cols, offset="ul")
    else:
        xs, ys = coordinates(scene.transform, cols, rows)
    xs, ys = transformer(scene.crs, crs).transform(np.asarray(xs), np.asarray(ys))
    if not (np.isfinite(xs).all() and np.isfinite(ys).all()):
        raise TilingError(
            f"{scene.path} lies in part outside what {short_crs(crs)} can map; wanted another CRS"
        )
    if CRS(crs).is_geographic:
        xs = np.unwrap(xs, period=360)  # The walk around the image goes on over the antimeridian.
        xs = xs + 360 * (xs.min() < -180)
    return float(xs.min()), float(ys.min()), float(xs.max()), float(ys.max())


def _outline(width: int, height: int) -> tuple[Floats, Floats]:
    """Columns and rows of a walk around an image."""
    there, zero = np.linspace(0, 1, _EDGE_POINTS), np.zeros(_EDGE_POINTS)
    back, one = there[::-1], zero + 1
    cols = np.concatenate([there, one, back, zero]) * width
    rows = np.concatenate([zero, there, one, back]) * height
    return cols, rows
