"""Topologies: the laws of a mixing matrix, and the graphs' own promises."""

from math import gcd

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from orthotrace.distributed.errors import DistributedError
from orthotrace.distributed.graphs import (
    NAMED,
    bipartite_exponential,
    complete,
    finite_time,
    named,
    one_peer_exponential,
    random_ring,
    ring,
    super_learners,
    torus,
)
from orthotrace.distributed.topology import Matrix, Round, Topology


def made(name: str, size: int, seed: int = 0) -> Topology:
    even = name == "bipartite-exponential" and size % 2 and size > 1
    return named(name, size + bool(even), seed)


def grouped(groups: int, group: int, over: int, name: str) -> Topology:
    """Super-learners of `group`, the last with `over` learners fewer."""
    between = made(name, groups)
    return super_learners(between.size * group - over % group, group, between)


plain = st.builds(made, st.sampled_from(sorted(NAMED)), st.integers(1, 33), st.integers(0, 9))
of_groups = st.builds(
    grouped,
    st.integers(1, 9),
    st.integers(1, 4),
    st.integers(0, 3),
    st.sampled_from(["ring", "random-ring", "complete", "finite-time"]),
) | st.builds(grouped, st.integers(1, 9), st.integers(1, 4), st.just(0), st.just("exponential"))
topologies = plain | of_groups


def of_one_period(topology: Topology) -> list[Matrix]:
    return [topology.weights(k) for k in range(topology.period or 4)]


def product(topology: Topology) -> Matrix:
    whole = np.eye(topology.size)
    for weights in of_one_period(topology):
        whole = weights @ whole
    return whole


@given(topologies)
def test_rounds_keep_the_mean_and_never_push_apart(topology: Topology) -> None:
    for weights in of_one_period(topology):
        assert (weights >= 0).all()
        assert np.abs(weights.sum(axis=0) - 1).max() < 1e-9
        assert np.abs(weights.sum(axis=1) - 1).max() < 1e-9
        assert topology.directed or np.abs(weights - weights.T).max() < 1e-12


@given(topologies)
def test_rounds_come_again_after_a_period(topology: Topology) -> None:
    if topology.period is not None:
        assert np.array_equal(topology.weights(1), topology.weights(1 + topology.period))


@example(random_ring(12, 0), 3)
@given(topologies, st.integers(0, 5))
def test_rows_and_edges_are_those_of_the_matrix(topology: Topology, round: int) -> None:
    weights = topology.weights(round)
    for rank in range(topology.size):
        senders, row = topology.row(rank, round)
        assert np.array_equal(senders, np.flatnonzero(weights[rank]))
        assert np.array_equal(row, weights[rank, senders])
    apart = weights * (1 - np.eye(topology.size))
    assert topology.edges(round) == tuple((int(s), int(r)) for s, r in np.argwhere(apart.T))


@given(topologies)
def test_neighbours_are_all_that_a_learner_may_ever_meet(topology: Topology) -> None:
    met = {edge for k in range(topology.period or 4) for edge in topology.edges(k)}
    neighbours = [set(topology.neighbours(rank)) for rank in range(topology.size)]
    assert all(b in neighbours[a] and a in neighbours[b] for a, b in met)
    assert all(rank not in neighbours[rank] for rank in range(topology.size))
    if topology.period is not None:
        assert sum(map(len, neighbours)) == len(met | {(b, a) for a, b in met})


@given(topologies)
def test_everybody_is_reached(topology: Topology) -> None:
    reached = {0}
    while new := {n for rank in reached for n in topology.neighbours(rank)} - reached:
        reached |= new
    assert len(reached) == topology.size


@pytest.mark.parametrize("name", NAMED)
def test_one_learner_is_its_own_graph_and_two_are_neighbours(name: str) -> None:
    assert np.array_equal(named(name, 1).weights(3), [[1.0]])
    assert named(name, 1).neighbours(0) == ()
    assert np.allclose(named(name, 2).weights(3), 0.5)
    assert named(name, 2).neighbours(1) == (0,)


def test_the_ring_of_five_by_hand() -> None:
    third = 1 / 3
    assert np.allclose(ring(5).weights(0)[0], [third, third, 0, 0, third])
    assert ring(5).edges(0)[:3] == ((0, 1), (0, 4), (1, 0))


def test_a_learner_sends_forward_on_the_one_peer_graph() -> None:
    graph = one_peer_exponential(8)
    assert [graph.edges(k)[0] for k in range(4)] == [(0, 1), (0, 2), (0, 4), (0, 1)]
    assert graph.period == 3


@pytest.mark.parametrize("size", [2, 4, 8, 32])
def test_one_peer_comes_to_the_exact_mean_of_a_power_of_two(size: int) -> None:
    assert np.allclose(product(one_peer_exponential(size)), 1 / size, atol=1e-15)
    assert one_peer_exponential(size).period == size.bit_length() - 1


@pytest.mark.parametrize("size", [*range(1, 41), 63, 64, 96, 127])
def test_finite_time_comes_to_the_exact_mean_of_any_number(size: int) -> None:
    graph = finite_time(size)
    odd = size // gcd(size, 1 << 20)
    twos = (size // odd).bit_length() - 1
    rounds = twos + (1 + 2 * (odd.bit_length() - 1) if odd > 1 else 0)
    assert np.abs(product(graph) - 1 / size).max() < 1e-14
    assert graph.period == max(1, rounds)
    for k in range(rounds):
        assert max((graph.weights(k) > 0).sum(axis=1)) <= 2  # itself and one partner


@pytest.mark.parametrize("size", [2, 4, 8, 16, 30, 64, 130])
def test_no_edge_stays_inside_a_part_of_the_bipartite_graph(size: int) -> None:
    graph = bipartite_exponential(size)
    assert all((a + b) % 2 for a, b in graph.edges(0))
    hops = {1, *(1 + 2**k for k in range(1, size) if 1 + 2**k < size)}
    expected = {hop % size for hop in hops} | {-hop % size for hop in hops}
    assert set(graph.neighbours(0)) == expected


def test_an_odd_number_is_refused_for_two_parts_with_what_to_take_instead() -> None:
    with pytest.raises(DistributedError, match='even number of learners, got 15; "exponential"'):
        bipartite_exponential(15)


@pytest.mark.parametrize(("size", "degree"), [(16, 4), (12, 4), (7, 2), (6, 3), (4, 2)])
def test_a_torus_is_as_square_as_it_can_be(size: int, degree: int) -> None:
    assert {len(torus(size).neighbours(rank)) for rank in range(size)} == {degree}


def test_a_random_ring_is_the_same_for_all_and_new_each_round() -> None:
    here, there = random_ring(12, 5), random_ring(12, 5)
    assert all(here.edges(k) == there.edges(k) for k in range(5))
    assert len({here.edges(k) for k in range(20)}) == 20
    assert here.edges(0) != random_ring(12, 6).edges(0)
    assert here.period is None
    assert sum(here.weights(k) for k in range(50))[0].min() > 0  # it meets everybody in time


@settings(max_examples=30)
@given(st.integers(3, 12), st.integers(0, 99), st.integers(0, 99))
def test_a_random_ring_is_a_ring(size: int, seed: int, round: int) -> None:
    edges = set(random_ring(size, seed).edges(round))
    path = [0, min(b for a, b in edges if a == 0)]
    while len(path) < size:
        (further,) = {b for a, b in edges if a == path[-1]} - {path[-2]}
        path.append(further)
    assert sorted(path) == list(range(size)) and (path[-1], 0) in edges


def test_equal_super_learners_are_the_block_matrix() -> None:
    between = ring(4)
    whole = super_learners(12, 3, between)
    assert np.allclose(whole.weights(0), np.kron(between.weights(0), np.full((3, 3), 1 / 3)))
    assert whole.neighbours(0) == (1, 2, 3, 4, 5, 9, 10, 11)
    assert not np.allclose(whole.weights(0), super_learners(12, 4, ring(3)).weights(0))


def test_a_smaller_last_group_has_the_smaller_way_to_split() -> None:
    whole = super_learners(5, 2, complete(3))  # groups of 2, 2 and 1
    sixth, third = 1 / 6, 1 / 3
    assert np.allclose(whole.weights(0)[0], [third - sixth / 2] * 2 + [sixth] * 3)
    assert np.allclose(whole.weights(0)[4], [sixth] * 4 + [third])


def test_super_learners_refuse_what_does_not_fit() -> None:
    with pytest.raises(DistributedError, match="wants groups of one size.* leave 1 over"):
        super_learners(7, 2, named("exponential", 4))
    with pytest.raises(ValueError, match="want a plain topology of 4 groups, got 3"):
        super_learners(8, 2, ring(3))
    with pytest.raises(ValueError, match="plain topology"):
        super_learners(4, 1, super_learners(4, 2, ring(2)))


def test_an_unknown_word_is_answered_with_the_nearest() -> None:
    with pytest.raises(DistributedError, match='no topology "rign"; did you mean "ring"'):
        named("rign", 8)
    with pytest.raises(DistributedError, match='did you mean "bipartite-exponential"'):
        named("bipartite-exp", 8)


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("size", [0, -3])
def test_no_learners_are_refused(name: str, size: int) -> None:
    with pytest.raises(DistributedError, match=f"at least one learner, got {size}"):
        named(name, size)


@pytest.mark.parametrize("name", sorted(set(NAMED) - {"bipartite-exponential"}))
def test_a_thousand_and_twenty_five_learners_are_lean(name: str) -> None:
    graph = named(name, 1025)
    entries = sum(len(each.weights_E) for each in graph.rounds)
    assert entries <= 1025 * (1025 if name == "complete" else 45)
    senders, weights = graph.row(1024, 1)
    assert weights.sum() == pytest.approx(1) and 1024 in senders


def test_learners_of_one_topology_have_one_digest() -> None:
    graphs = [named(name, size, seed) for name in NAMED for size in (4, 8) for seed in (0, 1)]
    graphs += [super_learners(8, 2, ring(4)), super_learners(7, 2, ring(4))]
    seeds_matter = len(NAMED) + 1
    assert len({graph.digest() for graph in graphs}) == 2 * seeds_matter + 2
    assert ring(8).digest() == ring(8).digest()


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ([(0, 0, 1.0), (1, 1, 0.5)], "row 1 of a mixing matrix sums to 0.5"),
        ([(0, 1, 1.0), (1, 1, 1.0)], "column 0 of a mixing matrix sums to 0"),
        ([(0, 0, 0.5), (0, 0, 0.5), (1, 1, 1.0)], "names a pair twice"),
        ([(0, 0, 2.0), (0, 1, -1.0), (1, 0, -1.0), (1, 1, 2.0)], "above 0, got -1"),
        ([(0, 0, 1.0), (1, 2, 1.0)], "names another learner"),
    ],
)
def test_a_matrix_that_moves_the_mean_is_refused(
    entries: list[tuple[int, int, float]], said: str
) -> None:
    receivers, senders, weights = np.array(entries).T
    with pytest.raises(ValueError, match=said):
        Round(2, receivers.astype(int), senders.astype(int), weights)


def test_a_topology_is_what_it_says() -> None:
    forward = one_peer_exponential(3).rounds
    with pytest.raises(ValueError, match="round 0 of mine is directed"):
        Topology("mine", 3, False, forward)
    ranks, there_and_back = np.arange(3), np.array([0.5] * 3 + [0.3] * 3 + [0.2] * 3)
    senders = np.concatenate([ranks, (ranks + 1) % 3, (ranks + 2) % 3])
    uneven = Round(3, np.tile(ranks, 3), senders, there_and_back)
    with pytest.raises(ValueError, match="round 0 of mine is directed"):
        Topology("mine", 3, False, (uneven,))
    with pytest.raises(ValueError, match="is of 3, wanted 4"):
        Topology("mine", 4, True, forward)
    with pytest.raises(ValueError, match=r"in \[0, 3\), got 3"):
        ring(3).row(3, 0)
    with pytest.raises(ValueError, match="read-only"):
        ring(3).rounds[0].weights_E[0] = 2


@settings(max_examples=30)
@given(st.integers(2, 12))
def test_a_learner_and_its_neighbours_weigh_alike(size: int) -> None:
    for name in sorted(set(NAMED) - {"finite-time"}):
        for weights in of_one_period(made(name, size)):
            assert len(set(weights[weights > 0])) == 1
    assert len(complete(size).edges(0)) == size * (size - 1)
