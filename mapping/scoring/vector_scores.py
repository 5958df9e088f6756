"""How good vector features are: areas one to one, lines by length, against a truth of any CRS.

A rate without anything to divide by is None, never 0 or NaN.
"""

from dataclasses import dataclass

import numpy as np
import shapely
from geopandas import GeoDataFrame, GeoSeries
from shapely.geometry.base import BaseGeometry

from ..errors import MappingError
from .matching import (
    Geometries,
    cut_in_pieces,
    inside,
    near_any,
    overlaps,
    spots,
    valid_areas,
)
from .metres import to_metric
from .pixel_scores import Finds, share

# -- objects -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ObjectScores(Finds):
    """How many areas were found, one to one: each of a pair that overlaps enough."""

    mean_iou: float | None = None
    """Mean intersection over union of the pairs."""


def object_scores(
    found: GeoDataFrame,
    truth: GeoDataFrame,
    *,
    iou: float = 0.5,
    area: GeoSeries | None = None,
) -> ObjectScores:
    """Pair found and true areas one to one, best overlap first, from an IoU of `iou` on.

    Any CRS. With `area` only what stands in it counts (by a point inside each object), but a true
    object in it may be paired with a found one whose point falls outside.
    """
    ours, theirs, where = _metric(found, truth, area, "areas")
    ours, theirs = valid_areas(ours), valid_areas(theirs)
    pairs = _best_pairs(ours, theirs, iou)
    counted = inside(spots(theirs), where)
    alone = inside(spots(ours), where)
    alone[[one for one, _, _ in pairs]] = False
    overlaps_of_pairs = [overlap for _, other, overlap in pairs if counted[other]]
    tp = len(overlaps_of_pairs)
    mean_iou = float(np.mean(overlaps_of_pairs)) if tp else None
    return ObjectScores(tp, int(alone.sum()), int(counted.sum()) - tp, mean_iou)


def _best_pairs(
    ours: Geometries, theirs: Geometries, least_iou: float
) -> list[tuple[int, int, float]]:
    """Pairs of indices with their IoU, one to one, the best first."""
    found = overlaps(ours, theirs)
    joint = shapely.area(ours[found.one]) + shapely.area(theirs[found.other]) - found.shared_m2
    iou = np.minimum(found.shared_m2 / joint, 1.0)
    best_first = np.argsort(-iou, kind="stable")
    taken: set[int] = set()
    given: set[int] = set()
    pairs: list[tuple[int, int, float]] = []
    for at in best_first[iou[best_first] >= least_iou].tolist():
        one, other = int(found.one[at]), int(found.other[at])
        if one not in taken and other not in given:
            taken.add(one)
            given.add(other)
            pairs.append((one, other, float(iou[at])))
    return pairs


# -- lines ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LineScores:
    """How much of the lines' length was found, in metres on the ground."""

    found_m: float
    """Length of what was found."""

    right_m: float
    """Of that, within the tolerance of the truth."""

    truth_m: float
    """Length of what is there."""

    seen_m: float
    """Of that, within the tolerance of what was found."""

    @property
    def precision(self) -> float | None:
        """Correctness: found rightly, of all that was found."""
        return share(self.right_m, self.found_m)

    @property
    def recall(self) -> float | None:
        """Completeness: found, of all that is there."""
        return share(self.seen_m, self.truth_m)

    @property
    def f1(self) -> float | None:
        """Harmonic mean of both; 0 when one side is empty, None when both are."""
        if not self.found_m and not self.truth_m:
            return None
        precision, recall = self.precision or 0.0, self.recall or 0.0
        return share(2 * precision * recall, precision + recall) or 0.0


def line_scores(
    found: GeoDataFrame,
    truth: GeoDataFrame,
    *,
    tolerance_m: float = 3.0,
    area: GeoSeries | None = None,
) -> LineScores:
    """Length of each side within `tolerance_m` of the other, each metre counted once.

    Any CRS. Right to half a metre at each end of an agreement (`matching.PIECE_M`). With `area`
    only the length in it counts, but it may lie near what is outside.
    """
    ours, theirs, where = _metric(found, truth, area, "lines")
    found_m, right_m = _length_near(ours, theirs, tolerance_m, where)
    truth_m, seen_m = _length_near(theirs, ours, tolerance_m, where)
    return LineScores(found_m, right_m, truth_m, seen_m)


def _length_near(
    lines: Geometries, others: Geometries, tolerance_m: float, area: BaseGeometry | None
) -> tuple[float, float]:
    """Length of `lines` in `area`, and how much of it lies near `others`."""
    pieces = cut_in_pieces(shapely.get_parts(lines))
    counted = inside(pieces.middle_XY, area)
    length_m = pieces.length_m[counted]
    near = near_any(pieces.middle_XY[counted], shapely.get_parts(others), tolerance_m)
    return float(length_m.sum()), float(length_m[near].sum())


# -- small things --------------------------------------------------------------------------


def _metric(
    found: GeoDataFrame, truth: GeoDataFrame, area: GeoSeries | None, kind: str
) -> tuple[Geometries, Geometries, BaseGeometry | None]:
    """Both sides' geometries and the area in ground metres; features without a geometry dropped."""
    areas = GeoDataFrame(geometry=GeoSeries([], crs=found.crs) if area is None else area)
    for frame in (found, truth):
        _check_kind(frame, kind)
    known = (frame[~frame.geometry.isna()] for frame in (found, truth, areas))
    ours, theirs, where = to_metric(*known)
    joined = None if area is None else where.geometry.union_all()
    return ours.geometry.to_numpy(), theirs.geometry.to_numpy(), joined


def _check_kind(frame: GeoDataFrame, kind: str) -> None:
    wanted = {"areas": ("Polygon", "MultiPolygon"), "lines": ("LineString", "MultiLineString")}
    odd = sorted(set(frame.geom_type.dropna()) - set(wanted[kind]))
    if odd:
        raise MappingError(f"features to score hold {', '.join(odd)}; wanted {kind} only")
