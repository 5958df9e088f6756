"""The picture shows the place with most in it."""

import geopandas as gpd
import shapely
from orthotrace.mapping.products import Features
from orthotrace.mapping.show import PICTURE_PX, fullest
from orthotrace.tiling.grid import Grid, Window

GRID = Grid("EPSG:26918", (0.5, 0.5), (0.25, 0.0))
AREA = Window(-4000, 100, 1000, 5000)


def at(*pixels: tuple[int, int]) -> gpd.GeoDataFrame:
    """Squares around the middles of some (row, column)."""
    corners = [GRID.bounds(Window(row, col, row + 1, col + 1)) for row, col in pixels]
    return gpd.GeoDataFrame(geometry=[shapely.box(*each) for each in corners], crs=GRID.crs)


def test_the_place_with_most_in_it_is_shown_and_not_the_middle() -> None:
    lonely, crowded = (-1500, 2500), [(-3990, 110 + 20 * n) for n in range(5)]
    window = fullest(GRID, AREA, Features(at(lonely), at(*crowded)))
    assert all(window.overlap(Window(r, c, r + 1, c + 1)) for r, c in crowded)
    assert not window.overlap(Window(*lonely, lonely[0] + 1, lonely[1] + 1))
    assert window.overlap(AREA) == window and max(window.shape) <= PICTURE_PX


def test_features_outside_the_area_draw_nothing_to_them() -> None:
    outside = at(*((3000, 300 + n) for n in range(9)))
    inside = Window(-1500, 2500, -1499, 2501)
    assert fullest(GRID, AREA, Features(at((-1500, 2500)), outside)).overlap(inside) == inside


def test_where_nothing_was_found_the_middle_is_shown() -> None:
    assert fullest(GRID, AREA, Features(at(), at())) == Window(-1820, 2230, -1180, 2870)
    small = Window(0, 0, 300, 200)
    assert fullest(GRID, small, Features(at(), at())) == small
