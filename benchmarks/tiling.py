"""What tiling costs over decoding and writing the same pixels, in one interleaved run.

    python benchmarks/tiling.py IMAGE.tif [--cell 1024] [--rounds 3]

The image stands on its own grid, so nothing is resampled. For each cell in turn: the stage's own
function, and the bare work, which is a read of the same window and one write of the same array.
"""

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median

import rasterio
from orthotrace.mapping.rasters import TileJob, tile_cell
from orthotrace.tiling.imagery import footprint, open_scene, scene_grid
from orthotrace.tiling.layer import Layer, Pixels, write_geotiff
from orthotrace.tiling.mosaic import make_mosaic
from rasterio.windows import Window as RasterWindow


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("image", type=Path)
    parser.add_argument("--cell", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=3)
    told = parser.parse_args()
    scene = open_scene(told.image)
    grid = scene_grid(scene, cell=told.cell, tile=min(told.cell, 512))
    mosaic, area = make_mosaic([scene], grid), footprint(scene, grid)
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        layer = Layer(Path(folder) / "imagery", grid, mosaic.bands, mosaic.dtype).save()
        for _ in range(told.rounds):
            stage = bare = 0.0
            for cell in grid.cells(area):
                window = grid.window(cell)
                began = time.perf_counter()
                tile_cell(TileJob(cell, layer, mosaic.within(window)))
                stage += time.perf_counter() - began
                pixels = layer.read(window)
                began = time.perf_counter()
                decode(told.image, window.top - area.top, window.left - area.left, told.cell)
                write(Path(folder) / "bare.tif", layer, pixels)
                bare += time.perf_counter() - began
            ratios.append(stage / bare)
    print(
        f"{area.height} x {area.width} px in cells of {told.cell}: "
        f"tiling over decode + write x{median(ratios):.2f} (median of {told.rounds})"
    )


def decode(image: Path, top: int, left: int, side: int) -> None:
    with rasterio.open(image) as source:
        source.read(window=RasterWindow(left, top, side, side), boundless=True)


def write(path: Path, layer: Layer, pixels: Pixels) -> None:
    write_geotiff(
        path,
        pixels,
        crs=layer.grid.crs,
        transform=layer.grid.transform(layer.grid.window(layer.cells()[0])),
        bands=layer.bands,
        nodata=None,
        block=layer.grid.tile,
        tags={},
    )


if __name__ == "__main__":
    main()
