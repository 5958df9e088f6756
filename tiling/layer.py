"""A layer: one kind of raster over a grid, a folder of cell GeoTIFFs and an index of them.

    FOLDER/layer.json   what the layer is: grid, bands, type, nodata
    FOLDER/CELL.tif     a cloud-optimised GeoTIFF; a tile is one internal block with all its bands
    FOLDER/index.vrt    all cells as one raster, for QGIS and GDAL

Imagery has no byte to spare for nodata, so it carries an internal mask; labels and scores have 255.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from xml.sax.saxutils import escape

import numpy as np
import rasterio
import rasterio.shutil
from numpy.typing import NDArray
from rasterio.enums import ColorInterp
from rasterio.errors import RasterioError
from rasterio.windows import Window as RasterWindow

from .errors import TilingError
from .files import remove, written_beside
from .grid import Cell, Grid, Window

Array = NDArray[Any]

_GDAL_TYPES = {"uint8": "Byte", "uint16": "UInt16", "int16": "Int16", "float32": "Float32"}


@dataclass(frozen=True, slots=True)
class Pixels:
    """What a read gives: values, and where there are any."""

    data_CHW: Array
    """Values of each band; where not valid, the nodata value, or 0 in a layer with a mask."""

    valid_HW: NDArray[np.bool_]
    """True where there is data (in at least one band, for labels and scores)."""

    def __post_init__(self) -> None:
        if self.data_CHW.shape[1:] != self.valid_HW.shape:
            raise ValueError(f"{self.data_CHW.shape} and {self.valid_HW.shape} are of two sizes")


@dataclass(frozen=True, slots=True)
class Layer:
    """A folder of cells on a grid. Cells that are not there read as nodata."""

    folder: Path
    grid: Grid

    bands: tuple[str, ...]
    """Names of the bands: "red", "nir" of imagery, "road" of labels and scores."""

    dtype: str = "uint8"

    nodata: int | None = None
    """The value that means "not known"; None for imagery, which has a mask instead."""

    def __post_init__(self) -> None:
        if self.dtype not in _GDAL_TYPES:
            raise TilingError(
                f"a layer holds one of {', '.join(_GDAL_TYPES)}, got {self.dtype} for {self.folder}"
            )
        if not self.bands:
            raise TilingError(f"a layer has at least one band, got none for {self.folder}")

    @classmethod
    def open(cls, folder: Path) -> Self:
        """The layer in `folder`, as its `layer.json` says; TilingError if there is none."""
        try:
            told = json.loads((folder / "layer.json").read_text())
            grid = Grid.from_dict(told["grid"])
            return cls(folder, grid, tuple(told["bands"]), told["dtype"], told["nodata"])
        except (OSError, KeyError, TypeError, ValueError) as problem:
            raise TilingError(
                f"{folder} is no layer ({problem}); wanted a folder with a layer.json"
            ) from problem

    def save(self) -> Self:
        """Write `layer.json`; cells of other bands or another type are of no use and are removed.

        A damaged `layer.json` is written anew. TilingError for a layer on another grid.
        """
        found = self._standing()
        if found is not None and found.grid != self.grid:
            raise TilingError(
                f"{self.folder} stands on the grid {found.grid}; wanted {self.grid}: "
                "remove the folder, or change the region back"
            )
        if found is not None and found != self:
            for path in (self.folder / "index.vrt", *map(found.path, found.cells())):
                remove(path)
        told = {
            "grid": self.grid.to_dict(),
            "bands": list(self.bands),
            "dtype": self.dtype,
            "nodata": self.nodata,
        }
        with written_beside(self.folder / "layer.json") as part:
            part.write_text(json.dumps(told, indent=1) + "\n")
        return self

    # -- cells -----------------------------------------------------------------------------

    def path(self, cell: Cell) -> Path:
        """Where a cell's file is, or would be."""
        return self.folder / f"{cell.name}.tif"

    def cells(self) -> list[Cell]:
        """The cells that have a file, row by row; a file of another name is none of the layer's."""
        found = map(_cell_of, self.folder.glob("r*_c*.tif"))
        return sorted(cell for cell in found if cell is not None)

    def write(self, cell: Cell, pixels: Pixels, tags: Mapping[str, str] | None = None) -> Path:
        """Write a cell whole: beside its place, compared with `pixels`, renamed.

        `tags` go to the file's metadata. TilingError if the array is not the cell's.
        """
        shape = (len(self.bands), self.grid.cell, self.grid.cell)
        if pixels.data_CHW.shape != shape or pixels.data_CHW.dtype != self.dtype:
            raise TilingError(
                f"a cell of {self.folder} is {shape} of {self.dtype}, "
                f"got {pixels.data_CHW.shape} of {pixels.data_CHW.dtype}"
            )
        path = self.path(cell)
        with written_beside(path, lambda part: self._verify(part, pixels)) as part:
            write_geotiff(
                part,
                pixels,
                crs=self.grid.crs,
                transform=self.grid.transform(self.grid.window(cell)),
                bands=self.bands,
                nodata=self.nodata,
                block=self.grid.tile,
                tags=tags or {},
            )
        return path

    def read(self, window: Window) -> Pixels:
        """The pixels of any window, over all cells that it touches; TilingError for a torn file."""
        shape = (len(self.bands), *window.shape)
        data_CHW = np.full(shape, self.nodata or 0, self.dtype)
        valid_HW = np.zeros(window.shape, bool)
        for cell in self.grid.cells(window):
            part = self.grid.window(cell).overlap(window)
            if part is not None and self.path(cell).exists():
                found = self._read_cell(cell, part)
                into = part.slices(window)
                data_CHW[:, *into] = found.data_CHW
                valid_HW[into] = found.valid_HW
        return Pixels(data_CHW, valid_HW)

    def write_index(self) -> Path:
        """Write `index.vrt`, which QGIS and GDAL open as one raster; needs at least one cell."""
        index = self.folder / "index.vrt"
        with written_beside(index) as part:
            part.write_text(_vrt(self, self.cells()))
        return index

    # -- inside ----------------------------------------------------------------------------

    def _standing(self) -> Self | None:
        """The layer that stands in the folder, if one does."""
        try:
            return type(self).open(self.folder)
        except TilingError:
            return None

    def _read_cell(self, cell: Cell, part: Window) -> Pixels:
        at = part.slices(self.grid.window(cell))
        path = self.path(cell)
        try:
            with rasterio.open(path) as source:
                data_CHW = source.read(window=RasterWindow.from_slices(*at))
                if self.nodata is not None:
                    return Pixels(data_CHW, (data_CHW != self.nodata).any(axis=0))
                mask_HW = source.dataset_mask(window=RasterWindow.from_slices(*at))
                return Pixels(data_CHW, mask_HW > 0)
        except RasterioError as problem:
            raise TilingError(
                f"{path} cannot be read ({problem}); remove it and run the stage again"
            ) from problem

    def _verify(self, part: Path, pixels: Pixels) -> None:
        with rasterio.open(part) as source:
            same = np.array_equal(source.read(), pixels.data_CHW, equal_nan=self.dtype[0] == "f")
            if self.nodata is None:
                same = same and np.array_equal(source.dataset_mask() > 0, pixels.valid_HW)
        if not same:
            raise TilingError(f"{part} does not read back as it was written; is the disk whole?")


def _cell_of(path: Path) -> Cell | None:
    try:
        cell = Cell.parse(path.stem)
    except ValueError:
        return None
    return cell if cell.name == path.stem else None


def write_geotiff(
    path: Path,
    pixels: Pixels,
    *,
    crs: str,
    transform: rasterio.Affine,
    bands: Sequence[str],
    nodata: int | None,
    block: int,
    tags: Mapping[str, str],
) -> None:
    """Write an array as a cloud-optimised GeoTIFF with overviews; the same array, the same bytes.

    With `nodata` None the validity goes to an internal mask. Writes to `path` itself: give it
    the part of `written_beside`.
    """
    count, height, width = pixels.data_CHW.shape
    profile = {
        "driver": "MEM",
        "width": width,
        "height": height,
        "count": count,
        "dtype": pixels.data_CHW.dtype,
        "crs": crs,
        "transform": transform,
        "nodata": nodata,
    }
    categories = nodata is not None and "probability" not in tags.values()
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True), rasterio.open("", "w", **profile) as memory:
        memory.write(pixels.data_CHW)
        memory.descriptions = tuple(bands)
        memory.update_tags(**tags)
        memory.colorinterp = colours(bands)
        if nodata is None:
            memory.write_mask(pixels.valid_HW)
        rasterio.shutil.copy(
            memory,
            path,
            driver="COG",
            BLOCKSIZE=block,
            COMPRESS="DEFLATE",
            PREDICTOR="YES" if nodata is None else "NO",
            OVERVIEW_RESAMPLING="NEAREST" if categories else "AVERAGE",
            BIGTIFF="IF_SAFER",
        )


def colours(bands: Sequence[str]) -> list[ColorInterp]:
    """Colour interpretation by band name; NIR and classes are never alpha."""
    named = {"red": ColorInterp.red, "green": ColorInterp.green, "blue": ColorInterp.blue}
    first = [ColorInterp.gray if bands[0] not in named else named[bands[0]]]
    return first + [named.get(band, ColorInterp.undefined) for band in bands[1:]]


def _vrt(layer: Layer, cells: list[Cell]) -> str:
    if not cells:
        raise TilingError(f"{layer.folder} holds no cell yet, so it has no index")
    side = layer.grid.cell
    top, left = min(c.row for c in cells) * side, min(c.col for c in cells) * side
    bottom, right = (max(c.row for c in cells) + 1) * side, (max(c.col for c in cells) + 1) * side
    whole = Window(top, left, bottom, right)
    interpretations = colours(layer.bands)

    def sources(band: str) -> str:
        return "".join(_vrt_source(layer, cell, whole, band) for cell in cells)

    bands = "".join(
        f'<VRTRasterBand dataType="{_GDAL_TYPES[layer.dtype]}" band="{number}">'
        f"<Description>{escape(name)}</Description>"
        f"<ColorInterp>{interpretations[number - 1].name.title()}</ColorInterp>"
        + ("" if layer.nodata is None else f"<NoDataValue>{layer.nodata}</NoDataValue>")
        + sources(str(number))
        + "</VRTRasterBand>\n"
        for number, name in enumerate(layer.bands, start=1)
    )
    mask = (
        f'<MaskBand><VRTRasterBand dataType="Byte">{sources("mask,1")}</VRTRasterBand></MaskBand>\n'
        if layer.nodata is None
        else ""
    )
    at = layer.grid.transform(whole)
    return (
        f'<VRTDataset rasterXSize="{whole.width}" rasterYSize="{whole.height}">\n'
        f"<SRS>{escape(rasterio.CRS.from_user_input(layer.grid.crs).to_wkt())}</SRS>\n"
        f"<GeoTransform>{', '.join(f'{number!r}' for number in at.to_gdal())}</GeoTransform>\n"
        f"{bands}{mask}</VRTDataset>\n"
    )


def _vrt_source(layer: Layer, cell: Cell, whole: Window, band: str) -> str:
    core, side = layer.grid.window(cell), layer.grid.cell
    into = f'xOff="{core.left - whole.left}" yOff="{core.top - whole.top}"'
    return (
        f'<SimpleSource><SourceFilename relativeToVRT="1">{cell.name}.tif</SourceFilename>'
        f"<SourceBand>{band}</SourceBand>"
        f'<SourceProperties RasterXSize="{side}" RasterYSize="{side}" '
        f'DataType="{"Byte" if band.startswith("mask") else _GDAL_TYPES[layer.dtype]}" '
        f'BlockXSize="{layer.grid.tile}" BlockYSize="{layer.grid.tile}"/>'
        f'<SrcRect xOff="0" yOff="0" xSize="{side}" ySize="{side}"/>'
        f'<DstRect {into} xSize="{side}" ySize="{side}"/></SimpleSource>'
    )
