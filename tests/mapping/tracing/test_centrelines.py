"""Centrelines: averaged, simplified, measured, in a fixed sense."""

import numpy as np
import pytest
from orthotrace.mapping.tracing.centrelines import Piece, averaged, finish, straightened
from orthotrace.tiling.grid import Grid


def test_a_line_keeps_its_ends_and_fixed_pixels() -> None:
    path = np.column_stack([np.arange(60) // 7, np.arange(60)])
    fixed = np.zeros(60, bool)
    line = straightened(path, fixed)
    assert len(line) < 6 and (line[0] == path[0]).all() and (line[-1] == path[-1]).all()
    fixed[20:30] = True
    kept = straightened(path, fixed)
    assert {tuple(point) for point in path[20:30]} <= {tuple(point) for point in kept}


def test_averages_are_the_plain_ones() -> None:
    path = np.random.default_rng(0).integers(-9, 9, (12, 2))
    for place, point in enumerate(averaged(path, 3)):
        reach = min(3, place, 11 - place)
        assert point == pytest.approx(path[place - reach : place + reach + 1].mean(axis=0))


def test_a_path_whose_line_would_cross_itself_stays() -> None:
    loop = [(20, col) for col in range(30)] + [(row, 29) for row in range(19, 9, -1)]
    path = np.array([*loop, (9, 15), (21, 15)])
    assert (straightened(path, np.zeros(len(path), bool)) == path).all()


def test_the_sense_of_a_path_changes_nothing() -> None:
    grid = Grid("EPSG:26986", (0.5, 0.5), cell=64, tile=64)
    path = np.column_stack([np.arange(40) // 3 - 1800000, np.arange(40) + 460000])
    scores = np.arange(40).astype(np.uint8)
    radii = np.linspace(2, 4, 40).astype(np.float32)
    fixed = np.arange(40) == 7
    one = finish(Piece(path, scores, radii, fixed), grid)
    other = finish(Piece(path[::-1], scores[::-1], radii[::-1], fixed[::-1]), grid)
    assert (one.line == other.line).all()
    assert (one.place, one.score, one.width_m) == (other.place, other.score, other.width_m)
    assert one.score == pytest.approx(19.5 / 254)
    assert one.width_m == pytest.approx(2 * 3 * 0.5, rel=1e-3)
    assert one.length_m == pytest.approx(0.5 * np.hypot(39, 13), rel=0.02)
