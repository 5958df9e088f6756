"""What of a model travels between learners: every tensor's place in one flat vector.

Three kinds of segment stand in the vector, in this order, since each is mixed by its own rule:

- *weights*: parameters, and what is linear in gradients (momentum): mixed by delta;
- *statistics*: running means and variances, squares: mixed convexly, so that they keep their sign;
- *counters*: whole numbers: the maximum.

Counters stand in the vector too, so that one message is the whole model. Floats hold whole numbers
exactly up to 2^24 in float32 (2^53 in float64), where a counter then stays: at ten steps a second
that is nineteen days, and `num_batches_tracked` serves only an average that no longer moves then.
"""

import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from .errors import DistributedError

Vector = NDArray[np.floating]
"""A flat model: 1-D, float32, or float64 where one of its tensors is."""


class Kind(StrEnum):
    """By which rule a segment is mixed; in the order in which they stand in the vector."""

    WEIGHTS = "weights"
    STATISTICS = "statistics"
    COUNTERS = "counters"


STATE_KINDS = {
    "momentum_buffer": Kind.WEIGHTS,
    "exp_avg": Kind.WEIGHTS,
    "grad_avg": Kind.WEIGHTS,
    "exp_avg_sq": Kind.STATISTICS,
    "max_exp_avg_sq": Kind.STATISTICS,
    "square_avg": Kind.STATISTICS,
    "exp_inf": Kind.STATISTICS,
    "sum": Kind.STATISTICS,
}
"""What of an optimizer's state may travel, by torch's own words."""

FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("uint8", "int8", "int16", "int32", "int64")


@dataclass(frozen=True, slots=True)
class Entry:
    """One tensor: its name in the module, its form there, and the rule for it."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    """torch's word, such as "bfloat16"; in the vector it is wider or the same."""
    kind: Kind

    def __post_init__(self) -> None:
        wanted = INTEGERS if self.kind is Kind.COUNTERS else FLOATS
        if self.dtype not in wanted:
            raise DistributedError(
                f"{self.name} is {self.dtype}, and {self.kind} are one of {', '.join(wanted)}"
            )

    @property
    def size(self) -> int:
        """Its number of elements."""
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class Layout:
    """Every tensor's place in the vector; a pure description that holds no tensor."""

    entries: tuple[Entry, ...]
    """In the vector's order: weights, statistics, counters. ValueError for another order."""
    states: tuple[str, ...] = ()
    """Which of the optimizer's state is among them: keys of `STATE_KINDS`."""

    def __post_init__(self) -> None:
        kinds = [entry.kind for entry in self.entries]
        if kinds != sorted(kinds, key=list(Kind).index):
            raise ValueError(f"segments stand as {kinds}, and must as {', '.join(Kind)}")

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """The vector's: float64 if a tensor is, otherwise float32."""
        return np.dtype("f8" if any(e.dtype == "float64" for e in self.entries) else "f4")

    @property
    def size(self) -> int:
        """Length of the vector."""
        return sum(entry.size for entry in self.entries)

    @property
    def rounds(self) -> bool:
        """Whether a tensor is narrower than float32, so that the module rounds what is written."""
        return any(entry.dtype in ("float16", "bfloat16") for entry in self.entries)

    def segment(self, kind: Kind) -> slice:
        """Where a kind stands in the vector."""
        before = list(Kind)[: list(Kind).index(kind)]
        start = sum(entry.size for entry in self.entries if entry.kind in before)
        return slice(start, start + sum(e.size for e in self.entries if e.kind is kind))

    def places(self) -> Iterator[tuple[Entry, slice]]:
        """Each tensor with where it stands in the vector."""
        ends = accumulate(entry.size for entry in self.entries)
        for entry, end in zip(self.entries, ends, strict=True):
            yield entry, slice(end - entry.size, end)

    def schema(self) -> str:
        """Sixteen hexadecimal digits that two learners share only if all of this is the same."""
        told = [[e.name, e.shape, e.dtype, e.kind] for e in self.entries]
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:16]

    def read(
        self,
        module: nn.Module,
        optimizer: torch.optim.Optimizer | None = None,
        out: Vector | None = None,
    ) -> Vector:
        """The module as a vector, in `out` if given; exact, but for a counter beyond its limit.

        `optimizer` is needed where the layout has state of it. DistributedError if the module has
        not these tensors, ValueError if `out` is of another form.
        """
        vector = np.empty(self.size, self.dtype) if out is None else out
        self.check(vector)
        highest = 2 ** (np.finfo(self.dtype).nmant + 1)
        flat = torch.from_numpy(vector)
        with torch.no_grad():
            for entry, place, tensor in self._found(module, optimizer):
                told = tensor.clamp(max=highest) if entry.kind is Kind.COUNTERS else tensor
                flat[place].view(entry.shape).copy_(told)
        return vector

    def write(
        self,
        vector: Vector,
        module: nn.Module,
        optimizer: torch.optim.Optimizer | None = None,
    ) -> None:
        """Put the vector into the module's own tensors, rounded where they are narrower.

        Errors as in `read`; they come before the first tensor is written.
        """
        self.check(vector)
        found = list(self._found(module, optimizer))
        with torch.no_grad():
            for entry, place, tensor in found:
                tensor.copy_(_tensor(vector[place]).view(entry.shape))

    def hold(self, vector: Vector) -> None:
        """Round the vector, in place, to what a module holds after `write`."""
        for entry, place in self.places():
            if entry.dtype in ("float16", "bfloat16"):
                part = torch.from_numpy(vector[place])
                part.copy_(part.to(getattr(torch, entry.dtype)))

    def check(self, vector: Vector) -> None:
        """ValueError if this is no vector of the layout."""
        if vector.shape != (self.size,) or vector.dtype != self.dtype:
            raise ValueError(
                f"a vector of shape {vector.shape} and type {vector.dtype}, "
                f"where the layout has ({self.size},) and {self.dtype}"
            )

    def _found(
        self, module: nn.Module, optimizer: torch.optim.Optimizer | None
    ) -> Iterator[tuple[Entry, slice, Tensor]]:
        tensors = {name: tensor for name, tensor, _ in _travelling(module, optimizer, self.states)}
        for entry, place in self.places():
            tensor = tensors.get(entry.name)
            told = None if tensor is None else (tuple(tensor.shape), _word(tensor))
            if tensor is None or told != (entry.shape, entry.dtype):
                raise DistributedError(
                    f"{entry.name} was {entry.shape}, {entry.dtype} when the learner was made "
                    f"and is {told or 'not there'} now: a model keeps its form while it learns"
                )
            yield entry, place, tensor


def layout_of(
    module: nn.Module,
    optimizer: torch.optim.Optimizer | None = None,
    states: Sequence[str] = (),
) -> Layout:
    """The layout of a module, and of `states` of its optimizer if wanted.

    Parameters are weights, frozen ones too, so that all learners are one model; shared ones stand
    once. Of the persistent buffers, floats are statistics and single whole numbers counters; masks,
    tables of indices and buffers that are not saved stay where they are. The optimizer must have
    stepped once, since its state is made then. DistributedError for a state that is not known or
    not there, and for tensors of complex numbers.
    """
    found = _travelling(module, optimizer, tuple(states))
    entries = [Entry(name, tuple(t.shape), _word(t), kind) for name, t, kind in found]
    return Layout(
        tuple(sorted(entries, key=lambda entry: list(Kind).index(entry.kind))), tuple(states)
    )


def weights_only(size: int, dtype: str = "float32") -> Layout:
    """A layout of `size` weights and nothing else, for learners that are no torch module."""
    return Layout((Entry("weights", (size,), dtype, Kind.WEIGHTS),))


def _travelling(
    module: nn.Module, optimizer: torch.optim.Optimizer | None, states: Sequence[str]
) -> Iterator[tuple[str, Tensor, Kind]]:
    yield from ((name, p, Kind.WEIGHTS) for name, p in module.named_parameters())
    saved = module.state_dict(keep_vars=True)
    for name, buffer in module.named_buffers():
        if name in saved and (buffer.is_floating_point() or buffer.is_complex()):
            yield name, buffer, Kind.STATISTICS
        elif name in saved and buffer.numel() == 1 and buffer.dtype is not torch.bool:
            yield name, buffer, Kind.COUNTERS
    for word in states:
        yield from _of_optimizer(module, optimizer, word)


def _of_optimizer(
    module: nn.Module, optimizer: torch.optim.Optimizer | None, word: str
) -> Iterator[tuple[str, Tensor, Kind]]:
    if word not in STATE_KINDS:
        known = ", ".join(STATE_KINDS)
        raise DistributedError(f"no optimizer's state called {word} can travel: one of {known}")
    if optimizer is None:
        raise DistributedError(f"{word} is an optimizer's, and no optimizer was given")
    stepped = {id(p) for group in optimizer.param_groups for p in group["params"]}
    for name, parameter in module.named_parameters():
        if parameter.requires_grad and id(parameter) in stepped:
            tensor = optimizer.state.get(parameter, {}).get(word)
            if not isinstance(tensor, Tensor):
                raise DistributedError(
                    f"the optimizer has no {word} of {name}: let it step once before"
                )
            yield f"{word} of {name}", tensor, STATE_KINDS[word]


def _word(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _tensor(part: Vector) -> Tensor:
    """The same memory as a tensor; torch would warn of memory that may only be read."""
    return torch.from_numpy(part if part.flags.writeable else part.copy())
