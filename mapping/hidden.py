"""Mapped objects that are hidden from training, so that something known is left to judge by."""

import hashlib

import geopandas as gpd
import numpy as np
from numpy.typing import NDArray


def hidden(osm_ids: "gpd.pd.Series[str]", share: float, seed: int) -> NDArray[np.bool_]:
    """Which objects are hidden: `share` of them, chosen by `seed` and each one's own id alone.

    An object is hidden or not whatever others stand beside it, so every cell agrees.
    """
    return np.array([_lot(osm_id, seed) < share for osm_id in osm_ids], bool)


def hide(frame: gpd.GeoDataFrame, share: float, seed: int) -> gpd.GeoDataFrame:
    """The frame with the labels of its hidden objects made "unknown"."""
    label = np.where(hidden(frame["osm_id"], share, seed), "unknown", frame["label"])
    return frame.assign(label=label)


def only_hidden(frame: gpd.GeoDataFrame, share: float, seed: int) -> gpd.GeoDataFrame:
    """The hidden objects that would be labels."""
    chosen = hidden(frame["osm_id"], share, seed) & (frame["label"] == "yes").to_numpy()
    return frame[chosen]


def _lot(osm_id: str, seed: int) -> float:
    """A number in [0, 1) that is the same for the same object everywhere."""
    digest = hashlib.sha256(f"{seed}:{osm_id}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64
