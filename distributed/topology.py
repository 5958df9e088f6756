"""Who averages with whom, as data: for each round a doubly stochastic mixing matrix.

Row i of a mixing matrix has the weights that learner i gives to its own vector and to what its
senders send; rows and columns sum to 1, so a round keeps the mean (Lian et al. 2017, D-PSGD).
N is the number of learners, M that of super-learners, E that of a matrix's entries above zero.
"""

import hashlib
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from .errors import DistributedError

Matrix = NDArray[np.float64]
Indices = NDArray[np.int64]

ROUNDING = 1e-9
"""How far from 1 a row or column may sum: a thousand additions in float64, and room."""


def check_size(size: int) -> None:
    """DistributedError unless there is at least one learner."""
    if size < 1:
        raise DistributedError(f"a topology has at least one learner, got {size}")


@dataclass(frozen=True, slots=True, eq=False)
class Round:
    """One mixing matrix by its entries above zero, its diagonal included, sorted by receiver.

    ValueError if a pair stands twice, or if rows or columns do not sum to 1.
    """

    size: int
    """N: the matrix is N x N."""

    receivers_E: Indices
    """Row of each entry, in [0, N)."""

    senders_E: Indices
    """Column of each entry, in [0, N)."""

    weights_E: Matrix
    """The entries, in (0, 1]."""

    def __post_init__(self) -> None:
        check_size(self.size)
        receivers, senders, weights = self.receivers_E, self.senders_E, self.weights_E
        if not len(receivers) == len(senders) == len(weights):
            raise ValueError("a round has one receiver, sender and weight for each entry")
        for ranks in (receivers, senders):
            if not ((0 <= ranks) & (ranks < self.size)).all():
                raise ValueError(f"a round of {self.size} learners names another learner")
        order = np.lexsort((senders, receivers))
        for name in ("receivers_E", "senders_E", "weights_E"):
            sorted_E = getattr(self, name)[order]
            sorted_E.setflags(write=False)
            object.__setattr__(self, name, sorted_E)
        if not (np.diff(self._keys()) > 0).all():
            raise ValueError("a round names a pair twice")
        self._check_sums()

    def _check_sums(self) -> None:
        if not (self.weights_E > 0).all():
            raise ValueError(f"a weight is above 0, got {self.weights_E.min()}")
        for word, ranks in (("row", self.receivers_E), ("column", self.senders_E)):
            sums_N = np.bincount(ranks, self.weights_E, self.size)
            if np.abs(sums_N - 1).max() > ROUNDING:
                worst = int(np.abs(sums_N - 1).argmax())
                raise ValueError(f"{word} {worst} of a mixing matrix sums to {sums_N[worst]}")

    def _keys(self) -> Indices:
        return self.receivers_E * self.size + self.senders_E

    def symmetric(self) -> bool:
        """Whether each weight is the same both ways."""
        mirrored = np.lexsort((self.receivers_E, self.senders_E))
        keys_E = self.senders_E * self.size + self.receivers_E
        return bool(
            np.array_equal(self._keys(), keys_E[mirrored])
            and np.allclose(self.weights_E, self.weights_E[mirrored], rtol=0, atol=ROUNDING)
        )

    def matrix(self) -> Matrix:
        """The whole matrix, shape (N, N)."""
        weights_NN = np.zeros((self.size, self.size))
        weights_NN[self.receivers_E, self.senders_E] = self.weights_E
        return weights_NN

    def row(self, rank: int) -> tuple[Indices, Matrix]:
        """The senders that `rank` hears, itself among them, in ascending order; their weights."""
        first, last = np.searchsorted(self.receivers_E, (rank, rank + 1))
        return self.senders_E[first:last], self.weights_E[first:last]


@dataclass(frozen=True, slots=True, eq=False)
class Topology:
    """A graph of learners, one mixing matrix for each round 0, 1, ...

    The rounds come again and again in their order. With a seed, each round's learners are renamed
    by a permutation drawn from (seed, round): everybody draws the same, and no message is needed.
    ValueError if an undirected graph has a matrix that is not symmetric.
    """

    name: str
    """A word for it, as `graphs.named` takes where it has one."""

    size: int
    """N, the number of learners."""

    directed: bool
    """Whether somebody may send to one who sends nothing back in that round."""

    rounds: tuple[Round, ...]
    """What comes in turn, each M x M."""

    seed: int | None = None
    """What the permutation of each round is drawn from; None leaves the names as they are."""

    group: int = 1
    """Learners in a super-learner, M = ceil(N / group); the last may have fewer. They share one
    model; the matrices of `rounds` stand between super-learners."""

    def __post_init__(self) -> None:
        check_size(self.size)
        if self.group < 1 or not self.rounds:
            raise ValueError("a topology has at least one round, and one learner in a group")
        for number, each in enumerate(self.rounds):
            if each.size != self.groups:
                raise ValueError(
                    f"round {number} of {self.name} is of {each.size}, wanted {self.groups}"
                )
            if not self.directed and not each.symmetric():
                raise ValueError(f"round {number} of {self.name} is directed, and it says it isn't")

    @property
    def groups(self) -> int:
        """M, the number of super-learners: N where each learner stands for itself."""
        return -(-self.size // self.group)

    @property
    def period(self) -> int | None:
        """Rounds after which all repeats: 1 is a fixed graph, None one drawn anew each round."""
        return len(self.rounds) if self.seed is None else None

    def weights(self, round: int) -> Matrix:
        """The mixing matrix of a round, shape (N, N), made for the caller alone."""
        weights_MM = self.rounds[round % len(self.rounds)].matrix()
        if self.seed is not None:
            names = _renamed(self.groups, self.seed, round)
            drawn_MM = np.empty_like(weights_MM)
            drawn_MM[np.ix_(names, names)] = weights_MM
            weights_MM = drawn_MM
        return weights_MM if self.group == 1 else self._spread(weights_MM)

    def row(self, rank: int, round: int) -> tuple[Indices, Matrix]:
        """Row `rank` of `weights(round)` without its zeros: senders, itself among them, ascending.

        Costs what the learner's degree is, not N squared, unless learners stand in groups.
        """
        self._check_rank(rank)
        table = self.rounds[round % len(self.rounds)]
        if self.group > 1:
            weights_N = self.weights(round)[rank]
            senders = np.flatnonzero(weights_N)
            return senders, weights_N[senders]
        if self.seed is None:
            return table.row(rank)
        names = _renamed(self.size, self.seed, round)
        senders, weights = table.row(int(np.flatnonzero(names == rank)[0]))
        order = np.argsort(names[senders])
        return names[senders][order], weights[order]

    def edges(self, round: int) -> tuple[tuple[int, int], ...]:
        """The messages of a round, (sender, receiver) in ascending order, none to oneself.

        An undirected edge is two messages, one each way.
        """
        pairs_E2 = np.argwhere(self.weights(round).T > 0)
        return tuple((int(a), int(b)) for a, b in pairs_E2 if a != b)

    def contacts(self) -> NDArray[np.bool_]:
        """Who may ever exchange with whom over all rounds: symmetric, shape (N, N), read-only."""
        return _contacts(self)

    def neighbours(self, rank: int) -> tuple[int, ...]:
        """All whom `rank` may ever talk to, either way, over all rounds; ascending, not itself."""
        self._check_rank(rank)
        return tuple(int(other) for other in np.flatnonzero(self.contacts()[rank]))

    def digest(self) -> str:
        """16 hexadecimal digits, the same where name, size, seed and weights are the same.

        Learners hold it against each other's before they exchange anything.
        """
        told = (self.name, self.size, self.directed, self.seed, self.group, len(self.rounds))
        sums = hashlib.blake2b(repr(told).encode(), digest_size=8)
        for each in self.rounds:
            for array_E in (each.receivers_E, each.senders_E, each.weights_E):
                sums.update(np.ascontiguousarray(array_E).tobytes())
        return sums.hexdigest()

    def _check_rank(self, rank: int) -> None:
        if not 0 <= rank < self.size:
            raise ValueError(f"a learner of {self.name} is in [0, {self.size}), got {rank}")

    def _members(self) -> Indices:
        """The super-learner of each learner, shape (N,)."""
        return np.arange(self.size) // self.group

    def _spread(self, weights_MM: Matrix) -> Matrix:
        """Learners' weights from super-learners': a group's share is split evenly in it.

        Between groups of two sizes each pair has the smaller of both ways to split, and what is
        over stays inside, so that columns still sum to 1.
        """
        counts_M = np.bincount(self._members())
        split_MM = weights_MM / np.maximum.outer(counts_M, counts_M)
        np.fill_diagonal(split_MM, 0)
        np.fill_diagonal(split_MM, (1 - split_MM @ counts_M) / counts_M)
        members = self._members()
        return split_MM[np.ix_(members, members)]


@lru_cache(maxsize=32)  # each of N learners asks for the same few rounds
def _renamed(size: int, seed: int, round: int) -> Indices:
    return np.random.default_rng((seed, round)).permutation(size)


@lru_cache(maxsize=8)  # each of N learners asks once for its own row
def _contacts(topology: Topology) -> NDArray[np.bool_]:
    met_MM = np.zeros((topology.groups, topology.groups), bool)
    for each in topology.rounds:
        met_MM[each.receivers_E, each.senders_E] = True
    met_MM |= met_MM.T
    apart_MM = ~np.eye(topology.groups, dtype=bool)
    if topology.seed is not None and (met_MM & apart_MM).any():
        met_MM[:] = True  # some permutation puts any two on an edge
    np.fill_diagonal(met_MM, True)
    members = np.arange(topology.size) // topology.group
    met_NN = met_MM[np.ix_(members, members)]
    np.fill_diagonal(met_NN, False)
    met_NN.setflags(write=False)
    return met_NN
