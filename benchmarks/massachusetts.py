"""Accuracy on real imagery: the product's own stages, from GeoTIFFs and a PBF to an IoU.

    python benchmarks/massachusetts.py FOLDER --class road [--seed 0] [--minutes 10]
    python benchmarks/massachusetts.py FOLDER --class building [--seed 0] [--minutes 7]

FOLDER holds `imagery/`, `road_masks/`, `building_masks/`, `massachusetts.osm.pbf` and
`mapped_area.gpkg`. Roads: the 34 tiles sorted by name, every fifth from the first is the test and
the other 27 are trained on. Buildings: one suburb and the west half of a city image to train, its
east half to test. The test is scored once, at the end, against the given masks.

    python benchmarks/massachusetts.py FOLDER --class road --validate [--recipe "crop = 256; ..."]

holds back a part of what may be trained on (roads: every fifth of the 27 from the third) and tells
figures on it; the test is left alone. The recipe and THRESHOLD were chosen on five of the 27
images too, with the masks for labels: see RESULTS.md.
"""

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import geopandas as gpd
import numpy as np
import rasterio
import shapely
from orthotrace.mapping.prediction.predict import score_scene
from orthotrace.mapping.progress import Progress
from orthotrace.mapping.region import read_region
from orthotrace.mapping.scoring.pixel_scores import PixelCounts, as_labels, pixel_counts
from orthotrace.mapping.session import Settings
from orthotrace.mapping.site import resolve
from orthotrace.mapping.stages import run_to
from orthotrace.models.card import load_model
from PIL import Image

CITY, SUBURB = "23429020_15_west", "23429155_15"
WEST = 500
"""Columns of the city image that are trained on; the rest is for the test."""

THRESHOLD = 0.5
"""Probability from which a pixel counts: as validation found it for roads; for buildings, where too
few tiles validate, it is the middle."""

REGION = """
classes = ["{name}"]

[sources]
imagery = [{imagery}]
osm = "{folder}/massachusetts.osm.pbf"

[boundary]
file = "{work}/boundary.gpkg"

[grid]
cell = 2048
tile = {tile}

[mapped.{name}]
file = "{folder}/mapped_area.gpkg"
layer = "{name}"

[labels]
widths = {{default = 7.0}}
guard_m = 0.0

[held_back]
{held}

[refine]
rounds = 0

[recipe]
minutes = {minutes}
seed = {seed}
flips = true
{more}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--class", dest="name", choices=("road", "building"), default="road")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--recipe", default="", help="more lines of [recipe], parted by ;")
    parser.add_argument("--validate", action="store_true", help="leave the test alone")
    parser.add_argument("--keep", type=Path, help="a folder for all that is made")
    told = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        work = (told.keep or Path(scratch)).resolve()
        work.mkdir(parents=True, exist_ok=True)
        model = train(told, work)
        if not told.validate:
            test = road_test if told.name == "road" else building_test
            counts = test(told.folder, model, work)
            print(f"precision {counts.precision:.3f} recall {counts.recall:.3f}")
            print(f"{told.name} IoU {counts.iou:.3f}")


def train(told: argparse.Namespace, work: Path) -> Path:
    """Tile, label and train through the product's stages; the model's file."""
    images, held = (roads if told.name == "road" else buildings)(told.folder.resolve(), work)
    if not told.validate:
        held = "share = 0"
    region = work / "massachusetts.toml"
    region.write_text(
        REGION.format(
            name=told.name,
            imagery=", ".join(f'"{image}"' for image in images),
            folder=told.folder.resolve(),
            work=work,
            tile=512,
            held=held,
            minutes=told.minutes or (10 if told.name == "road" else 7),
            seed=told.seed,
            more="\n".join(told.recipe.split(";")),
        )
    )
    run_to("label", region, work / "data", Settings(), Progress())
    began = time.monotonic()
    run_to("train", region, work / "data", Settings(), Progress())
    model = resolve(read_region(region), work / "data").model(0)
    card = load_model(model).card
    print(
        f"{told.name}, seed {told.seed}: {time.monotonic() - began:.0f} s of training, "
        f"{card.recipe['steps']} steps; on tiles that validate {dict(card.scores)}"
    )
    return model


def roads(folder: Path, work: Path) -> tuple[list[Path], str]:
    """The 27 images that may be trained on, and which of them validate."""
    images = road_images(folder)
    train = [image for number, image in enumerate(images) if number % 5]
    write_areas(work / "held.gpkg", [footprint(image) for image in train[2::5]])
    write_areas(work / "boundary.gpkg", [footprint(image) for image in train])
    return train, f'file = "{work}/held.gpkg"'


def buildings(folder: Path, work: Path) -> tuple[list[Path], str]:
    """The suburb and the west of the city, and which share of their tiles validates."""
    images = [folder / "imagery" / f"{name}.tif" for name in (SUBURB, CITY)]
    suburb, city = (footprint(image) for image in images)
    left, bottom, _, top = city.bounds
    with rasterio.open(images[1]) as source:
        west = shapely.box(left, bottom, left + WEST * source.transform.a, top)
    write_areas(work / "boundary.gpkg", [suburb, west])
    return images, "share = 0.2"


def road_test(folder: Path, model: Path, work: Path) -> PixelCounts:
    """The seven test images against the given masks, counts summed."""
    total = PixelCounts()
    for image in road_images(folder)[::5]:
        labels = found(image, model, work)
        with rasterio.open(folder / "road_masks" / image.name) as source:
            total += pixel_counts(labels, source.read(1))
    return total


def building_test(folder: Path, model: Path, work: Path) -> PixelCounts:
    """The east of the city image against the given mask."""
    image = folder / "imagery" / f"{CITY}.tif"
    labels = found(image, model, work)
    with rasterio.open(folder / "building_masks" / image.name) as source:
        truth_HW = source.read(1)
    draw(image, labels[:, WEST:], truth_HW[:, WEST:], work / "building.png")
    return pixel_counts(labels[:, WEST:], truth_HW[:, WEST:])


def draw(image: Path, found_HW: np.ndarray, truth_HW: np.ndarray, path: Path) -> None:
    """The east of an image beside itself with what was found (green), missed (red), or is not
    there (blue)."""
    with rasterio.open(image) as source:
        plain_HWC = source.read()[:, :, WEST:].transpose(1, 2, 0)
    drawn_HWC = plain_HWC // 2
    yes_HW, is_HW = found_HW == 1, truth_HW == 1
    for band, what_HW in enumerate((is_HW & ~yes_HW, is_HW & yes_HW, yes_HW & (truth_HW == 0))):
        drawn_HWC[what_HW, band] = 255
    Image.fromarray(np.hstack([plain_HWC, drawn_HWC])).save(path)
    print(f"picture: {path}")


def found(image: Path, model: Path, work: Path) -> np.ndarray:
    """What a model finds in an image: 0, 1, and 255 without imagery."""
    scores = score_scene(image, model, work / "scores" / image.name, progress=Progress())
    with rasterio.open(scores) as source:
        return as_labels(source.read(1), THRESHOLD)


def road_images(folder: Path) -> list[Path]:
    """The 34 images in which roads are mapped, by name."""
    images = sorted((folder / "imagery").glob("*.tif"))
    return [image for image in images if image.stem not in (CITY, SUBURB)]


def footprint(image: Path) -> shapely.Polygon:
    with rasterio.open(image) as source:
        return shapely.box(*source.bounds)


def write_areas(path: Path, areas: Sequence[shapely.Polygon]) -> None:
    gpd.GeoDataFrame(geometry=list(areas), crs="EPSG:26986").to_file(path, driver="GPKG")


if __name__ == "__main__":
    main()
