"""Trees and hedges: in gardens, along streets, in woods, by the river."""

import math

import numpy as np
import shapely
from shapely import LineString, Polygon
from shapely.geometry.base import BaseGeometry

from .land import Land
from .plan import Floats, Road, Trees

CONIFER = 2.0
"""The value of `leaf` from which a tree is a conifer."""


def trees_at(
    points_N2: Floats,
    radius_m: tuple[float, float],
    rng: np.random.Generator,
    conifers: float = 0.12,
) -> Trees:
    """Trees of random size at given places."""
    count = len(points_N2)
    # Most trees are small: the square of a uniform number.
    radius = radius_m[0] + (radius_m[1] - radius_m[0]) * rng.uniform(0, 1, count) ** 1.5
    height = 1.0 + radius * rng.uniform(2.0, 3.2, count)
    leaf = rng.uniform(0, 1, count)
    is_conifer = rng.random(count) < conifers
    return Trees(
        points_N2[:, 0],
        points_N2[:, 1],
        np.where(is_conifer, radius * 0.75, radius),
        np.where(is_conifer, height * 1.25, height),
        np.where(is_conifer, CONIFER + leaf, leaf),
    )


def free_of_buildings(trees: Trees, site: Land) -> Trees:
    """Those whose trunk stands on nothing taken."""
    return trees.where(~site.is_taken(trees.x, trees.y))


def garden_trees(plot: Polygon, site: Land, count: float, rng: np.random.Generator) -> Trees:
    """About `count` trees anywhere on a plot, near its edges rather than in its middle."""
    left, bottom, right, top = plot.bounds
    tries = rng.poisson(4 * count)
    points = np.stack([rng.uniform(left, right, tries), rng.uniform(bottom, top, tries)], axis=1)
    inside = shapely.contains_xy(plot, points)
    edge = shapely.distance(plot.exterior, shapely.points(points))
    keep = inside & (rng.random(tries) < np.where(edge < 5, 0.7, 0.3))
    return free_of_buildings(trees_at(points[keep], (1.4, 5.2), rng), site)


def hedge(line: LineString, site: Land, rng: np.random.Generator) -> Trees:
    """Shrubs side by side."""
    along = np.arange(0, line.length, 1.3)
    points = shapely.get_coordinates(line.interpolate(along))
    points = points + rng.normal(0, 0.25, points.shape)
    count = len(points)
    shade = np.full(count, rng.uniform(0, 0.6))
    shrubs = Trees(
        points[:, 0],
        points[:, 1],
        rng.uniform(0.7, 1.2, count),
        rng.uniform(1.2, 2.4, count),
        shade,
    )
    return free_of_buildings(shrubs, site)


def street_trees(road: Road, site: Land, rng: np.random.Generator) -> Trees:
    """A row of trees along one or both sides of a street; they overhang it."""
    parts = []
    for side in (1, -1):
        if rng.random() < 0.55:
            line = road.line.offset_curve(side * (road.width_m / 2 + rng.uniform(2.2, 3.5)))
            along = np.arange(6.0, line.length, rng.uniform(11, 19))
            points = shapely.get_coordinates(line.interpolate(along))
            points = points + rng.normal(0, 0.8, points.shape)
            points = points[rng.random(len(points)) < 0.75]
            parts.append(trees_at(points, (2.4, 5.4), rng, conifers=0.0))
    if not parts:
        return trees_at(np.empty((0, 2)), (1, 2), rng)
    return free_of_buildings(Trees.joined(parts), site)


def wood(area: BaseGeometry, site: Land, rng: np.random.Generator, spacing_m: float = 5.6) -> Trees:
    """A closed canopy: a jittered lattice of trees, in stands of like kind."""
    if area.is_empty:
        return trees_at(np.empty((0, 2)), (1, 2), rng)
    left, bottom, right, top = area.bounds
    x, y = np.meshgrid(np.arange(left, right, spacing_m), np.arange(bottom, top, spacing_m))
    points = np.stack([x.ravel(), y.ravel()], axis=1)
    points += rng.uniform(-0.5, 0.5, points.shape) * spacing_m
    points = points[shapely.contains_xy(area, points)]
    trees = trees_at(points, (2.6, 5.0), rng, conifers=0.0)
    # Stands: a slow wave over the ground decides between broadleaves and conifers.
    phase, length, heading = rng.uniform(0, 6.3), rng.uniform(90, 170), rng.uniform(0, math.pi)
    along = trees.x * math.cos(heading) + trees.y * math.sin(heading)
    across = trees.y * math.cos(heading) - trees.x * math.sin(heading)
    wave = np.sin(along * 6.28 / length + phase) + np.sin(across * 6.28 / length / 1.4)
    is_conifer = wave + rng.normal(0, 0.35, len(wave)) > 0.95
    leaf = np.clip(trees.leaf * 0.6 + 0.12 * wave + 0.2, 0, 1)
    stands = Trees(
        trees.x,
        trees.y,
        np.where(is_conifer, trees.radius_m * 0.75, trees.radius_m),
        np.clip(trees.height_m + 4, 9, 19),
        np.where(is_conifer, CONIFER + leaf, leaf),
    )
    return free_of_buildings(stands, site)


def thickets(area: BaseGeometry, site: Land, rng: np.random.Generator, spacing_m: float) -> Trees:
    """Single trees and groups of them, with open ground between."""
    trees = wood(area, site, rng, spacing_m)
    # Kept where a slow wave is high.
    wave = np.sin(trees.x / 31 + 1.3 * np.sin(trees.y / 47)) + np.sin(trees.y / 37)
    return trees.where(rng.random(len(wave)) < np.clip(0.28 + 0.4 * wave, 0.05, 0.95))
