"""Fewer numbers in an all-reduce of gradients, for learners that step together.

ScaleCom (Chen et al. 2020) lets the learners take turns in choosing which entries all of them send:
then the sum needs only those, and compressing commutes with averaging. AdaComp (Chen et al. 2018)
lets each choose for itself, bin by bin. Both remember what was not sent. Neither fits asynchronous
averaging as it stands: ScaleCom needs a common step, so it is for the inside of a super-learner.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypedDict

import numpy as np
from numpy.typing import NDArray
from torch import nn

from .errors import DistributedError
from .layout import Vector

Indices = NDArray[np.integer]
"""Places in the flat gradient; on the wire int32."""


@dataclass(frozen=True, slots=True)
class Part:
    """One tensor's place in the flat gradient, and how it may be compressed."""

    start: int
    stop: int
    bin: int | None
    """Entries of one bin of AdaComp; None where the gradient is always sent whole."""

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.stop or (self.bin is not None and self.bin < 1):
            raise ValueError(f"a part from {self.start} to {self.stop} with bins of {self.bin}")


class Reducer(Protocol):
    """The all-reduce of `size` learners; all call the same in turn."""

    size: int

    def mean(self, values: Vector) -> Vector:
        """Elementwise mean over the learners of arrays of one shape; the same bits at each."""
        ...

    def broadcast(self, indices: Indices, leader: int) -> Indices:
        """The leader's array, whatever the others hand in; it has the same shape."""
        ...


class ScaleComState(TypedDict):
    """What ScaleCom remembers, for a checkpoint."""

    memory: Vector
    step: int


def parts_of(module: nn.Module) -> tuple[Part, ...]:
    """The parts of a module's parameters with a gradient, in their order.

    Vectors (biases, normalisation) and the first matrix or kernel are always sent whole. Bins are
    of 50 entries in convolutions and 500 in matrices, as in the paper on AdaComp.
    """
    parts, start, first = [], 0, True
    for parameter in module.parameters():
        if parameter.requires_grad:
            small = parameter.ndim < 2
            bins = None if small or first else 50 if parameter.ndim > 2 else 500
            parts.append(Part(start, start + parameter.numel(), bins))
            start, first = start + parameter.numel(), first and small
    return tuple(parts)


class ScaleCom:
    """Cyclic local top-k with a low-pass memory, over an all-reduce.

    With p = memory + gradient, the learner whose turn it is tells the indices of its `share`
    largest |p| of each part, and all average their p there. Then memory += beta (gradient - sent).
    With beta = 1 that is error feedback, which loses nothing. Below it is a low-pass filter: of
    what is not sent only a part is remembered, so that memories of large batches stay alike.
    """

    def __init__(
        self, parts: Sequence[Part], share: float, beta: float = 0.1, warmup: int = 0
    ) -> None:
        """`share` and `beta` in (0, 1]; the first `warmup` steps are sent whole.

        DistributedError for other numbers, ValueError for parts that do not follow each other.
        """
        if not (0 < share <= 1 and 0 < beta <= 1 and warmup >= 0):
            raise DistributedError(
                f"share {share}, beta {beta} and warmup {warmup}, where "
                "the first two must be in (0, 1] and the last not negative"
            )
        self._parts = _following(parts)
        self._kept = [max(1, round(share * (p.stop - p.start))) for p in _compressed(parts)]
        self._whole = _whole(parts)
        self._beta, self._warmup, self._step = beta, warmup, 0
        self._memory: Vector = np.zeros(parts[-1].stop if parts else 0, np.float32)

    def reduce(self, gradient: Vector, reducer: Reducer) -> Vector:
        """The mean of the learners' compressed gradients, shape (parameters,), the same at each.

        Momentum and the optimizer come after it. ValueError for a gradient of another shape.
        """
        self._check(gradient)
        self._step += 1
        if self._step <= self._warmup:
            return reducer.mean(gradient)
        pressed = self._memory + gradient
        indices = reducer.broadcast(self._largest(pressed), (self._step - 1) % reducer.size)
        places = np.concatenate([self._whole, indices])
        values = pressed[places]
        self._remember(gradient, places, values)
        mean = np.zeros_like(gradient)
        mean[places] = reducer.mean(values)
        return mean

    @property
    def nbytes(self) -> tuple[int, int]:
        """Bytes of the next step: what each learner hands to `mean`, the leader to `broadcast`.

        Numbers count as float32, indices as int32.
        """
        if self._step < self._warmup:
            return 4 * self._memory.size, 0
        return 4 * (self._whole.size + sum(self._kept)), 4 * sum(self._kept)

    @property
    def ratio(self) -> float:
        """How many times fewer bytes the next step takes than float32 sent whole."""
        return 4 * self._memory.size / max(1, sum(self.nbytes))

    def state_dict(self) -> ScaleComState:
        """What is remembered; another learner's is another."""
        return {"memory": self._memory.copy(), "step": self._step}

    def load_state_dict(self, state: ScaleComState) -> None:
        """Be what was saved. ValueError for another shape."""
        self._check(state["memory"])
        self._memory, self._step = state["memory"].copy(), state["step"]

    def _remember(self, gradient: Vector, places: Indices, values: Vector) -> None:
        unsent = gradient.copy()
        unsent[places] -= values
        unsent *= self._beta
        self._memory = self._memory + unsent  # new, since the first gradient sets the type

    def _largest(self, pressed: Vector) -> Indices:
        chosen = [np.empty(0, np.int64)]
        for part, kept in zip(_compressed(self._parts), self._kept, strict=True):
            size = np.abs(pressed[part.start : part.stop])
            chosen.append(part.start + np.argpartition(size, size.size - kept)[-kept:])
        return np.concatenate(chosen).astype(np.int32)

    def _check(self, vector: Vector) -> None:
        _same_shape(vector, self._memory)


@dataclass(frozen=True, slots=True)
class Sparse:
    """Some entries of a vector."""

    indices: Indices
    """Where, rising; shape (sent,)."""
    values: Vector
    """What, shape (sent,)."""


class AdaComp:
    """Each learner sends, of every bin, what this step's gradient could still lift to the top.

    With G = residual + gradient, an entry is sent if |G + gradient| is at least the largest |G| of
    its bin; what is not sent is the next residual. So a bin sends few entries while one leads, and
    more when many are alike. Learners send different indices: their messages are gathered, not
    reduced. Values go as they are, without the paper's ternary scale.
    """

    def __init__(self, parts: Sequence[Part]) -> None:
        """ValueError for parts that do not follow each other."""
        self._parts = _following(parts)
        self._whole = _whole(parts)
        self._residual: Vector = np.zeros(parts[-1].stop if parts else 0, np.float32)

    def compress(self, gradient: Vector) -> Sparse:
        """What this learner sends of its gradient. ValueError for one of another shape."""
        self._check(gradient)
        grown = self._residual + gradient
        chosen = [self._whole]
        for part in _compressed(self._parts):
            place = slice(part.start, part.stop)
            chosen.append(part.start + _leading(grown[place], gradient[place], part.bin or 1))
        indices = np.sort(np.concatenate(chosen))
        values = grown[indices]
        self._residual = grown
        self._residual[indices] = 0
        return Sparse(indices, values)

    def state_dict(self) -> dict[str, Vector]:
        """What is remembered, for a checkpoint."""
        return {"residual": self._residual.copy()}

    def load_state_dict(self, state: dict[str, Vector]) -> None:
        """Be what was saved. ValueError for another shape."""
        self._check(state["residual"])
        self._residual = state["residual"].copy()

    def _check(self, vector: Vector) -> None:
        _same_shape(vector, self._residual)


def mean_of(messages: Sequence[Sparse], size: int) -> Vector:
    """The mean of the learners' messages, in the order given, as a vector of shape (size,)."""
    if not messages:
        raise ValueError("no message, and a mean is of at least one")
    mean = np.zeros(size, messages[0].values.dtype)
    for message in messages:
        mean[message.indices] += message.values
    mean /= len(messages)
    return mean


def _same_shape(vector: Vector, memory: Vector) -> None:
    if vector.shape != memory.shape:
        raise ValueError(f"a vector of shape {vector.shape}, where the parts make {memory.shape}")


def _leading(grown: Vector, gradient: Vector, length: int) -> Indices:
    """Where |grown + gradient| reaches its bin's largest |grown|; the last bin may be short."""
    starts = np.arange(0, grown.size, length)
    highest = np.maximum.reduceat(np.abs(grown), starts) if grown.size else grown
    limit = np.repeat(highest, length)[: grown.size]
    # An entry of zero says nothing, though it leads a bin of zeros.
    return np.flatnonzero((np.abs(grown + gradient) >= limit) & (grown != 0))


def _compressed(parts: Sequence[Part]) -> list[Part]:
    return [part for part in parts if part.bin is not None and part.stop > part.start]


def _whole(parts: Sequence[Part]) -> Indices:
    whole = [np.arange(p.start, p.stop) for p in parts if p.bin is None]
    return np.concatenate([np.empty(0, np.int64), *whole])


def _following(parts: Sequence[Part]) -> tuple[Part, ...]:
    starts = [0, *(part.stop for part in parts)]
    if [part.start for part in parts] != starts[:-1]:
        raise ValueError(f"parts begin at {[p.start for p in parts]}, and must follow each other")
    return tuple(parts)
