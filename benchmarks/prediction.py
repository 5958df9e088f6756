"""How near prediction comes to the bare forward passes of its windows, and in how much memory.

    python benchmarks/prediction.py IMAGE.tif [--side 8000] [--model FILE] [--only speed]

IMAGE is repeated to SIDE x SIDE pixels in a deflate GeoTIFF and scored by a U-Net (resnet18, random
weights, three classes) into a deflate GeoTIFF. Printed:

- speed: seconds of the bare forward passes of the same windows, margins included, over the seconds
  from file to file. Slab by slab, half of the bare passes come before and half after, so that a
  busy machine slows both alike;
- memory: the peak of a process that scores SIDE x SIDE and one that scores twice the side, imports
  included (Linux only);
- margins: how far scores are from those of one huge window, for three margins.
"""

import argparse
import dataclasses
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path

import numpy as np
import rasterio
import torch
from numpy.typing import NDArray
from orthotrace.mapping.prediction.predict import score_scene
from orthotrace.mapping.prediction.scorer import Scorer, load_scorer, score_views
from orthotrace.mapping.prediction.windows import views
from orthotrace.models.card import Card, Model, save_model
from orthotrace.models.unet import build_unet, normalise
from orthotrace.tiling.grid import Window
from orthotrace.tiling.imagery import SceneReader, footprint, open_scene, scene_grid
from orthotrace.tiling.layer import Pixels
from rasterio.windows import Window as RasterWindow

CLASSES = ("road", "building", "water")
BLOCK_px = 512
SLABS = 4
INPUTS = 8
"""Views that the bare passes go round in."""

MARGINS = (32, 64, 128)
HUGE_px = 1024
"""Side of the window that is scored whole, for the margins."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("image", type=Path)
    parser.add_argument("--side", type=int, default=8000)
    parser.add_argument("--model", type=Path, help="a trained model, instead of random weights")
    parser.add_argument("--only", choices=["speed", "memory", "margins"])
    parser.add_argument("--peak", nargs=2, type=Path, help=argparse.SUPPRESS)
    told = parser.parse_args()
    if told.peak:
        model, out = told.peak
        score_scene(told.image, model, out)
        print(peak_MB())
        return
    with tempfile.TemporaryDirectory() as folder:
        model = told.model or save_random(told.image, Path(folder) / "model.safetensors")
        scorer = load_scorer(model)
        print(
            f"{os.cpu_count()} cores, {torch.get_num_threads()} threads, {scorer.device}, "
            f"{scorer.dtype}, {scorer.card.encoder}, "
            f"window {scorer.card.window} + 2 x {scorer.card.margin} px"
        )
        if told.only in (None, "speed"):
            print_speed(told.image, model, scorer, told.side, Path(folder))
        if told.only in (None, "memory"):
            print_memory(told.image, model, told.side, Path(folder))
        if told.only in (None, "margins"):
            print_margins(told.image, scorer)


# -- speed ---------------------------------------------------------------------------------


def print_speed(image: Path, model: Path, scorer: Scorer, side: int, folder: Path) -> None:
    bare_s = whole_s = 0.0
    windows = 0
    for number in range(SLABS):
        slab = repeat(image, folder / f"slab{number}.tif", side, side // SLABS)
        inputs, count = bare_inputs(slab, scorer)
        windows += count
        bare_s += seconds_bare(scorer, inputs, count // 2)
        start = time.perf_counter()
        score_scene(slab, model, folder / "scores.tif")
        whole_s += time.perf_counter() - start
        bare_s += seconds_bare(scorer, inputs, count - count // 2)
        print(
            f"after slab {number + 1} of {SLABS}: bare {bare_s:.1f} s, end to end {whole_s:.1f} s, "
            f"bare over end to end {bare_s / whole_s:.3f}",
            flush=True,
        )
        slab.unlink()
    view = scorer.card.window + 2 * scorer.card.margin
    seen = windows * view**2 / (side * (side // SLABS) * SLABS)
    print(f"speed: {bare_s / whole_s:.3f} of the bare forward passes; goal 0.90")
    print(f"scored windows' pixels over the raster's: {seen:.2f}")


def bare_inputs(path: Path, scorer: Scorer) -> tuple[list[torch.Tensor], int]:
    """Some views of a scene as the model gets them, and how many hold data and so cost a pass."""
    card, scene = scorer.card, open_scene(path)
    grid = scene_grid(scene)
    inputs: list[torch.Tensor] = []
    count = 0
    with SceneReader(scene, grid) as source:
        for view in views(source, footprint(scene, grid), card.window, card.margin):
            if view.seen is not None:
                count += 1
                if len(inputs) < INPUTS:
                    inputs.append(as_input(view.seen, scorer))
    return inputs, count


def as_input(pixels: Pixels, scorer: Scorer) -> torch.Tensor:
    data_NCHW, valid_NHW = (
        torch.from_numpy(each[None]) for each in (pixels.data_CHW, pixels.valid_HW)
    )
    image_NCHW = normalise(data_NCHW, valid_NHW, scorer.card).to(scorer.device, scorer.dtype)
    return image_NCHW.repeat(scorer.batch, 1, 1, 1).contiguous(memory_format=torch.channels_last)


def seconds_bare(scorer: Scorer, inputs: list[torch.Tensor], count: int) -> float:
    """Of nothing but forward passes over `count` windows."""
    batches = -(-count // scorer.batch)
    start = time.perf_counter()
    with torch.inference_mode():
        for image_NCHW in islice(cycle(inputs), batches):
            scorer.module(image_NCHW)
    if scorer.device.type == "cuda":
        torch.cuda.synchronize(scorer.device)
    return time.perf_counter() - start


# -- memory --------------------------------------------------------------------------------


def print_memory(image: Path, model: Path, side: int, folder: Path) -> None:
    for each in (side, 2 * side):
        scene = repeat(image, folder / "scene.tif", each, each)
        # The peak that a process tells is its own only if it was started afresh.
        told = subprocess.run(
            [sys.executable, __file__, scene, "--peak", model, folder / "scores.tif"],
            check=True,
            capture_output=True,
            text=True,
        )
        print(f"memory: {told.stdout.strip()} MB at {each} x {each}; goal 1400", flush=True)


def peak_MB() -> int:
    """The most memory that this process has held so far, in 10^6 bytes."""
    status = Path("/proc/self/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024 // 10**6


# -- margins -------------------------------------------------------------------------------


class Part:
    """An image in memory, cut or repeated, its first pixel at the lattice's origin."""

    bands, dtype = ("red", "green", "blue"), "uint8"

    def __init__(self, image: Path) -> None:
        with rasterio.open(image) as source:
            once_CHW = source.read()
        rows, cols = (np.arange(HUGE_px) % length for length in once_CHW.shape[1:])
        self.data_CHW = once_CHW[:, rows][:, :, cols]
        self.window = Window(0, 0, HUGE_px, HUGE_px)

    def read(self, window: Window) -> Pixels:
        data_CHW = np.zeros((3, *window.shape), np.uint8)
        valid_HW = np.zeros(window.shape, bool)
        part = self.window.overlap(window)
        if part is not None:
            data_CHW[:, *part.slices(window)] = self.data_CHW[:, *part.slices(self.window)]
            valid_HW[part.slices(window)] = True
        return Pixels(data_CHW, valid_HW)


def print_margins(image: Path, scorer: Scorer) -> None:
    source = Part(image)
    whole_KHW = scores_with(source, scorer, HUGE_px, max(MARGINS))
    for margin in MARGINS:
        off_KHW = np.abs(scores_with(source, scorer, scorer.card.window, margin) - whole_KHW)
        print(
            f"margin {margin} px: scores differ from one window of {HUGE_px} px by at most "
            f"{off_KHW.max():.4f}, {off_KHW.mean():.6f} in the mean"
        )


def scores_with(source: Part, scorer: Scorer, window: int, margin: int) -> NDArray[np.float32]:
    """The probabilities of the whole part, by windows of this size."""
    card = dataclasses.replace(scorer.card, window=window, margin=margin)
    other = dataclasses.replace(scorer, card=card, batch=1)
    found = np.zeros((len(card.classes), *source.window.shape), np.float32)
    for view, score_KHW in score_views(views(source, source.window, window, margin), other, print):
        if score_KHW is not None:
            at = view.kept.slices(source.window)
            found[:, *at] = score_KHW[:, *view.kept.slices(view.window)]
    return found


# -- what is scored ------------------------------------------------------------------------


def repeat(image: Path, path: Path, width: int, height: int) -> Path:
    """Write an image over and over, as a tiled deflate GeoTIFF of this size, block row by row."""
    with rasterio.open(image) as source:
        once_CHW = source.read()
        profile = {
            "driver": "GTiff",
            "crs": source.crs,
            "transform": source.transform,
            "dtype": once_CHW.dtype,
            "count": len(once_CHW),
            "width": width,
            "height": height,
            "tiled": True,
            "blockxsize": BLOCK_px,
            "blockysize": BLOCK_px,
            "interleave": "pixel",
            "compress": "deflate",
        }
    with rasterio.open(path, "w", **profile) as target:
        cols = np.arange(width) % once_CHW.shape[2]
        for top, rows in _block_rows(height, once_CHW.shape[1]):
            at = RasterWindow(0, top, width, len(rows))
            target.write(once_CHW[:, rows][:, :, cols], window=at)
    return path


def _block_rows(height: int, period: int) -> Iterator[tuple[int, NDArray[np.int64]]]:
    for top in range(0, height, BLOCK_px):
        yield top, np.arange(top, min(top + BLOCK_px, height)) % period


def save_random(image: Path, path: Path) -> Path:
    """A U-Net of random weights for the image's pixel size and statistics."""
    scene = open_scene(image)
    with rasterio.open(image) as source:
        pixels = source.read().reshape(source.count, -1)
    card = Card(
        classes=CLASSES,
        bands=scene.bands,
        dtype=scene.dtype,
        pixel_m=scene.ground_px_m[0],
        mean=tuple(pixels.mean(axis=1).tolist()),
        std=tuple(pixels.std(axis=1).tolist()),
        encoder="resnet18",
    )
    save_model(path, Model(card, build_unet(card).state_dict()))
    return path


if __name__ == "__main__":
    main()
