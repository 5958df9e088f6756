"""Pixel outlines made straight: what each rule does to a small shape."""

import numpy as np
import pytest
import shapely
from orthotrace.mapping.tracing.outlines import canonical, simplified, without_stairs


def polygons(*shapes: shapely.Polygon) -> np.ndarray:
    return np.array(shapes, object)


def test_a_staircase_becomes_a_line_through_the_middles_of_its_steps() -> None:
    steps = [(0, 0), (9, 0), (9, 1), (6, 1), (6, 2), (3, 2), (3, 3), (0, 3)]
    (found,) = without_stairs(polygons(shapely.Polygon(steps)))
    assert found.equals(shapely.Polygon([(0, 0), (9, 0), (9, 1), (6, 1.5), (3, 2.5), (0, 3)]))


@pytest.mark.parametrize("shape", [shapely.box(0, 0, 1, 1), shapely.box(3, 3, 9, 4)])
def test_real_corners_stay(shape: shapely.Polygon) -> None:
    (found,) = without_stairs(polygons(shape))
    assert found.equals(shape)


def test_a_cross_of_steps_becomes_an_octagon() -> None:
    cross = shapely.union_all([shapely.box(0, 1, 3, 2), shapely.box(1, 0, 2, 3)])
    (found,) = without_stairs(polygons(cross))
    assert found.is_valid and found.area == 3.5 and len(found.exterior.coords) == 9


def test_holes_keep_their_polygon() -> None:
    holed = shapely.box(0, 0, 9, 9).difference(shapely.box(3, 3, 6, 6))
    found = without_stairs(polygons(shapely.box(20, 0, 22, 2), holed, shapely.box(30, 0, 33, 3)))
    assert [len(polygon.interiors) for polygon in found] == [0, 1, 0]
    assert shapely.area(found).tolist() == [4, 72, 9]


def test_united_parts_are_the_whole() -> None:
    whole = shapely.box(0, 0, 9, 9).difference(shapely.box(3, 3, 6, 6))
    halves = [whole.intersection(shapely.box(0, 0, x, 9)) for x in (4, 9)]
    united = canonical(polygons(shapely.union_all([halves[0], whole.difference(halves[0])])))
    assert shapely.to_wkb(united[0]) == shapely.to_wkb(canonical(polygons(whole))[0])


def test_a_building_that_would_lose_its_shape_keeps_its_pixels() -> None:
    comb = shapely.union_all(
        [shapely.box(0, 0, 13, 1)] + [shapely.box(2 * k, 0, 2 * k + 1, 3) for k in range(7)]
    )
    shapes = canonical(polygons(comb, shapely.box(20, 0, 30, 10)))
    found = simplified(shapes, np.array([0, 1]), 3.0)
    assert found[0].equals(comb)
    assert found[1].equals(shapes[1])


def test_a_cluster_is_changed_alone() -> None:
    steps = shapely.Polygon([(0, 0), (9, 0), (9, 1), (6, 1), (6, 2), (3, 2), (3, 3), (0, 3)])
    near = shapely.transform(steps, lambda xy: xy + [0, 4])
    far = shapely.transform(steps, lambda xy: xy + [50, 0])
    shapes = canonical(polygons(steps, near, far))
    found = simplified(shapes, np.array([0, 0, 1]), 1.4)
    assert found[0].equals(shapely.transform(found[2], lambda xy: xy - [50, 0]))
    assert not len(simplified(shapes[:0], np.empty(0, int), 1.4))
