"""A picture for people: image, labels, scores and map side by side, as one PNG."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import shapely
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.path import Path as Outline
from numpy.typing import NDArray

from ...tiling.files import written_beside
from ..errors import MappingError
from .palette import STYLES, UNKNOWN, rgb
from .thumbnail import Thumbnail
from .views import VectorView

_INK, _PAPER, _BLANK = "#1d2a33", "#ffffff", (231, 229, 224)
_PANEL_INCH = 4.6
_DPI = 130
_TITLE_INCH, _LEGEND_INCH, _GAP_INCH = 0.42, 0.42, 0.12


@dataclass(frozen=True, slots=True)
class Panel:
    """One part of the picture: a raster with, or without, features over it."""

    title: str

    layers: tuple[Thumbnail, ...]
    """Drawn one over the other; all of one place and size."""

    vectors: tuple[VectorView, ...] = ()

    dimmed: bool = False
    """Whether the raster is made pale and grey, so that the features over it stand out."""

    def __post_init__(self) -> None:
        places = {(layer.rgba_HWC.shape, layer.transform, layer.crs) for layer in self.layers}
        if len(places) != 1:
            raise MappingError(
                f"the panel {self.title!r} shows rasters of one place and size, got {len(places)}"
            )


def write_picture(
    path: Path, panels: Sequence[Panel], *, legend: Mapping[str, str], title: str = ""
) -> Path:
    """Draw the panels in one row, with a legend below (words to "#rrggbb"); returns `path`.

    The same panels and the same Matplotlib give the same bytes.
    """
    if not panels:
        raise MappingError(f"{path} would be a picture of nothing; wanted at least one panel")
    height, width = panels[0].layers[0].rgba_HWC.shape[:2]
    tall = _PANEL_INCH * height / width
    top = _TITLE_INCH * (2 if title else 1)
    full = (
        len(panels) * _PANEL_INCH + (len(panels) + 1) * _GAP_INCH,
        tall + top + (_LEGEND_INCH if legend else _GAP_INCH),
    )
    figure = Figure(figsize=full, dpi=_DPI, facecolor=_PAPER)
    for number, panel in enumerate(panels):
        left = _GAP_INCH + number * (_PANEL_INCH + _GAP_INCH)
        bottom = full[1] - top - tall
        axes = figure.add_axes(
            (left / full[0], bottom / full[1], _PANEL_INCH / full[0], tall / full[1])
        )
        _draw(axes, panel)
    if title:
        figure.text(
            _GAP_INCH / full[0],
            1 - _TITLE_INCH * 0.6 / full[1],
            title,
            color=_INK,
            fontsize=13,
            fontweight="bold",
            va="center",
            parse_math=False,
        )
    if legend:
        _draw_legend(figure, legend)
    with written_beside(path) as part:
        FigureCanvasAgg(figure)
        figure.savefig(part, format="png", facecolor=_PAPER, metadata={"Software": None})
    return path


def _draw(axes: Axes, panel: Panel) -> None:
    base = panel.layers[0]
    left, bottom, right, top = base.bounds
    extent = (left, right, bottom, top)
    axes.imshow(_flattened(panel), extent=extent, interpolation="antialiased")
    for view in panel.vectors:
        _draw_features(axes, view, base.crs)
    axes.set(xlim=(left, right), ylim=(bottom, top), xticks=[], yticks=[])
    axes.set_aspect("auto")
    axes.set_title(panel.title, loc="left", fontsize=11, color=_INK, parse_math=False)
    axes.spines[:].set_visible(False)


def _flattened(panel: Panel) -> NDArray[np.uint8]:
    """The panel's rasters over one another, on paper."""
    height, width = panel.layers[0].rgba_HWC.shape[:2]
    colour_HWC = np.full((height, width, 3), _BLANK, np.float32)
    for layer in panel.layers:
        share_HW1 = layer.rgba_HWC[..., 3:].astype(np.float32) / 255
        colour_HWC += (layer.rgba_HWC[..., :3] - colour_HWC) * share_HW1
    if panel.dimmed:
        grey_HW1 = colour_HWC.mean(axis=2, keepdims=True)
        colour_HWC = 0.45 * grey_HW1 + np.full(3, 24, np.float32)
    return colour_HWC.round().astype(np.uint8)


def _draw_features(axes: Axes, view: VectorView, crs: str) -> None:
    style = STYLES[view.style]
    shapes = shapely.get_parts(view.features.geometry.to_crs(crs).to_numpy())
    kinds = shapely.get_type_id(shapes)
    areas, lines = shapes[kinds == 3], shapes[np.isin(kinds, (1, 2))]
    strokes = "dashed" if style.dashed else "solid"
    if len(areas):
        tint = (*(part / 255 for part in rgb(style.colour)), 0.45) if style.filled else "none"
        outlines = [_outline(area) for area in areas]
        axes.add_collection(
            PathCollection(
                outlines, facecolor=tint, edgecolor=style.colour, linewidth=0.8, linestyle=strokes
            )
        )
    if len(lines):
        points = [shapely.get_coordinates(line) for line in lines]
        axes.add_collection(
            LineCollection(points, color=style.colour, linewidth=1.5, linestyle=strokes)
        )


def _outline(area: shapely.Polygon) -> Outline:
    """A polygon with its holes as one path."""
    rings = [area.exterior, *area.interiors]
    return Outline.make_compound_path(
        *(Outline(shapely.get_coordinates(ring), closed=True) for ring in rings)
    )


def _draw_legend(figure: Figure, legend: Mapping[str, str]) -> None:
    handles = [
        Patch(
            facecolor=colour,
            edgecolor=_INK,
            linewidth=0.5,
            label=words,
            hatch="/////" if colour == UNKNOWN else None,
        )
        for words, colour in legend.items()
    ]
    shown = figure.legend(
        handles=handles,
        loc="lower left",
        ncols=len(handles),
        frameon=False,
        fontsize=10,
        labelcolor=_INK,
        handlelength=1.1,
        handleheight=1.0,
        columnspacing=1.4,
    )
    for text in shown.get_texts():
        text.set_parse_math(False)
