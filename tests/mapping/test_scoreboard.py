"""Steps against the truth: each cell reads what lies near it, and the sums are those of all."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import geopandas as gpd
import numpy as np
import pytest
import shapely
from geopandas import GeoDataFrame
from orthotrace.mapping import scoreboard
from orthotrace.mapping.progress import Silent
from orthotrace.mapping.region import Truth
from orthotrace.mapping.scoreboard import MAP, CountJob, Counts, count, count_cell, labels_step
from orthotrace.mapping.scoring.pixel_scores import PixelCounts
from orthotrace.mapping.session import Session, Settings
from orthotrace.mapping.site import Site
from orthotrace.tiling.grid import Cell, Grid, Window
from orthotrace.tiling.labels import LabelRules
from orthotrace.tiling.layer import Layer, Pixels
from orthotrace.tiling.osm import COLUMNS, Extract, save_extract
from orthotrace.tiling.runner import Outcome

GRID = Grid("EPSG:26918", (1.0, 1.0), cell=64, tile=32)
CELLS = (Cell(-60000, 6000), Cell(-60000, 6001))
CLASSES = ("road", "building")


def layer_of(folder: Path, bands: tuple[str, ...], value: int, nodata: int | None) -> Layer:
    """A layer of one value in all cells."""
    layer = Layer(folder, GRID, bands, nodata=nodata).save()
    data_CHW = np.full((len(bands), 64, 64), value, np.uint8)
    for cell in CELLS:
        layer.write(cell, Pixels(data_CHW, np.ones((64, 64), bool)))
    return layer


def write_features(path: Path, crs: str) -> Path:
    """A road across both cells and one in the north, a house in the second cell, one far away."""
    left, _, _, top = GRID.bounds(GRID.window(CELLS[0]))
    shapes = {
        "roads": [
            shapely.LineString([(left - 900, top - 20.5), (left + 900, top - 20.5)]),
            shapely.LineString([(left, top + 5000), (left + 128, top + 5000)]),
        ],
        "buildings": [
            shapely.box(left + 80, top - 50, left + 90, top - 40),
            shapely.box(left + 9000, top - 50, left + 9010, top - 40),
        ],
    }
    for name, lines in shapes.items():
        gpd.GeoDataFrame(geometry=lines, crs=GRID.crs).to_crs(crs).to_file(path, layer=name)
    return path


@pytest.fixture
def jobs(tmp_path: Path) -> list[CountJob]:
    """Both cells, with the map as its own truth but for the truth's CRS; OSM is empty."""
    texts: dict[str, list[str]] = {"osm_id": [], "kind": [], "tags": [], "label": []}
    none = gpd.GeoDataFrame(texts, geometry=[], crs="EPSG:4326").astype(dict.fromkeys(texts, "str"))
    roads, houses = none[[*COLUMNS]], none[[*COLUMNS]]
    save_extract(Extract(roads, houses), tmp_path / "osm")
    imagery = layer_of(tmp_path / "imagery", ("red",), 9, None)
    labels = layer_of(tmp_path / "labels", CLASSES, 255, 255)
    scores = layer_of(tmp_path / "scores", CLASSES, 0, 255)
    map_file = write_features(tmp_path / "map.gpkg", GRID.crs)
    truth = Truth(file=write_features(tmp_path / "truth.gpkg", "EPSG:4326"))
    levels = dict.fromkeys(CLASSES, 0.5)
    return [
        CountJob(
            cell,
            LabelRules(guard_m=0.0),
            tmp_path / "osm",
            [labels, labels],
            [scores, scores],
            [levels, levels],
            imagery,
            map_file,
            truth,
            {},
            frozenset(),
        )
        for cell in CELLS
    ]


def test_a_cell_reads_only_what_lies_near_it(
    jobs: list[CountJob], monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    burn = scoreboard.labels_of

    def spy(features: Mapping[str, GeoDataFrame], *told: Any) -> Any:
        read.extend(map(len, features.values()))
        return burn(features, *told)

    monkeypatch.setattr(scoreboard, "labels_of", spy)
    found = count_cell(jobs[1]).everywhere
    assert read == [1, 1, 1, 1], "a road and a house, of the map and of the truth"
    assert found[MAP, "road"] == PixelCounts(tp=7 * 64, tn=64 * 64 - 7 * 64)
    assert found[MAP, "building"] == PixelCounts(tp=100, tn=64 * 64 - 100)


def test_unknown_labels_count_as_no_and_their_step_says_what_it_is(jobs: list[CountJob]) -> None:
    found = count_cell(jobs[1]).everywhere
    assert labels_step(1) == "labels 1 (OSM + added)"
    assert found[labels_step(1), "building"] == PixelCounts(fn=100, tn=64 * 64 - 100)


def test_a_models_file_is_read_once_for_all_cells(
    jobs: list[CountJob], monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []

    class Place:
        """As much of a site as is asked for."""

        cells, grid, folder, imagery = CELLS, GRID, jobs[0].osm.parent, jobs[0].imagery

        class region:
            truth = jobs[0].truth

        def labels(self, generation: int) -> Layer:
            return jobs[0].labels[generation]

        def scores(self, generation: int) -> Layer:
            return jobs[0].scores[generation]

    def thresholds(site: Site, generation: int) -> Mapping[str, float]:
        read.append(generation)
        return jobs[0].thresholds[generation]

    def run(work: Any, items: Iterable[CountJob]) -> Iterator[Outcome[CountJob, Counts]]:
        yield from (Outcome(item, Counts({}, {})) for item in items)

    monkeypatch.setattr(scoreboard, "map_thresholds", thresholds)
    monkeypatch.setattr(scoreboard, "held_tiles", lambda site: frozenset[Window]())
    monkeypatch.setattr(scoreboard, "label_rules", lambda site: jobs[0].rules)
    # Stand-ins that have just what `count` asks for.
    session = Session(Settings(), run, Silent())  # type: ignore[arg-type]
    count(Place(), 1, jobs[0].map_file, session)  # type: ignore[arg-type]
    assert read == [0, 1]
