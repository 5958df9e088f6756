"""What a map and OpenStreetMap have in common: same, new to OSM, or missing in the map.

Buildings are held against each other one to many, since a terrace may be one polygon here and
several there. Roads are cut where they leave the other side. What OSM has but is no label (a
tunnel, a covered way: labelled "unknown") makes a find neither same nor new.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
import shapely
from geopandas import GeoDataFrame, GeoSeries
from numpy.typing import NDArray
from shapely.geometry.base import BaseGeometry

from .matching import (
    Geometries,
    Indices,
    Pieces,
    cut_in_pieces,
    inside,
    near_any,
    nearest,
    overlaps,
    spots,
    valid_areas,
)
from .metres import to_metric
from .stretches import cut_by_state, followed, part_of_line

STATES = ("same", "new", "missing", "unknown", "not looked at")
"""What a feature may be: in both; only in the map; only in OSM; on something that OSM has but is
no label; in OSM where no imagery was looked at."""

_SAME, _NEW, _MISSING, _UNKNOWN, _UNSEEN = range(len(STATES))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """When two features count as one."""

    tolerance_m: float = 5.0
    """Roads: metres on the ground between the two, at most."""

    least_m: float = 20.0
    """Roads: the shortest stretch that is told apart from the rest of its line."""

    overlap: float = 0.2
    """Buildings: the share of the smaller one that both cover, at least; or a centroid inside."""

    def __post_init__(self) -> None:
        if self.tolerance_m <= 0 or self.least_m < 0 or not 0 < self.overlap <= 1:
            raise ValueError(f"a tolerance is positive and an overlap in (0, 1], got {self}")


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """A map against OSM. Roads stand as their stretches: an id may have several rows."""

    roads: GeoDataFrame
    """The map's, with `osm` ("same", "new", "unknown"), `osm_id` (joined by ";") and `length_m`."""

    buildings: GeoDataFrame
    """The map's, with `osm` and `osm_id`."""

    osm_roads: GeoDataFrame
    """OSM's, with `map` ("same", "missing", "unknown", "not looked at"), `map_id`, `length_m`."""

    osm_buildings: GeoDataFrame
    """OSM's, with `map` and `map_id`."""

    @property
    def counts(self) -> dict[str, dict[str, float]]:
        """How much there is of each state: kilometres of road, numbers of buildings."""
        return {
            "roads_km": _kilometres(self.roads, "osm"),
            "buildings": _numbers(self.buildings, "osm"),
            "osm_roads_km": _kilometres(self.osm_roads, "map"),
            "osm_buildings": _numbers(self.osm_buildings, "map"),
        }


def compare(
    map_features: Mapping[str, GeoDataFrame],
    osm: Mapping[str, GeoDataFrame],
    *,
    looked_at: BaseGeometry | None = None,
    rules: Rules | None = None,
) -> Comparison:
    """Hold "roads" and "buildings" of a map against those of OSM; each keeps its own CRS.

    `looked_at` is where imagery was looked at, in the CRS of the map's features; what OSM has
    outside it is not missing. Nothing given counts as everywhere.
    """
    rules = rules or Rules()
    roads, osm_roads = _compare_roads(map_features["roads"], osm["roads"], looked_at, rules)
    found, osm_found = _compare_buildings(
        map_features["buildings"], osm["buildings"], looked_at, rules
    )
    return Comparison(roads, found, osm_roads, osm_found)


# -- buildings -----------------------------------------------------------------------------


def _compare_buildings(
    found: GeoDataFrame, osm: GeoDataFrame, looked_at: BaseGeometry | None, rules: Rules
) -> tuple[GeoDataFrame, GeoDataFrame]:
    ours, theirs, area = _metric(found, osm, looked_at)
    ours, theirs = valid_areas(ours), valid_areas(theirs)
    is_label = _is_label(osm)
    one, other = _same_buildings(ours, theirs, rules.overlap)
    surely = is_label[other]

    state = np.full(len(found), _NEW, np.int8)
    state[one[~surely]] = _UNKNOWN
    state[one[surely]] = _SAME
    osm_state = np.where(inside(spots(theirs), area), _MISSING, _UNSEEN)
    osm_state[other] = _SAME
    osm_state[~is_label] = _UNKNOWN
    found, osm = found.copy(), osm.copy()
    found["osm"], osm["map"] = _named(state), _named(osm_state)
    found["osm_id"] = _joined_ids(len(found), one, osm["osm_id"].to_numpy()[other])
    osm["map_id"] = _joined_ids(len(osm), other, found["id"].to_numpy()[one])
    return found, osm


def _same_buildings(
    ours: Geometries, theirs: Geometries, least_share: float
) -> tuple[Indices, Indices]:
    """Pairs of indices of buildings that count as one."""
    pairs = overlaps(ours, theirs)
    one, other = ours[pairs.one], theirs[pairs.other]
    share = pairs.shared_m2 / np.minimum(shapely.area(one), shapely.area(other))
    same = share >= least_share
    same |= shapely.contains(other, shapely.centroid(one))
    same |= shapely.contains(one, shapely.centroid(other))
    return pairs.one[same], pairs.other[same]


# -- roads ---------------------------------------------------------------------------------


def _compare_roads(
    found: GeoDataFrame, osm: GeoDataFrame, looked_at: BaseGeometry | None, rules: Rules
) -> tuple[GeoDataFrame, GeoDataFrame]:
    found = found.explode(ignore_index=True)
    osm = osm.explode(ignore_index=True)
    ours, theirs, area = _metric(found, osm, looked_at)
    is_label = _is_label(osm)
    is_area = shapely.get_dimensions(theirs) == 2

    pieces = cut_in_pieces(ours)
    near = nearest(pieces.middle_XY, _only(theirs, is_label), rules.tolerance_m)
    unsure = near_any(pieces.middle_XY, _only(theirs, ~is_label), rules.tolerance_m)
    state = np.where(near >= 0, _SAME, np.where(unsure, _UNKNOWN, _NEW)).astype(np.int8)
    roads = _stretches(found, pieces, state, near, osm["osm_id"], ("osm", "osm_id"), rules.least_m)

    pieces = cut_in_pieces(_only(theirs, ~is_area))
    near = nearest(pieces.middle_XY, ours, rules.tolerance_m)
    lost = np.where(inside(pieces.middle_XY, area), _MISSING, _UNSEEN)
    state = np.where(near >= 0, _SAME, lost).astype(np.int8)
    state[~is_label[pieces.line]] = _UNKNOWN
    lines = _stretches(osm, pieces, state, near, found["id"], ("map", "map_id"), rules.least_m)
    squares = _compare_squares(osm, theirs, is_area, ours, area, rules.tolerance_m)
    return roads, pd.concat([lines, squares], ignore_index=True) if len(squares) else lines


def _compare_squares(
    osm: GeoDataFrame,
    theirs: Geometries,
    is_area: NDArray[np.bool_],
    ours: Geometries,
    area: BaseGeometry | None,
    tolerance_m: float,
) -> GeoDataFrame:
    """OSM's roads that are areas, whole: same when a road of the map comes near; no length."""
    squares, shapes = osm[is_area].copy(), theirs[is_area]
    square, road = shapely.STRtree(ours).query(shapes, predicate="dwithin", distance=tolerance_m)
    state = np.where(inside(spots(shapes), area), _MISSING, _UNSEEN)
    state[square] = _SAME
    state[~_is_label(squares)] = _UNKNOWN
    squares["map"], squares["map_id"], squares["length_m"] = _named(state), None, np.nan
    return squares


def _only(geometries: Geometries, wanted: NDArray[np.bool_]) -> Geometries:
    """The geometries in their places, None where not wanted (a tree and the pieces skip those)."""
    kept = geometries.copy()
    kept[~wanted] = None
    return kept


def _stretches(
    frame: GeoDataFrame,
    pieces: Pieces,
    state: NDArray[np.int8],
    near: Indices,
    names: pd.Series,
    columns: tuple[str, str],
    least_m: float,
) -> GeoDataFrame:
    """The rows of `frame` cut into stretches of one state, with the names that each follows.

    A line that stays whole keeps its geometry as it was; a cut one gets new ends between two of
    its own vertices, in its own CRS. `length_m` is the stretch's on the ground.
    """
    named = names.to_numpy()
    cuts = list(cut_by_state(pieces, state, least_m))
    lengths = [pieces.length_m[cut.start : cut.stop] for cut in cuts]
    follows = [
        followed(near[cut.start : cut.stop], length_m, least_m)
        for cut, length_m in zip(cuts, lengths, strict=True)
    ]
    lines = frame.geometry.to_numpy()
    shapes = [part_of_line(lines[cut.line], pieces, cut) for cut in cuts]
    out = frame.iloc[[cut.line for cut in cuts]].reset_index(drop=True)
    out = out.set_geometry(GeoSeries(shapes, crs=frame.crs, index=out.index))
    out[columns[0]] = _named(np.array([cut.state for cut in cuts], np.int8))
    out[columns[1]] = _texts(
        ";".join(dict.fromkeys(named[others])) if cut.state == _SAME else None
        for cut, others in zip(cuts, follows, strict=True)
    )
    out["length_m"] = [float(length_m.sum()) for length_m in lengths]
    return out


# -- small things --------------------------------------------------------------------------


def _metric(
    found: GeoDataFrame, osm: GeoDataFrame, looked_at: BaseGeometry | None
) -> tuple[Geometries, Geometries, BaseGeometry | None]:
    """Both sides' geometries and the area in ground metres."""
    areas = GeoDataFrame(geometry=[] if looked_at is None else [looked_at], crs=found.crs)
    ours, theirs, area = to_metric(found, osm, areas)
    seen = None if looked_at is None else area.geometry.iloc[0]
    return ours.geometry.to_numpy(), theirs.geometry.to_numpy(), seen


def _is_label(osm: GeoDataFrame) -> NDArray[np.bool_]:
    return np.asarray(osm["label"] == "yes", bool)


def _named(state: NDArray[np.int8] | NDArray[np.int64]) -> NDArray[np.object_]:
    return np.array(STATES, object)[state]


def _texts(texts: Iterable[str | None]) -> NDArray[np.object_]:
    """A column of text, even where all of it is None or there is none."""
    return np.array(list(texts), object)


def _joined_ids(count: int, at: Indices, names: NDArray[np.object_]) -> NDArray[np.object_]:
    """For each of `count` features the names that were paired with it, sorted, joined by ";"."""
    paired: list[set[str]] = [set() for _ in range(count)]
    for index, name in zip(at.tolist(), names.tolist(), strict=True):
        paired[index].add(name)
    return _texts(";".join(sorted(names)) or None for names in paired)


def _kilometres(frame: GeoDataFrame, column: str) -> dict[str, float]:
    summed = frame.groupby(column)["length_m"].sum()
    return {str(name): float(metres) / 1000 for name, metres in summed.items()}


def _numbers(frame: GeoDataFrame, column: str) -> dict[str, float]:
    return {str(name): int(number) for name, number in frame[column].value_counts().items()}
