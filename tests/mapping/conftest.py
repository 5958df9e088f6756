"""A tiny county that several tests map: made once a run, never written to."""

from collections.abc import Callable
from pathlib import Path

import pytest
from orthotrace.mapping.county.make import County, make_county

TINY = """
name = "tiny"

[sources]
imagery = [{imagery}]
osm = "{osm}"

[boundary]
file = "{boundary}"

[grid]
crs = "{crs}"
pixel = 1.0
cell = {cell}
tile = 128

[held_back]
share = 0.1

[truth]
file = "{truth}"

[recipe]
encoder = "tu-mobilenetv3_small_050"
weights = "none"
steps = 4
evaluations = 1
crop = 64
batch = 2
warmup = 1
window = 128
margin = 16
"""


@pytest.fixture(scope="session")
def county(tmp_path_factory: pytest.TempPathFactory) -> County:
    """A county of 600 m x 520 m."""
    return make_county(tmp_path_factory.mktemp("county"), 1, (600, 520))


@pytest.fixture
def tiny(county: County, tmp_path: Path) -> Callable[..., Path]:
    """Writes a region file of the tiny county; its cells have the side that is told."""

    def write(cell: int = 256, more: str = "") -> Path:
        path = tmp_path / "tiny.toml"
        path.write_text(
            TINY.format(
                imagery=", ".join(f'"{quad}"' for quad in county.imagery),
                osm=county.osm,
                boundary=county.boundary,
                crs=county.crs,
                cell=cell,
                truth=county.truth,
            )
            + more
        )
        return path

    return write
