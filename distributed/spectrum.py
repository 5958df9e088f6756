"""How fast a topology mixes, and what it costs: computed from its matrices, nothing simulated.

The squared consensus distance is the sum over learners of |x_i - mean|^2. A factor of 1 means
that it never falls, 0 that one round or exchange brings the exact mean.
"""

from math import inf, log, prod

import numpy as np
from numpy.typing import NDArray

from .topology import Matrix, Topology

EXACT = 1e-12
"""A singular value below this is rounding of one that is zero."""


def round_factor(topology: Topology) -> float:
    """Factor in [0, 1] by which a round multiplies the squared consensus distance at worst.

    A fixed graph: the square of its second singular value. One with a period: the geometric mean
    over the rounds of a period, from their product. One drawn anew: lambda_2 of E[W'W], whose
    trace a permutation keeps, so that it is (|W|^2 - 1) / (N - 1) in closed form; ValueError if
    its super-learners are of two sizes, which has no closed form.
    """
    if topology.period is None:
        return _drawn_factor(topology)
    product = np.eye(topology.size)
    for round in range(topology.period):
        product = topology.weights(round) @ product
    second = float(np.linalg.norm(product - 1 / topology.size, 2))
    return 0.0 if second < EXACT else float(min(second, 1.0) ** (2 / topology.period))


def _drawn_factor(topology: Topology) -> float:
    if topology.size % topology.group:
        raise ValueError(f"{topology.name}: groups of two sizes, drawn anew, have no closed form")
    apart = topology.groups - 1
    if apart == 0:
        return 0.0
    factors = [max(0.0, (float((r.weights_E**2).sum()) - 1) / apart) for r in topology.rounds]
    return float(prod(factors) ** (1 / len(factors)))


def gap(topology: Topology) -> float:
    """The spectral gap, in [0, 1], as the papers give it.

    Of a fixed or periodic graph 1 - the second singular value (per round, of the product over a
    period); of one drawn anew 1 - lambda_2 of E[W'W], which speaks of the *squared* distance.
    To compare the two kinds take `round_factor`.
    """
    factor = round_factor(topology)
    return 1 - (factor if topology.period is None else factor**0.5)


def pair_factor(topology: Topology) -> float:
    """Factor in [0, 1] by which one exchange multiplies the squared consensus distance, at worst.

    In the mean over exchanges, in each of which a learner drawn uniformly averages half and half
    with a uniform one of its neighbours (AD-PSGD, Lian et al. 2018): lambda_2 of E[W]. An
    exchange is a projection, W'W = W, so no second moment is needed.
    """
    if topology.size == 1:
        return 0.0
    drawn_NN = _draws(topology.contacts()) / topology.size
    each_way_NN = (drawn_NN + drawn_NN.T) / 2
    expected_NN = each_way_NN - np.diag(each_way_NN.sum(axis=1)) + np.eye(topology.size)
    second = float(np.linalg.eigvalsh(expected_NN)[-2])
    return 0.0 if second < EXACT else min(second, 1.0)


def _draws(contacts_NN: NDArray[np.bool_]) -> Matrix:
    """Row i: the probability with which i draws each of its neighbours."""
    degrees_N1 = contacts_NN.sum(axis=1, keepdims=True)
    drawn_NN: Matrix = contacts_NN / np.maximum(degrees_N1, 1)
    return drawn_NN


def exchanges_to_cut(topology: Topology, by: float = 100.0) -> float:
    """Exchanges per learner, those it is asked for included, to cut the squared distance `by`.

    Infinite where the graph falls apart; ValueError unless `by` is above 1.
    """
    if not by > 1:
        raise ValueError(f"a distance is cut by more than 1, got {by}")
    if topology.size == 1:
        return 0.0
    factor = pair_factor(topology)
    if 1 - factor < EXACT:
        return inf
    events = log(by) / -log(factor) if factor > 0 else 1.0
    return 2 * max(1.0, events) / topology.size


def bytes_per_step(topology: Topology, model_bytes: float) -> float:
    """Bytes that a learner sends in a round, mean over learners and a period's rounds.

    As many bytes come in, at the same time on a full-duplex link. Of super-learners only what
    passes between them is counted, shared by their members. An exchange of AD-PSGD sends
    `model_bytes` each way whatever the graph; for an all-reduce see `all_reduce_bytes`.
    """
    sent = [int((r.receivers_E != r.senders_E).sum()) for r in topology.rounds]
    return model_bytes * sum(sent) / len(sent) / topology.size


def all_reduce_bytes(learners: int, model_bytes: float) -> float:
    """Bytes that a learner sends in a ring all-reduce: 2 M (n - 1) / n, near the least possible."""
    if learners < 1:
        raise ValueError(f"an all-reduce has at least one learner, got {learners}")
    return 2 * model_bytes * (learners - 1) / learners
