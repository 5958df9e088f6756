"""Paints trees: crowns of many shapes, the higher before the lower."""

import math

import numpy as np
from scipy.ndimage import gaussian_filter

from .canvas import STEP_M, Canvas, Pixels, Texture
from .materials import LEAVES
from .plan import Trees
from .trees import CONIFER


def put_trees(
    trees: Trees,
    season: str,
    colour_CHW: Pixels,
    height_HW: Pixels,
    canvas: Canvas,
    texture: Texture,
    rng: np.random.Generator,
) -> None:
    """Stamp crowns; where two overlap, the higher one is seen."""
    leaf_HW = np.full(canvas.shape, -1.0, np.float32)
    crowns = _Crowns(rng)
    for x, y, radius, height, leaf in zip(
        trees.x, trees.y, trees.radius_m, trees.height_m, trees.leaf, strict=True
    ):
        row = round((canvas.top - y) / STEP_M)
        col = round((x - canvas.left) / STEP_M)
        crown = crowns.like(radius, leaf >= CONIFER)
        half = crown.shape[0] // 2
        if not (half <= row < canvas.shape[0] - half and half <= col < canvas.shape[1] - half):
            continue
        part = slice(row - half, row + half + 1), slice(col - half, col + half + 1)
        top = crown * np.float32(height)
        seen = top > height_HW[part]
        height_HW[part][seen] = top[seen]
        leaf_HW[part][seen] = leaf
    _colour_leaves(leaf_HW, season, colour_CHW, texture)


class _Crowns:
    """Shapes of crowns, made once by size and kind and then used again."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._made: dict[tuple[int, bool, int], Pixels] = {}

    def like(self, radius_m: float, is_conifer: bool) -> Pixels:
        """Height over the crown's, in [0, 1], in a square of odd side."""
        key = round(radius_m / STEP_M * 2), is_conifer, int(self._rng.integers(6))
        if key not in self._made:
            self._made[key] = _crown(key[0] / 2, is_conifer, self._rng)
        return self._made[key]


def _crown(radius_px: float, is_conifer: bool, rng: np.random.Generator) -> Pixels:
    half = math.ceil(radius_px * 1.15)
    y, x = np.mgrid[-half : half + 1, -half : half + 1].astype(np.float32)
    turn = np.arctan2(y, x)
    edge = np.ones_like(turn)
    for times in (2, 3, 5):
        edge += np.float32(rng.uniform(0, 0.11)) * np.sin(
            times * turn + np.float32(rng.uniform(0, 6))
        )
    away = np.hypot(x, y) / (radius_px * edge)
    inside = np.clip(1 - away**2, 0, None)
    top = 0.35 + 0.65 * (1 - away) if is_conifer else 0.5 + 0.5 * np.sqrt(inside)
    lumps = gaussian_filter(rng.standard_normal(x.shape).astype(np.float32), 1.1) * 0.28
    return np.where(inside > 0, top * (1 + (0.3 if is_conifer else 1.0) * lumps), 0).astype(
        np.float32
    )


def _colour_leaves(leaf_HW: Pixels, season: str, colour_CHW: Pixels, texture: Texture) -> None:
    put = leaf_HW >= 0
    leaf = leaf_HW[put]
    is_conifer = leaf >= CONIFER
    dark, light, needles = (np.array(colour, np.float32) for colour in LEAVES[season])
    uneven = 1 + 0.05 * texture.grain[put] + 0.07 * texture.clump[put]
    share = np.where(is_conifer, 0.0, leaf**1.4).astype(np.float32)
    for band in range(4):
        broad = dark[band] + share * (light[band] - dark[band])
        green = np.where(is_conifer, needles[band] * (0.85 + 0.15 * (leaf - CONIFER)), broad)
        colour_CHW[band][put] = green * uneven
