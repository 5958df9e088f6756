"""A codec that sends only what has changed most since the link's two ends last met.

Both ends of a link keep one reference. Each sends the k largest entries of its vector less the
reference, and reads the other's as the reference plus what came; the mean of these two vectors,
the same bits at both ends, is the next reference. In CHOCO (Koloskova et al. 2019) a reference is
only moved by what was sent, and mixing then needs a step far smaller than the half that averages:
entries not sent for long would be mixed again and again. Here the reference moves with the mixing,
and what is not sent is not mixed. The first message of a link is whole.
"""

from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from .codec import Bytes, Codec, Message
from .errors import DistributedError, Refused
from .layout import Layout, Vector

INDEX = np.dtype(np.uint32)


class LinkState(TypedDict):
    """What one end of a link remembers, for a checkpoint."""

    reference: Vector | None
    exchange: int


class TopK(Codec):
    """The `share` of weights that differ most from the link's reference; one such at each end.

    An index of 4 bytes and the number itself, for at least one weight. An exchange is one `encode`
    and one `decode`, in any order; after one that failed both ends `reset`, and a message of an end
    that did not is refused. Costs one vector of memory for each link, and two during an exchange.
    """

    name, code = "topk", 4

    def __init__(self, layout: Layout, share: float) -> None:
        """`share` in (0, 1]; DistributedError otherwise."""
        super().__init__(layout)
        if not 0 < share <= 1:
            raise DistributedError(f"a share of {share} is sent, and it must be in (0, 1]")
        if self._count > np.iinfo(INDEX).max:
            raise DistributedError(f"{self._count} weights are more than indices of 4 bytes reach")
        self._kept = min(self._count, max(1, round(share * self._count)))
        self.reset()

    def reset(self) -> None:
        """Forget the link: it begins anew, with a whole message from each end."""
        self._reference: Vector | None = None
        self._met = 0
        self._sent: Vector | None = None
        self._received: Vector | None = None

    def encode(self, vector: Vector) -> Message:
        """As any codec; ValueError if this exchange's message is made already."""
        if self._sent is not None:
            raise ValueError("a message was made, and none was read since: reset a link that fails")
        message = super().encode(vector)
        self._sent = message.own[self._weights]
        self._settle()
        return message

    def decode(self, payload: Bytes | bytes) -> Vector:
        """As any codec; ValueError if this exchange's message is read already."""
        if self._received is not None:
            raise ValueError("a message was read, and none was made since: reset a link that fails")
        vector = super().decode(payload)
        self._received = vector[self._weights]
        self._settle()
        return vector

    def state_dict(self) -> LinkState:
        """What this end remembers. ValueError in the middle of an exchange."""
        if self._sent is not None or self._received is not None:
            raise ValueError("an exchange is half done: a checkpoint is taken between two")
        reference = None if self._reference is None else self._reference.copy()
        return {"reference": reference, "exchange": self._met}

    def load_state_dict(self, state: LinkState) -> None:
        """Be what was saved. ValueError if that is of another form."""
        reference, wanted = state["reference"], (self._count,)
        if reference is not None and reference.shape != wanted:
            raise ValueError(f"a reference of shape {reference.shape}, and {wanted} is wanted")
        self.reset()
        self._reference = None if reference is None else reference.astype(self.layout.dtype)
        self._met = state["exchange"]

    def _settle(self) -> None:
        """Once both messages are known, move on; a sum of two is the same at both ends."""
        if self._sent is None or self._received is None:
            return
        mean = self._sent + self._received
        mean *= 0.5
        self._reference, self._sent, self._received = mean, None, None
        self._met += 1

    def _exchange(self) -> int:
        return self._met % 2**32

    def _packed(self) -> int:
        item = self.layout.dtype.itemsize
        if self._reference is None:
            return self._count * item
        return self._kept * (INDEX.itemsize + item)

    def _pack(self, weights: Vector, into: Bytes) -> None:
        if self._reference is None:
            into[:] = weights.view(np.uint8)
            return
        indices, changes = self._parts(into)
        change = weights - self._reference
        largest = np.argpartition(np.abs(change), self._count - self._kept)
        indices[:] = np.sort(largest[self._count - self._kept :])
        changes[:] = change[indices]

    def _unpack(self, packed: Bytes, into: Vector) -> None:
        if self._reference is None:
            into[:] = packed.view(self.layout.dtype)
            changes = into
        else:
            indices, changes = self._parts(packed)
            self._check(indices)
            into[:] = self._reference
            into[indices] += changes
        # Before it becomes part of the reference, and not only when it is mixed.
        if not np.isfinite(changes).all():
            raise Refused("nonfinite", "a message has a number that is NaN or infinite")

    def _check(self, indices: NDArray[np.uint32]) -> None:
        if (indices[-1:] >= self._count).any() or (indices[1:] <= indices[:-1]).any():
            raise Refused("message", f"a message's indices do not rise below {self._count}")

    def _parts(self, packed: Bytes) -> tuple[NDArray[np.uint32], Vector]:
        end = self._kept * INDEX.itemsize
        return packed[:end].view(INDEX), packed[end:].view(self.layout.dtype)
