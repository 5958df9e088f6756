import io
from pathlib import Path

import geopandas
import numpy as np
import pytest
import shapely
from affine import Affine
from orthotrace.mapping.errors import MappingError
from orthotrace.mapping.viewer.palette import STYLES, UNKNOWN, rgb
from orthotrace.mapping.viewer.picture import Panel, write_picture
from orthotrace.mapping.viewer.thumbnail import Thumbnail
from orthotrace.mapping.viewer.views import VectorView
from PIL import Image

CRS = "EPSG:32618"
AT = Affine(1, 0, 300000, 0, -1, 4000100)
FLAT = Thumbnail(np.full((100, 80, 4), (90, 120, 60, 255), np.uint8), AT, CRS)
NOTHING = Thumbnail(np.zeros((100, 80, 4), np.uint8), AT, CRS)
RING = shapely.box(300010, 4000010, 300070, 4000090) - shapely.box(300030, 4000030, 300050, 4000070)
BUILDINGS = VectorView(
    "Buildings", "map", geopandas.GeoDataFrame(geometry=[RING], crs=CRS), "building"
)
ROADS = VectorView(
    "Roads",
    "map",
    geopandas.GeoDataFrame(
        geometry=[shapely.LineString([(300000, 4000005), (300080, 4000005)])], crs=CRS
    ).to_crs("EPSG:4326"),
    "road",
)
LEGEND = {"building": STYLES["building"].colour, "unknown": UNKNOWN}


def drawn(path: Path) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(path.read_bytes())).convert("RGB")).astype(int)


def near(pixels_HWC: np.ndarray, colour: tuple[int, int, int]) -> np.ndarray:
    return np.asarray((np.abs(pixels_HWC - colour) < 12).all(axis=-1))


def test_panels_stand_side_by_side_with_what_they_show(tmp_path: Path) -> None:
    panels = [Panel("Image", (FLAT,)), Panel("Nothing", (FLAT, NOTHING))]
    panels += [Panel("Map $1$ <b>", (FLAT,), (ROADS, BUILDINGS), dimmed=True)]
    pixels = drawn(write_picture(tmp_path / "p.png", panels, legend=LEGEND, title="A $title_"))
    thirds = np.array_split(pixels, 3, axis=1)
    shares = [near(third, (90, 120, 60)).mean() for third in thirds]
    assert shares[0] > 0.7 and shares[1] > 0.7 and shares[2] == 0
    assert near(thirds[2], rgb(STYLES["road"].colour)).any()
    assert not near(thirds[0], rgb(STYLES["road"].colour)).any()


def test_a_hole_stays_open(tmp_path: Path) -> None:
    picture = write_picture(tmp_path / "p.png", [Panel("", (FLAT,), (BUILDINGS,))], legend={})
    green = near(drawn(picture), (90, 120, 60))
    # The imagery shows round the building and in its yard, 20 m x 40 m of it.
    assert green.sum() / green.size == pytest.approx(0.8 * (8000 - 4800 + 800) / 8000, rel=0.2)


def test_the_same_panels_are_the_same_bytes(tmp_path: Path) -> None:
    panels = [Panel("Map", (FLAT,), (ROADS, BUILDINGS))]
    one, other = (
        write_picture(tmp_path / name, panels, legend=LEGEND).read_bytes()
        for name in ("a.png", "b.png")
    )
    assert one == other


def test_nothing_and_two_places_are_refused(tmp_path: Path) -> None:
    with pytest.raises(MappingError, match="at least one panel"):
        write_picture(tmp_path / "p.png", [], legend={})
    elsewhere = Thumbnail(FLAT.rgba_HWC, AT @ Affine.translation(5, 5), CRS)
    with pytest.raises(MappingError, match="one place and size"):
        Panel("Map", (FLAT, elsewhere))
