"""The two copies of a learner's model, and how another's model is mixed in while it trains.

The trainer's thread alone writes the module (P). A second copy (M) is what neighbours see and mix
with. What the optimizer did since last time is P - P0, P0 being what the module held then, and it
is added to M: so any optimizer works, and neither side waits for the other. AD-PSGD's averaging
(Lian et al. 2018) becomes M += (theirs - mine)/2 with `mine` as it was sent: a gradient step that
lands between sending and mixing is kept whole, where x = (x + theirs)/2 would lose half of it.
"""

import math
import threading
from collections.abc import Iterable
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from .errors import Refused
from .layout import Kind, Layout, Vector


class MixtureState(TypedDict):
    """All that a mixture is, for a checkpoint."""

    mixed: Vector
    model: Vector
    own_share: float
    apart: bool
    version: int
    committed: int


class Mixture:
    """The mixing copy of one learner's model, shared by its trainer and its mixer.

    Statistics are kept as what came from others, plus `own_share` of P0's: so a commit replaces
    its own part alone, and a variance can never become negative, as it can by P - P0.
    """

    def __init__(self, start: Vector, layout: Layout) -> None:
        """Both copies are `start`, as read from the module. ValueError if of another form."""
        layout.check(start)
        self.layout = layout
        self._schema = layout.schema()
        self._weights, self._statistics, self._counters = map(layout.segment, Kind)
        self._lock = threading.Lock()
        self._mixed = start.copy()
        self._mixed[self._statistics] = 0
        self._model = start.copy()
        self._increment = np.empty_like(start[self._weights])
        self._own_share = 1.0
        self._apart = False
        self._version = self._committed = 0
        self._in_flight = False

    @property
    def version(self) -> int:
        """How many exchanges were mixed in so far."""
        return self._version

    @property
    def staleness(self) -> int:
        """How many of them the module has not seen yet."""
        return self._version - self._committed

    def commit(self, model: Vector) -> Vector:
        """Add what the optimizer did to the mixing copy, and give what the module shall hold now.

        Only the trainer's thread calls this. Where nothing was mixed in, `model` itself comes back
        and need not be written, so that a lone learner is plain torch to the bit; otherwise a
        vector to read until the next commit. Refused, with nothing changed, if `model` is not
        finite: `restart` then gives what the module held before, with what was mixed in.
        """
        self.layout.check(model)
        if not is_finite(model):
            raise Refused("nonfinite", "the model itself has become NaN or infinite in training")
        with self._lock:
            lone = not self._apart
            if lone:
                self._mixed[self._weights] = model[self._weights]
                self._mixed[self._counters] = model[self._counters]
                self._model[:] = model
            else:
                self._merge(model)
            self._committed = self._version
        return model if lone else self._model

    def restart(self) -> Vector:
        """What the module shall hold if its last step is thrown away; to be read and written."""
        return self.commit(self._model.copy())

    def _merge(self, model: Vector) -> None:
        weights, counters = self._weights, self._counters
        new = self._model
        np.subtract(model[weights], new[weights], out=new[weights])
        self._mixed[weights] += new[weights]
        new[weights] = self._mixed[weights]
        np.multiply(model[self._statistics], self._own_share, out=new[self._statistics])
        new[self._statistics] += self._mixed[self._statistics]
        np.maximum(self._mixed[counters], model[counters], out=new[counters])
        self._mixed[counters] = new[counters]
        self._mixed[self._statistics] = 0
        self._own_share = 1.0
        self.layout.hold(new)
        # Where the module rounds, M keeps what P0 has not, and a plain copy would lose it.
        self._apart = self.layout.rounds

    def snapshot(self, out: Vector | None = None) -> Vector:
        """A copy of the mixing copy, to be sent, in `out` if given: an exchange begins.

        It ends with `mix` or `abandon`. ValueError if one is in flight: two at once would leave a
        learner the weight 1 - 2/2 of its own.
        """
        vector = np.empty_like(self._mixed) if out is None else out
        self.layout.check(vector)
        with self._lock:
            if self._in_flight:
                raise ValueError("an exchange is in flight, and a learner has one at a time")
            self._in_flight = True
            self._look(vector)
        return vector

    def look(self) -> Vector:
        """A copy of the mixing copy, to look at; no exchange begins."""
        vector = np.empty_like(self._mixed)
        with self._lock:
            self._look(vector)
        return vector

    def _look(self, out: Vector) -> None:
        out[:] = self._mixed
        statistics = self._statistics
        if self._own_share == 1:
            out[statistics] = self._model[statistics]
        else:
            out[statistics] += self._own_share * self._model[statistics]

    def mix(self, mine: Vector, theirs: Vector, schema: str | None = None) -> None:
        """Mix a neighbour's model in, `mine` being what it was sent, as it decodes it.

        Weights by half the difference, the exact opposite of what the neighbour adds; statistics
        half of each; counters the maximum. The exchange is over, also if `theirs` is Refused: for
        another `schema` than the layout's, another length or type, or a number that is not finite.
        ValueError if none was begun. Nothing is changed unless all is.
        """
        self.abandon()
        self._admit(theirs, schema)
        self.layout.check(mine)
        increment = self._increment
        with np.errstate(over="ignore", invalid="ignore"):
            np.subtract(theirs[self._weights], mine[self._weights], out=increment)
        increment *= 0.5
        if not (is_finite(increment) and is_finite(theirs[self._weights.stop :])):
            raise Refused("nonfinite", "a neighbour's model is NaN or infinite, or far too large")
        with self._lock:
            self._mixed[self._weights] += increment
            foreign = self._mixed[self._statistics]
            foreign += theirs[self._statistics]
            foreign *= 0.5
            counters = self._mixed[self._counters]
            np.maximum(counters, theirs[self._counters], out=counters)
            self._own_share *= 0.5
            self._apart = True
            self._version += 1

    def abandon(self) -> None:
        """End the exchange in flight with nothing mixed. ValueError if there is none."""
        with self._lock:
            if not self._in_flight:
                raise ValueError("no exchange is in flight: it begins with a snapshot")
            self._in_flight = False

    def _admit(self, theirs: Vector, schema: str | None) -> None:
        layout = self.layout
        if schema is not None and schema != self._schema:
            raise Refused(
                "schema", f"a neighbour's model has schema {schema}, and ours {self._schema}"
            )
        if theirs.shape != (layout.size,):
            raise Refused(
                "length", f"a neighbour's model has shape {theirs.shape}, and ours ({layout.size},)"
            )
        if theirs.dtype != layout.dtype:
            raise Refused("dtype", f"a neighbour sent {theirs.dtype}, and ours is {layout.dtype}")

    def state_dict(self) -> MixtureState:
        """Everything, copied. ValueError while an exchange is in flight."""
        with self._lock:
            if self._in_flight:
                raise ValueError("an exchange is in flight: a checkpoint is taken between two")
            return {
                "mixed": self._mixed.copy(),
                "model": self._model.copy(),
                "own_share": self._own_share,
                "apart": self._apart,
                "version": self._version,
                "committed": self._committed,
            }

    def load_state_dict(self, state: MixtureState) -> None:
        """Be what was saved. ValueError if that is of another form; then nothing is changed."""
        self.layout.check(state["mixed"])
        self.layout.check(state["model"])
        with self._lock:
            self._mixed[:], self._model[:] = state["mixed"], state["model"]
            self._own_share, self._apart = state["own_share"], state["apart"]
            self._version, self._committed = state["version"], state["committed"]


def is_finite(vector: Vector) -> bool:
    """Whether no element is NaN or infinite: one pass without a copy, unless the sum overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        return math.isfinite(vector.sum()) or bool(np.isfinite(vector).all())


def total(mixtures: Iterable[Mixture]) -> NDArray[np.float64]:
    """The sum of all learners' weights, shape (weights,): which mixing conserves to rounding."""
    looks = [m.look()[m.layout.segment(Kind.WEIGHTS)].astype(np.float64) for m in mixtures]
    summed: NDArray[np.float64] = np.sum(looks, axis=0)
    return summed
