"""Windows: a view is what plain slicing gives, and each pixel is read once."""

from dataclasses import dataclass, field

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from orthotrace.mapping.prediction.windows import _Reader, count_windows, views
from orthotrace.tiling.grid import Window
from orthotrace.tiling.layer import Pixels


@dataclass
class Plain:
    """A source whose value and validity at a pixel are a function of its place, without end."""

    bands: tuple[str, ...] = ("red", "nir")
    dtype: str = "uint16"
    reads: list[Window] = field(default_factory=list)

    def read(self, window: Window) -> Pixels:
        self.reads.append(window)
        return plain(window)


def plain(window: Window) -> Pixels:
    rows = np.arange(window.top, window.bottom)[:, None]
    cols = np.arange(window.left, window.right)
    base = rows * 131 + cols * 7
    return Pixels(np.stack([base, base + 1]).astype(np.uint16), (rows // 9 + cols // 5) % 3 > 0)


areas = st.builds(
    lambda top, left, height, width: Window(top, left, top + height, left + width),
    *(st.integers(-50, 50), st.integers(-50, 50), st.integers(1, 40), st.integers(1, 40)),
)


@settings(deadline=None, max_examples=60)
@given(areas, st.integers(1, 24), st.integers(0, 30))
def test_a_view_is_what_slicing_gives(area: Window, side: int, margin: int) -> None:
    seen = list(views(Plain(), area, side, margin))
    assert [view.window for view in seen] == list(area.lattice(side))
    assert len(seen) == count_windows(area, side)
    for view in seen:
        assert view.kept == view.window.overlap(area)
        assert np.array_equal(view.valid_HW, plain(view.kept).valid_HW)
        assert (view.seen is None) == (not view.valid_HW.any())
        if view.seen is not None:
            wanted = plain(view.window.grown(margin))
            assert np.array_equal(view.seen.data_CHW, wanted.data_CHW)
            assert np.array_equal(view.seen.valid_HW, wanted.valid_HW)


@settings(deadline=None, max_examples=60)
@given(areas, st.integers(1, 24), st.integers(0, 30))
def test_kept_windows_cover_the_area_once(area: Window, side: int, margin: int) -> None:
    covered: NDArray[np.int64] = np.zeros(area.shape, int)
    for view in views(Plain(), area, side, margin):
        covered[view.kept.slices(area)] += 1
    assert (covered == 1).all()


@settings(deadline=None, max_examples=60)
@given(areas, st.integers(1, 24), st.integers(0, 30))
def test_each_pixel_is_read_once(area: Window, side: int, margin: int) -> None:
    source = Plain()
    for _ in views(source, area, side, margin):
        pass
    whole = Window(-200, -200, 200, 200)
    times = np.zeros(whole.shape, int)
    for window in source.reads:
        times[window.slices(whole)] += 1
    assert times.max() == 1
    assert times[area.slices(whole)].min() == 1


def test_memory_of_a_row_is_its_margins() -> None:
    """What is kept from one row of windows for the next: 2 x margin rows, over the width."""
    area, side, margin = Window(0, 0, 30, 400), 10, 2
    reader = _Reader(Plain(), margin)
    for square in area.lattice(side):
        reader.read(square)
    kept = [pixels.data_CHW for pixels in reader._above.values()]
    assert sum(part.shape[2] for part in kept) == area.width + 2 * margin
    assert {part.shape[1] for part in kept} == {2 * margin}
    assert all(part.base is None for part in kept)
