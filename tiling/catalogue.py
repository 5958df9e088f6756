"""Which image files there are, in which order they count, and the grid that most stand on."""

import glob
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from .errors import TilingError
from .grid import ALIGNED, Grid, same_crs
from .imagery import scene_grid
from .scene import Scene, open_scene

SUFFIXES = frozenset({".tif", ".tiff", ".vrt", ".jp2", ".png", ".jpg", ".jpeg", ".img"})
"""What counts as an image in a folder, in upper or lower case; a file named outright may be any."""


def find_scenes(sources: Sequence[str | Path], root: Path) -> list[Scene]:
    """The scenes of files, folders (not what is deeper in them) and globs (** goes deeper).

    Relative sources are seen from `root`. Sorted by path, each file once. TilingError for a source
    that finds nothing and for a file that is no usable image.
    """
    found = {
        path.resolve(): path for source in sources for path in _files(Path(rooted(source, root)))
    }
    if not found:
        raise TilingError("no source of imagery is given; wanted files, folders or globs")
    return [open_scene(path) for path in sorted(found.values())]


def rooted(source: str | Path, root: Path) -> str:
    """A relative source as seen from `root`: what is a glob in it stays one, `root` is none.

    A path that exists as it stands is no glob. TilingError for what can be no path.
    """
    told = str(source)
    if not told or "\0" in told:
        raise TilingError(f"a source of imagery is a file, folder or glob, got {told!r}")
    path = root / told
    if path.exists() or Path(told).is_absolute() or not glob.has_magic(told):
        return str(path)
    return os.path.join(glob.escape(str(root)), told)


def order(scenes: Iterable[Scene]) -> list[Scene]:
    """The best first: the newest (undated last), then the largest on the ground, then by name.

    It is the same everywhere, so wherever one scene covers a place, the place is of one scene.
    """
    by_name = sorted(scenes, key=lambda scene: (scene.path.name, str(scene.path)))
    by_size = sorted(by_name, key=_area_m2, reverse=True)
    return sorted(by_size, key=lambda scene: scene.date or "", reverse=True)


def common_grid(
    scenes: Sequence[Scene], *, pixel_m: float | None = None, cell: int = 4096, tile: int = 512
) -> Grid:
    """The grid of most imagery: the CRS with the most ground, its pixel size, its lattice.

    It does not depend on the order of the scenes. TilingError if there are none.
    """
    if not scenes:
        raise TilingError("there is no imagery to find a grid from; wanted at least one scene")
    found = [
        (scene_grid(scene, pixel_m=pixel_m, cell=cell, tile=tile), _area_m2(scene))
        for scene in sorted(scenes, key=lambda scene: str(scene.path))
    ]
    for alike in (_same_crs, _same_pixel, _same_lattice):
        first = _heaviest(found, alike)
        found = [(grid, area) for grid, area in found if alike(grid, first)]
    return found[0][0]


def _files(source: Path) -> list[Path]:
    """The image files of one source; TilingError if there are none."""
    if source.is_dir():
        return _some(
            source,
            (
                path
                for path in source.iterdir()
                if path.suffix.lower() in SUFFIXES and not path.name.startswith(".")
            ),
        )
    if source.exists() or not glob.has_magic(str(source)):
        return [source]
    return _some(source, (Path(path) for path in glob.glob(str(source), recursive=True)))


def _some(source: Path, paths: Iterable[Path]) -> list[Path]:
    found = [path for path in paths if path.is_file()]
    if not found:
        raise TilingError(
            f"{source} finds no image; wanted files that end in {', '.join(sorted(SUFFIXES))}"
        )
    return found


def _area_m2(scene: Scene) -> float:
    width_m, height_m = scene.ground_px_m
    return scene.width * width_m * scene.height * height_m


def _heaviest(found: Sequence[tuple[Grid, float]], alike: Callable[[Grid, Grid], bool]) -> Grid:
    """The first grid of the kind that has the most area; of equals the first."""
    kinds: list[tuple[Grid, list[float]]] = []
    for grid, area in found:
        areas = next((areas for first, areas in kinds if alike(grid, first)), None)
        if areas is None:
            kinds.append((grid, [area]))
        else:
            areas.append(area)
    return max(kinds, key=lambda kind: sum(kind[1]))[0]


def _same_crs(one: Grid, other: Grid) -> bool:
    return same_crs(one.crs, other.crs)


def _same_pixel(one: Grid, other: Grid) -> bool:
    return all(abs(a / b - 1) < 1e-9 for a, b in zip(one.pixel, other.pixel, strict=True))


def _same_lattice(one: Grid, other: Grid) -> bool:
    off = (a - b for a, b in zip(one.anchor, other.anchor, strict=True))
    return all(abs(part - round(part)) < ALIGNED for part in off)
