"""What goes over a wire for a vector, in fewer bytes by choice.

A message is a head of 16 bytes, the weights as the codec packs them, and the statistics and
counters as they are. Bytes are the machine's own (little-endian wherever torch runs), and no
pickle. A lossy codec keeps the pair's sum exactly, since each side mixes with the decoded copy of
its *own* message: x += (decoded theirs - decoded mine)/2.
"""

import math
import struct
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from .errors import Refused
from .layout import Kind, Layout, Vector

Bytes = NDArray[np.uint8]
"""Bytes as links send them: 1-D, uint8."""

HEAD = struct.Struct("<2sBBIQ")
"""Mark, codec, bytes per number, exchange of the link (modulo 2^32), numbers in the vector."""

MARK = b"OT"


@dataclass(frozen=True, slots=True)
class Message:
    """What is sent, and what the other side will read in it."""

    payload: Bytes
    own: Vector
    """The vector as it decodes: to be mixed with as `mine`. Only to be read."""

    @property
    def nbytes(self) -> int:
        """Bytes on the wire."""
        return self.payload.nbytes


class Codec(ABC):
    """Packs the vectors of one layout; a codec of one link, where it remembers anything."""

    name: ClassVar[str]
    code: ClassVar[int]
    """The codec's number on the wire."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._weights = layout.segment(Kind.WEIGHTS)
        self._count: int = self._weights.stop
        self._rest: int = (layout.size - self._count) * layout.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of the next message, exactly; the same at both ends of a link."""
        return HEAD.size + self._packed() + self._rest

    def encode(self, vector: Vector) -> Message:
        """Pack a vector. ValueError if it is none of the layout."""
        self.layout.check(vector)
        payload = np.empty(self.nbytes, np.uint8)
        head = (MARK, self.code, self.layout.dtype.itemsize, self._exchange(), self.layout.size)
        HEAD.pack_into(payload.data, 0, *head)
        end = HEAD.size + self._packed()
        self._pack(vector[self._weights], payload[HEAD.size : end])
        payload[end:] = vector[self._count :].view(np.uint8)
        return Message(payload, self._read(payload))

    def decode(self, payload: Bytes | bytes) -> Vector:
        """What another's message says: a vector, perhaps a view of the payload. Only to be read.

        Refused by a sentence if it is no message of this codec and layout, of another length, or
        holds a scale or difference that is not finite.
        """
        told = np.frombuffer(payload, np.uint8)
        self._admit(told)
        return self._read(told)

    def _admit(self, payload: Bytes) -> None:
        if payload.size < HEAD.size:
            raise _refused(f"{payload.size} bytes, less than the {HEAD.size} of its head")
        mark, code, item, exchange, size = HEAD.unpack_from(payload.data)
        if mark != MARK:
            raise _refused(f"begins with {mark!r}, not {MARK!r}")
        wanted = (self.code, self.layout.dtype.itemsize, self.layout.size)
        if (code, item, size) != wanted:
            raise _refused(
                f"codec {code} with {size} numbers of {item} bytes, "
                f"where {self.name} ({self.code}) with {wanted[2]} of {wanted[1]} is wanted"
            )
        if exchange != self._exchange():
            raise _refused(f"exchange {exchange} of the link, and {self._exchange()} comes next")
        if payload.size != self.nbytes:
            raise _refused(f"{payload.size} bytes, and {self.nbytes} are wanted")

    def _read(self, payload: Bytes) -> Vector:
        end = HEAD.size + self._packed()
        vector = np.empty(self.layout.size, self.layout.dtype)
        self._unpack(payload[HEAD.size : end], vector[self._weights])
        vector[self._count :] = payload[end:].view(self.layout.dtype)
        return vector

    def _exchange(self) -> int:
        """Of which exchange of the link the next message is; 0 where it does not matter."""
        return 0

    @abstractmethod
    def _packed(self) -> int:
        """Bytes of the weights in the next message."""

    @abstractmethod
    def _pack(self, weights: Vector, into: Bytes) -> None:
        """Fill `into` with the weights."""

    @abstractmethod
    def _unpack(self, packed: Bytes, into: Vector) -> None:
        """Fill `into` with what was packed."""


class Plain(Codec):
    """The numbers as they are: 4 bytes each (8 in a layout of float64). No error."""

    name, code = "plain", 1

    def _packed(self) -> int:
        return self._count * self.layout.dtype.itemsize

    def _pack(self, weights: Vector, into: Bytes) -> None:
        into[:] = weights.view(np.uint8)

    def _unpack(self, packed: Bytes, into: Vector) -> None:
        into[:] = packed.view(self.layout.dtype)

    def _read(self, payload: Bytes) -> Vector:
        return payload[HEAD.size :].view(self.layout.dtype)


class Bfloat16(Codec):
    """Two bytes each, rounded to the nearest, ties to even: error at most 2^-8 of the number."""

    name, code = "bfloat16", 2

    def _packed(self) -> int:
        return 2 * self._count

    def _pack(self, weights: Vector, into: Bytes) -> None:
        narrow = torch.from_numpy(into).view(torch.bfloat16)
        narrow.copy_(torch.from_numpy(np.require(weights, requirements="W")))

    def _unpack(self, packed: Bytes, into: Vector) -> None:
        # A bfloat16 is the upper half of a float32.
        into[:] = (packed.view(np.uint16).astype(np.uint32) << 16).view(np.float32)


BLOCK = 256
"""Weights that share a scale in `Blocks8`."""

LEVELS = 127


class Blocks8(Codec):
    """One byte each, and a scale for each 256: error at most 1/254 of the block's largest.

    Between two models that differ by less than that, little is mixed.
    """

    name, code = "blocks8", 3

    def __init__(self, layout: Layout) -> None:
        super().__init__(layout)
        self._blocks = math.ceil(self._count / BLOCK)

    def _packed(self) -> int:
        return self._blocks * self.layout.dtype.itemsize + self._count

    def _pack(self, weights: Vector, into: Bytes) -> None:
        scales, codes = self._parts(into)
        padded = np.zeros((self._blocks, BLOCK), weights.dtype)
        padded.reshape(-1)[: self._count] = weights
        # Not max(abs()): that is one more array.
        np.maximum(padded.max(axis=1), -padded.min(axis=1), out=scales)
        scales /= LEVELS
        usable = np.where(scales > 0, scales, 1)[:, None]
        padded /= usable
        np.rint(padded, out=padded)
        # A scale below the smallest normal number is inexact, and could give 128.
        np.clip(padded, -LEVELS, LEVELS, out=padded)
        codes[:] = padded.reshape(-1)[: self._count]

    def _unpack(self, packed: Bytes, into: Vector) -> None:
        scales, codes = self._parts(packed)
        if not np.isfinite(scales).all():
            raise Refused("nonfinite", "a message has a scale that is NaN or infinite")
        into[:] = codes
        whole = self._count // BLOCK * BLOCK
        into[:whole].reshape(-1, BLOCK)[:] *= scales[: whole // BLOCK, None]
        into[whole:] *= scales[-1:]

    def _parts(self, packed: Bytes) -> tuple[Vector, NDArray[np.int8]]:
        end = self._blocks * self.layout.dtype.itemsize
        return packed[:end].view(self.layout.dtype), packed[end:].view(np.int8)


def _refused(found: str) -> Refused:
    return Refused("message", f"a neighbour's message is not used: {found}")
