"""Training samples: tiles of two layers, counted once; the rare is seen, and the empty too.

A draw decodes one block of the imagery and one of the labels, unless it has them still. Which
sample stands at place i of step s is a pure function of (seed, s, i), so a training that was
interrupted goes on as if it had not been.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..tiling.files import fingerprint
from ..tiling.grid import Cell, Window
from ..tiling.layer import Layer, Pixels
from ..tiling.values import NO, UNKNOWN, YES
from .augment import dihedral, light
from .errors import ModelError

Counts = NDArray[np.int64]
Tile = tuple[Pixels, NDArray[np.uint8]]
"""Imagery and labels (K, H, W) of one window."""

Item = TypeVar("Item")
Done = TypeVar("Done")

READERS = 2
"""Threads that read and augment while the network learns."""

KEPT = 128
"""Decoded tiles that are kept, since small crops come back to a tile often: 200 MB at 512 px."""

FEWEST_KNOWN = 0.02
"""Share of a tile that must be known and valid for it to be trained on."""

_TRIES = 4
"""Places of a crop that are looked at; the one with most known pixels is taken."""


@dataclass(frozen=True, slots=True)
class Index:
    """What the tiles of a training set hold, counted in one pass over its layers."""

    tiles: tuple[Window, ...]
    """In reading order of their cells."""

    known_TK: Counts
    """Pixels of each tile and class that are known where the imagery is valid."""

    yes_TK: Counts
    """Those of them that hold the class."""

    mean: tuple[float, ...]
    """Of each band over all valid pixels of these tiles, in the imagery's own numbers."""

    std: tuple[float, ...]

    left_out: Mapping[str, int]
    """How many tiles were looked at and are not among these, by reason."""

    def identity(self) -> str:
        """What changes when a tile, a count or a statistic does."""
        counts = self.known_TK.tobytes().hex(), self.yes_TK.tobytes().hex()
        return fingerprint(repr((self.tiles, self.mean, self.std)), *counts)


@dataclass(frozen=True, slots=True)
class Batch:
    """Samples as a network takes them, before normalisation."""

    data_NCHW: NDArray[np.float32]
    valid_NHW: NDArray[np.bool_]
    labels_NKHW: NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Samples:
    """Two layers on one grid, the index of their tiles, and how crops are drawn from them."""

    imagery: Layer
    labels: Layer
    index: Index
    crop: int
    aimed: float
    jitter: float
    seed: int

    read: Callable[[Window], Tile]
    """Reads a tile, or has kept it from the last time."""

    def __post_init__(self) -> None:
        if self.crop > self.imagery.grid.tile:
            raise ModelError(
                f"a crop is at most a tile of {self.imagery.grid.tile} pixels, got {self.crop}"
            )

    def batch(self, step: int, size: int) -> Batch:
        """The samples of one step: (size, bands, crop, crop) and labels likewise."""
        drawn = [self.sample(step, place) for place in range(size)]
        return Batch(*(np.stack(parts) for parts in zip(*drawn, strict=True)))

    def sample(
        self, step: int, place: int
    ) -> tuple[NDArray[np.float32], NDArray[np.bool_], NDArray[np.uint8]]:
        """One crop, augmented: (bands, crop, crop) imagery, where it is valid, and labels."""
        random = np.random.default_rng((self.seed, step, place))
        tile, wanted = self._aim(random)
        pixels, labels_KHW = self.read(self.index.tiles[tile])
        at = self._place(labels_KHW, wanted, random)
        mean, std = (np.array(told, np.float32) for told in (self.index.mean, self.index.std))
        data_CHW = light(pixels.data_CHW[:, *at], mean, std, self.jitter, random)
        parts = (data_CHW, pixels.valid_HW[at], labels_KHW[:, *at])
        view = int(random.integers(8))
        # mypy sees a tuple of any length where there are three.
        return tuple(np.ascontiguousarray(dihedral(part, view)) for part in parts)  # type: ignore[return-value]

    def _aim(self, random: np.random.Generator) -> tuple[int, int | None]:
        """A tile, and the class of which its crop is to hold a pixel (None: any known one)."""
        yes_K = self.index.yes_TK.sum(axis=0)
        if random.random() < self.aimed and yes_K.any():
            wanted = int(random.choice(np.flatnonzero(yes_K)))
            weight_T = self.index.yes_TK[:, wanted]
        else:
            wanted, weight_T = None, self.index.known_TK.max(axis=1)
        return int(random.choice(len(weight_T), p=weight_T / weight_T.sum())), wanted

    def _place(
        self, labels_KHW: NDArray[np.uint8], wanted: int | None, random: np.random.Generator
    ) -> tuple[slice, slice]:
        """Rows and columns of a crop that holds a pixel as wanted, and many that are known."""
        known_HW = (labels_KHW != UNKNOWN).any(axis=0)
        hit_HW = known_HW if wanted is None else labels_KHW[wanted] == 1
        rows, cols = np.nonzero(hit_HW)
        best, most = (slice(0), slice(0)), -1
        for _ in range(_TRIES):
            pick = int(random.integers(len(rows)))
            at = tuple(
                _span(int(middle[pick]), self.crop, side, random)
                for middle, side in zip((rows, cols), known_HW.shape, strict=True)
            )
            if (count := int(known_HW[at].sum())) > most:
                best, most = (at[0], at[1]), count
        return best


def build_samples(
    imagery: Layer,
    labels: Layer,
    *,
    held_back: Callable[[Window], bool],
    crop: int,
    aimed: float = 0.5,
    jitter: float = 0.2,
    seed: int = 0,
) -> tuple[Samples, Index]:
    """The samples of all tiles that are not held back, and the index of those that are.

    One pass over the layers. ModelError if they do not fit, or if nothing is left to learn from.
    """
    if imagery.grid != labels.grid:
        raise ModelError(
            f"{labels.folder} stands on {labels.grid}, wanted the grid of {imagery.folder}: "
            f"{imagery.grid}"
        )
    trained, held = _Count(), _Count()
    strips = [strip for cell in imagery.cells() for strip in _strips(imagery, cell)]
    reads = in_order(partial(read_tile, imagery, labels), strips)
    for strip, (pixels, labels_KHW) in zip(strips, reads, strict=True):
        for tile in strip.lattice(imagery.grid.tile):
            at = tile.slices(strip)
            count = held if held_back(tile) else trained
            count.add(tile, pixels.data_CHW[:, *at], pixels.valid_HW[at], labels_KHW[:, *at])
    index = trained.index(imagery, labels)
    if not index.tiles:
        reasons = ", ".join(f"{n} {why}" for why, n in index.left_out.items()) or "no cells"
        raise ModelError(
            f"{labels.folder} has no tile to train on ({reasons}, {len(held.tiles)} held back); "
            f"wanted labels that are known somewhere on {imagery.folder}: where is OSM mapped?"
        )
    read = lru_cache(KEPT)(partial(read_tile, imagery, labels))
    samples = Samples(imagery, labels, index, crop, aimed, jitter, seed, read)
    return samples, held.index(imagery, labels)


class _Count:
    """An index in the making."""

    def __init__(self) -> None:
        self.tiles: list[Window] = []
        self._known: list[Counts] = []
        self._yes: list[Counts] = []
        self._left_out = {"without imagery": 0, "without known labels": 0}
        self._moments: NDArray[np.float64] | float = 0.0

    def add(
        self,
        tile: Window,
        data_CHW: NDArray[Any],
        valid_HW: NDArray[np.bool_],
        labels_KHW: NDArray[np.uint8],
    ) -> None:
        """Count a tile in, or leave it out with the reason."""
        if not valid_HW.any():
            self._left_out["without imagery"] += 1
            return
        known_K = (labels_KHW != UNKNOWN).sum(axis=(1, 2))
        if known_K.max() < FEWEST_KNOWN * valid_HW.size:
            self._left_out["without known labels"] += 1
            return
        self.tiles.append(tile)
        self._known.append(known_K)
        self._yes.append((labels_KHW == YES).sum(axis=(1, 2)))
        values = data_CHW[:, valid_HW].astype(np.float64)
        count = np.full(len(values), values.shape[1])
        self._moments += np.stack([count, values.sum(axis=1), (values**2).sum(axis=1)])

    def index(self, imagery: Layer, labels: Layer) -> Index:
        """What was counted; a band that is constant is given a deviation of 1."""
        count, total, squares = np.broadcast_to(self._moments, (3, len(imagery.bands)))
        mean = total / np.maximum(count, 1)
        std = np.sqrt(np.maximum(squares / np.maximum(count, 1) - mean**2, 0))
        shape = (len(self.tiles), len(labels.bands))
        return Index(
            tuple(self.tiles),
            np.array(self._known, np.int64).reshape(shape),
            np.array(self._yes, np.int64).reshape(shape),
            tuple(mean.tolist()),
            tuple(np.where(std > 1e-6, std, 1.0).tolist()),
            {why: count for why, count in self._left_out.items() if count},
        )


def _strips(layer: Layer, cell: Cell) -> Iterator[Window]:
    """A cell's rows of tiles: few reads, and memory that does not grow with the cell's height."""
    whole, side = layer.grid.window(cell), layer.grid.tile
    for top in range(whole.top, whole.bottom, side):
        yield Window(top, whole.left, top + side, whole.right)


def read_tile(imagery: Layer, labels: Layer, window: Window) -> Tile:
    """Imagery and labels (K, H, W) of a window; labels are unknown where there is no imagery."""
    pixels = imagery.read(window)
    labels_KHW: NDArray[np.uint8] = labels.read(window).data_CHW
    labels_KHW |= np.where(pixels.valid_HW, NO, UNKNOWN).astype(np.uint8)  # 255 has all bits
    return pixels, labels_KHW


def in_order(
    work: Callable[[Item], Done], items: Iterable[Item], readers: int = READERS
) -> Generator[Done, None, None]:
    """Do the same to each item in threads, a few ahead of what is taken; results in order."""
    waiting: deque[Future[Done]] = deque()
    with ThreadPoolExecutor(readers, thread_name_prefix="samples") as threads:
        try:
            for item in items:
                waiting.append(threads.submit(work, item))
                if len(waiting) > readers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:  # whoever takes may stop early
            threads.shutdown(cancel_futures=True)


def _span(middle: int, length: int, side: int, random: np.random.Generator) -> slice:
    """A random stretch of `length` pixels in [0, side) that holds the pixel `middle`."""
    low, high = max(0, middle - length + 1), min(middle, side - length)
    start = int(random.integers(low, high + 1))
    return slice(start, start + length)
