"""How good an exported map is: the file that people get, against a truth of any form and CRS."""

from pathlib import Path

from geopandas import GeoDataFrame, GeoSeries

from .errors import MappingError
from .features import read_features
from .metres import Bounds, common_bounds, degrees
from .vector_scores import LineScores, ObjectScores, line_scores, object_scores


def evaluate_file(
    path: Path,
    truth: Path,
    *,
    area: GeoSeries | None = None,
    iou: float = 0.5,
    tolerance_m: float = 3.0,
) -> dict[str, ObjectScores | LineScores]:
    """Score an exported map file: "roads" by length, "buildings" by object.

    Only what the truth has a layer of is scored; a layer that the map lacks counts as nothing
    found. `area` is where the truth is complete (any CRS; default: the truth's own layer "area",
    else everywhere). Any CRS on either side. MappingError for a truth of another place.
    """
    found, wanted = read_features(path), read_features(truth)
    if area is None and "area" in wanted:
        area = wanted["area"].geometry
    scores: dict[str, ObjectScores | LineScores] = {}
    for name in ("roads", "buildings"):
        if name not in wanted:
            continue
        ours = found.get(name, wanted[name].iloc[:0])
        _check_place(path, ours, truth, wanted[name])
        if name == "roads":
            scores[name] = line_scores(ours, wanted[name], tolerance_m=tolerance_m, area=area)
        else:
            scores[name] = object_scores(ours, wanted[name], iou=iou, area=area)
    if not scores:
        raise MappingError(f"{truth} holds neither roads nor buildings; wanted a truth of either")
    return scores


def _check_place(path: Path, found: GeoDataFrame, truth: Path, wanted: GeoDataFrame) -> None:
    """Refuse a truth that has nothing in common with the map's extent."""
    here, there = degrees(found), degrees(wanted)
    if here and there and common_bounds([here, there]) is None:
        raise MappingError(
            f"{truth} lies at {_told(there)} and {path} at {_told(here)} "
            "(west, south, east, north); wanted a truth of the same place"
        )


def _told(bounds: Bounds) -> str:
    return ", ".join(f"{degree:.4f}" for degree in bounds)
