"""Vector features as labels, so that a traced map or a vector truth can be scored by pixels."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from geopandas import GeoDataFrame
from numpy.typing import NDArray

from ...tiling.grid import Grid, Window
from ...tiling.labels import CLASSES, LabelRules, burn
from ...tiling.values import UNKNOWN

_LAYERS = {"road": "roads", "building": "buildings"}
"""By class, what its features are called in a file."""


def labels_of(
    features: Mapping[str, GeoDataFrame],
    grid: Grid,
    classes: Sequence[str] = CLASSES,
    *,
    road_width_m: float = 7.0,
) -> Callable[[Window], NDArray[np.uint8]]:
    """What burns "roads" and "buildings" (as of `read_features`, any CRS) into any window.

    The labels are uint8 KHW in the order of `classes`: 1 inside, 0 elsewhere, 255 for a class
    without features to tell of. A road is as wide as its `width_m`, else `road_width_m`, on the
    ground.
    """
    told = tuple(name for name in classes if _LAYERS[name] in features)
    frames = {name: _to_burn(features[_LAYERS[name]], grid, road_width_m) for name in told}

    def labels(window: Window) -> NDArray[np.uint8]:
        labels_KHW = np.full((len(classes), *window.shape), UNKNOWN, np.uint8)
        if told:
            rules = LabelRules(classes=told, guard_m=0.0)
            bands = [list(classes).index(name) for name in told]
            labels_KHW[bands] = burn(rules, grid, window, frames, {})
        return labels_KHW

    return labels


def _to_burn(frame: GeoDataFrame, grid: Grid, road_width_m: float) -> GeoDataFrame:
    """The features in the grid's CRS, with the columns that `burn` looks at."""
    frame = frame[~frame.geometry.isna()].to_crs(grid.crs)
    widths = frame["width_m"] if "width_m" in frame else np.nan
    return frame.assign(label="yes", width_m=widths).fillna({"width_m": road_width_m})
