"""The topologies that there are, each a function of the number of learners.

Every graph here weighs a learner and its distinct neighbours alike, but `finite_time`, whose
weights are what makes it exact. One learner is its own graph everywhere, weight 1.
"""

import difflib
from collections.abc import Callable, Iterable
from dataclasses import replace
from math import isqrt

import numpy as np

from .errors import DistributedError
from .topology import Round, Topology, check_size

Pair = tuple[int, int, float]
"""Two learners and the weight that each gives to the other."""


def ring(size: int) -> Topology:
    """A circle: each averages with its left and right, weight 1/3; two learners, weight 1/2."""
    return Topology("ring", size, False, (_lattice(1, size, [(0, -1), (0, 1)]),))


def random_ring(size: int, seed: int) -> Topology:
    """A new ring each round, the order drawn from (seed, round), no message needed.

    It costs the bytes of a ring, and its gap does not fall with `size` (Cui et al. 2021).
    """
    return replace(ring(size), name="random-ring", seed=seed)


def torus(size: int) -> Topology:
    """A grid whose ends meet, as near to square as `size` divides; of a prime size, the ring."""
    rows = next(r for r in range(isqrt(max(size, 1)), 0, -1) if size % r == 0)
    steps = [(0, -1), (0, 1), (-1, 0), (1, 0)]
    return Topology("torus", size, False, (_lattice(rows, size // rows, steps),))


def exponential(size: int) -> Topology:
    """Each sends to those 1, 2, 4, ... further on, all in one round (Ying et al. 2021)."""
    hops = [(0, 1 << k) for k in range(_log2_up(size))]
    return Topology("exponential", size, True, (_lattice(1, size, hops),))


def one_peer_exponential(size: int) -> Topology:
    """Each sends to one: 1 further on in round 0, then 2, 4, ..., and again from 1.

    For a power of two a period, log2(size) rounds, gives the exact mean (Ying et al. 2021).
    """
    turns = max(1, _log2_up(size))
    rounds = tuple(_lattice(1, size, [(0, 1 << k)]) for k in range(turns))
    return Topology("one-peer-exponential", size, True, rounds)


def bipartite_exponential(size: int) -> Topology:
    """Undirected, even and odd ranks apart: hops of 1 and of 1 + 2^k for k = 1, 2, ...

    Every hop is odd, and so crosses from one part to the other: with k = 0 it would be 2, and
    two learners that both only ask would wait for each other (Assran et al. 2019; Lian et al.
    2018). DistributedError for an odd number of learners, on which no odd hop stays odd.
    """
    if size % 2 and size > 1:
        raise DistributedError(
            f'topology "bipartite-exponential" wants an even number of learners, got {size};'
            ' "exponential" is the nearest that takes any number'
        )
    hops = [1] + [1 + (1 << k) for k in range(1, _log2_up(size)) if 1 + (1 << k) < size]
    steps = [(0, sign * hop) for hop in hops for sign in (-1, 1)]
    return Topology("bipartite-exponential", size, False, (_lattice(1, size, steps),))


def complete(size: int) -> Topology:
    """Everybody averages with everybody: the exact mean in one round."""
    return Topology("complete", size, False, (_lattice(1, size, [(0, k) for k in range(size)]),))


def super_learners(size: int, group: int, between: Topology) -> Topology:
    """Groups of `group` learners in order of rank, each one super-learner with one model.

    Inside, the mean is complete; super-learners average by `between`, a topology of
    ceil(size / group) of them (H-ADPSGD, Zhang et al. 2019). The last group may be smaller where
    `between` is undirected; DistributedError where it is directed, as columns would not sum to 1.
    """
    if between.group != 1 or group < 1 or between.size != -(-size // group):
        raise ValueError(
            f"{size} learners in groups of {group} want a plain topology of "
            f"{-(-size // max(group, 1))} groups, got {between.size}"
        )
    if between.directed and size % group:
        raise DistributedError(
            f"{between.name} is directed and wants groups of one size; {size} learners in groups"
            f" of {group} leave {size % group} over"
        )
    return replace(between, name=f"{between.name} of groups", size=size, group=group)


def finite_time(size: int) -> Topology:
    """At most one partner a round, and the exact mean after one period, for any `size`.

    In the manner of the Base-2 graph (Takezawa et al. 2023). A period has log2(size) rounds for a
    power of two, else 1 + 2 floor(log2(odd)) + log2(size / odd), `odd` the largest odd divisor.
    """
    check_size(size)
    odd = size // (size & -size)
    copies = range(0, size, odd)
    rounds = [
        [(base + i, base + j, w) for base in copies for i, j, w in pairs]
        for pairs in _odd_rounds(odd)
    ]
    across = _halvings(list(copies))
    rounds += [[(i + r, j + r, w) for i, j, w in pairs for r in range(odd)] for pairs in across]
    tables = tuple(_matched(size, pairs) for pairs in rounds or [[]])
    return Topology("finite-time", size, False, tables)


NAMED: dict[str, Callable[[int, int], Topology]] = {
    "ring": lambda size, seed: ring(size),
    "random-ring": random_ring,
    "torus": lambda size, seed: torus(size),
    "exponential": lambda size, seed: exponential(size),
    "one-peer-exponential": lambda size, seed: one_peer_exponential(size),
    "bipartite-exponential": lambda size, seed: bipartite_exponential(size),
    "complete": lambda size, seed: complete(size),
    "finite-time": lambda size, seed: finite_time(size),
}
"""The word of each topology, and how it is made of (size, seed)."""


def named(name: str, size: int, seed: int = 0) -> Topology:
    """The topology of that word; DistributedError on another word, with the nearest right one.

    >>> named("ring", 4).neighbours(0)
    (1, 3)
    """
    if name not in NAMED:
        nearest = difflib.get_close_matches(name, NAMED, n=1, cutoff=0.0)[0]
        raise DistributedError(f'there is no topology "{name}"; did you mean "{nearest}"?')
    return NAMED[name](size, seed)


def _log2_up(size: int) -> int:
    return max(size - 1, 0).bit_length()


def _lattice(rows: int, columns: int, steps: Iterable[tuple[int, int]]) -> Round:
    """Each sends to those `steps` (down, right) further on a torus of ranks in reading order."""
    size = rows * columns
    check_size(size)
    distinct = sorted({(0, 0)} | {(down % rows, right % columns) for down, right in steps})
    ranks = np.arange(size).reshape(rows, columns)
    senders_KN = np.stack([np.roll(ranks, step, axis=(0, 1)).ravel() for step in distinct])
    entries = senders_KN.size
    receivers = np.tile(np.arange(size), len(distinct))
    return Round(size, receivers, senders_KN.ravel(), np.full(entries, 1 / len(distinct)))


def _matched(size: int, pairs: Iterable[Pair]) -> Round:
    """Each pair averages by its weight, who is in no pair keeps what it has."""
    kept_N = np.ones(size)
    a, b, w = np.array(list(pairs), float).reshape(-1, 3).T
    left, right = a.astype(np.int64), b.astype(np.int64)
    kept_N[left] -= w
    kept_N[right] -= w
    everybody = np.arange(size)
    receivers = np.concatenate([everybody, left, right])
    senders = np.concatenate([everybody, right, left])
    return Round(size, receivers, senders, np.concatenate([kept_N, w, w]))


def _halvings(ranks: list[int]) -> list[list[Pair]]:
    """A hypercube over 2^p ranks: after its p rounds each has the mean of all."""
    bits = [1 << k for k in range(_log2_up(len(ranks)))]
    return [
        [(ranks[i], ranks[i | bit], 0.5) for i in range(len(ranks)) if not i & bit] for bit in bits
    ]


def _odd_rounds(size: int) -> list[list[Pair]]:
    """Rounds after which each of `size` learners, an odd number, has the exact mean of all.

    The learners are cut into blocks of 2^p, p falling. First every block comes to its own mean.
    Then the first block, of share s of what is not yet done, meets the rest, one to one, each
    giving the other weight s: the rest's mean is now the mean of all, hence the block's too, and
    the block halves its way to it while the rest does the same among itself.
    """
    exponents = [k for k in reversed(range(size.bit_length())) if size >> k & 1]
    top, start = exponents[0], 0
    rounds: list[list[Pair]] = [[] for _ in range(2 * top + 1 if size > 1 else 0)]
    for level, exponent in enumerate(exponents):
        block = list(range(start, start + (1 << exponent)))
        start += len(block)
        rest = range(start, size)
        for turn, pairs in enumerate(_halvings(block)):
            rounds[turn] += pairs
            rounds[top + 1 + level + turn] += pairs
        if rest:
            share = len(block) / (len(block) + len(rest))
            rounds[top + level] += [(i, j, share) for i, j in zip(block, rest, strict=False)]
    return rounds
