"""SGP: push-sum over one-way links (Assran et al. 2019, with Kempe et al. 2003)."""

from dataclasses import dataclass
from itertools import count
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..effects import Compute, Program, Receive, Send
from ..replica import Programs, Replica


class Pushing(Protocol):
    """Who sends to whom in each round."""

    def weights(self, round: int) -> NDArray[np.float64]:
        """Shape (learners, learners): column j has what j gives to itself and to others.

        Columns sum to 1; rows need not.
        """


@dataclass(frozen=True, slots=True)
class PushSum:
    """Each learner sends shares of its numerator and of a weight; their quotient is its model.

    What is sent need not come back, so any directed graph will do. The sums of numerators and of
    weights over all learners are kept, so the de-biased models agree on the exact mean.
    """

    pushing: Pushing

    def programs(self, own: Replica) -> Programs:
        """A trainer that computes at the de-biased model and moves the numerator."""
        return Programs(_push(own, self.pushing))


def _push(own: Replica, pushing: Pushing) -> Program:
    numerator, weight = own.x.copy(), 1.0
    for round in count():
        gradient = yield Compute(own.x)
        if gradient is None:
            return
        numerator = numerator - own.rate * gradient
        own.steps += 1
        shares = pushing.weights(round)
        for to in np.flatnonzero(shares[:, own.rank]).tolist():
            if to != own.rank:
                share = float(shares[to, own.rank])
                yield Send(to, share * numerator, round, share * weight)
        kept = float(shares[own.rank, own.rank])
        numerator, weight = kept * numerator, kept * weight
        for sender in np.flatnonzero(shares[own.rank]).tolist():
            if sender != own.rank:
                letter = yield Receive(sender, round)
                numerator = numerator + letter.vector
                weight += letter.note
        own.replace(numerator / weight)
