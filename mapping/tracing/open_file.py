"""The file of what a cell leaves open: numbers alone, in NumPy's npz form; nothing in it runs."""

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from ...tiling.files import written_beside
from ..errors import MappingError
from .buildings import OpenBuildings, Pieces
from .centrelines import Piece
from .seams import Sides

Arrays = dict[str, NDArray[Any]]


def write_open(path: Path, buildings: OpenBuildings | None, roads: Sequence[Piece]) -> None:
    """Write what `read_open` reads; the same things, the same bytes."""
    arrays = _of_roads(roads)
    if buildings is not None:
        arrays |= _of_buildings(buildings)
    with written_beside(path) as part:
        np.savez_compressed(part, allow_pickle=False, **arrays)


def read_open(path: Path) -> tuple[OpenBuildings | None, list[Piece]]:
    """The open buildings of a cell (None where that class is not traced) and pieces of road."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = dict(file)
    except (OSError, EOFError, ValueError, zipfile.BadZipFile) as problem:
        raise MappingError(
            f"{path} cannot be read ({problem}); wanted what tracing a cell leaves: "
            f"remove {path.parent} and trace again"
        ) from problem
    return (_to_buildings(arrays) if "pixels" in arrays else None), _to_roads(arrays)


def _of_buildings(found: OpenBuildings) -> Arrays:
    outlines = found.pieces.outlines
    if len(outlines):
        _, xy, (ring_starts, starts) = shapely.to_ragged_array(outlines)
    else:
        xy, ring_starts, starts = np.empty((0, 2)), np.zeros(1, int), np.zeros(1, int)
    return {
        "outline_xy": xy.astype(np.int32),
        "outline_ring_starts": ring_starts.astype(np.int32),
        "outline_starts": starts.astype(np.int32),
        "pixels": found.pieces.pixels,
        "totals": found.pieces.totals,
        "clusters": found.pieces.clusters,
        "beside_nodata": found.beside_nodata,
        "piece_sides": found.piece_sides.array(),
        "cluster_sides": found.cluster_sides.array(),
    }


def _to_buildings(arrays: Arrays) -> OpenBuildings:
    outlines = np.empty(0, object)
    if len(arrays["pixels"]):
        outlines = shapely.from_ragged_array(
            shapely.GeometryType.POLYGON,
            arrays["outline_xy"].astype(np.float64),
            (arrays["outline_ring_starts"], arrays["outline_starts"]),
        )
    return OpenBuildings(
        Pieces(outlines, arrays["pixels"], arrays["totals"], arrays["clusters"]),
        arrays["beside_nodata"],
        Sides.of_array(arrays["piece_sides"]),
        Sides.of_array(arrays["cluster_sides"]),
    )


def _of_roads(pieces: Sequence[Piece]) -> Arrays:
    none = Piece(
        np.empty((0, 2), np.int64),
        np.empty(0, np.uint8),
        np.empty(0, np.float32),
        np.empty(0, bool),
    )
    every = [none, *pieces]
    return {
        "path": np.concatenate([piece.path for piece in every]).astype(np.int32),
        "path_ends": np.cumsum([len(piece.path) for piece in pieces], dtype=np.int64),
        "path_scores": np.concatenate([piece.scores for piece in every]),
        "path_radii_px": np.concatenate([piece.radii_px for piece in every]),
        "path_fixed": np.concatenate([piece.fixed for piece in every]),
        "path_cuts": np.array([piece.cuts for piece in pieces], bool).reshape(-1, 2),
    }


def _to_roads(arrays: Arrays) -> list[Piece]:
    names = ("path", "path_scores", "path_radii_px", "path_fixed")
    stops = arrays["path_ends"][:-1]
    if not len(arrays["path_ends"]):
        return []
    path, scores, radii_px, fixed = (np.split(arrays[name], stops) for name in names)
    return [
        Piece(
            path[k].astype(np.int64), scores[k], radii_px[k], fixed[k], (bool(before), bool(behind))
        )
        for k, (before, behind) in enumerate(arrays["path_cuts"])
    ]
