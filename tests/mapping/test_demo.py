"""The demo's region is one like any other, found by its name."""

from pathlib import Path

from orthotrace.mapping.county.make import County
from orthotrace.mapping.demo import NAME, write_region
from orthotrace.mapping.region import read_region
from orthotrace.mapping.stages import find_region


def test_the_demos_region_is_found_by_its_name_and_is_right(county: County, tmp_path: Path) -> None:
    folder = tmp_path / NAME
    folder.mkdir()
    (folder / "county").symlink_to(county.folder)
    moved = County(
        folder / "county",
        tuple(folder / "county" / quad.relative_to(county.folder) for quad in county.imagery),
        folder / "county" / county.osm.name,
        folder / "county" / county.truth.name,
        folder / "county" / county.boundary.name,
        county.crs,
        county.bounds,
    )
    write_region(folder / "region.toml", moved, seed=1)
    region = read_region(find_region(NAME, tmp_path))
    assert region.name == NAME
    assert region.sources.osm == moved.osm and region.sources.osm.exists()
    assert all(Path(quad).exists() for quad in region.sources.imagery)
    assert region.truth is not None and region.truth.file.exists()
