"""How good an exported map is: the file that people get, against a truth of any form and CRS."""

from collections.abc import Iterable
from pathlib import Path

from geopandas import GeoDataFrame

from ..errors import MappingError
from .features import read_features
from .metres import Bounds, common_bounds, degrees, joint_bounds
from .vector_scores import LineScores, ObjectScores, line_scores, object_scores


def evaluate_file(path: Path, truth: Path) -> dict[str, LineScores | ObjectScores]:
    """Score an exported map file: "roads" by length, "buildings" by object.

    Only a class that both have a layer of is scored (an empty layer: nothing was found). Where the
    truth is complete its own layer "area" says, else it is so everywhere. Any CRS on either side.
    MappingError for a truth of another place or class.
    """
    found, wanted = read_features(path), read_features(truth)
    area = wanted["area"].geometry if "area" in wanted else None
    both = {"roads", "buildings"} & found.keys() & wanted.keys()
    if not both:
        raise MappingError(
            f"{truth} holds {', '.join(wanted)} and {path} {', '.join(found)}; "
            "wanted roads or buildings in both"
        )
    _check_place(path, found.values(), truth, wanted.values())
    scores: dict[str, LineScores | ObjectScores] = {}
    if "roads" in both:
        scores["roads"] = line_scores(found["roads"], wanted["roads"], area=area)
    if "buildings" in both:
        scores["buildings"] = object_scores(found["buildings"], wanted["buildings"], area=area)
    return scores


def _check_place(
    path: Path, found: Iterable[GeoDataFrame], truth: Path, wanted: Iterable[GeoDataFrame]
) -> None:
    """Refuse a truth that has nothing in common with the map's extent."""
    here = [bounds for bounds in map(degrees, found) if bounds is not None]
    there = [bounds for bounds in map(degrees, wanted) if bounds is not None]
    if here and there:
        ours, theirs = joint_bounds(here), joint_bounds(there)
        if common_bounds([ours, theirs]) is None:
            raise MappingError(
                f"{truth} lies at {_told(theirs)} and {path} at {_told(ours)} "
                "(west, south, east, north); wanted a truth of the same place"
            )


def _told(bounds: Bounds) -> str:
    return ", ".join(f"{degree:.4f}" for degree in bounds)
