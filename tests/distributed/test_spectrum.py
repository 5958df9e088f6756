"""How fast a topology mixes: against closed forms, published tables and drawn exchanges."""

from collections.abc import Callable
from math import cos, pi

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from orthotrace.distributed.graphs import NAMED, named, random_ring, ring, super_learners
from orthotrace.distributed.spectrum import (
    all_reduce_bytes,
    bytes_per_step,
    exchanges_to_cut,
    gap,
    pair_factor,
    round_factor,
)
from orthotrace.distributed.topology import Round, Topology

SIZES = (8, 16, 32, 64, 128)


def fixed(name: str, weights: np.ndarray) -> Topology:
    receivers, senders = np.nonzero(weights)
    table = Round(len(weights), receivers, senders, weights[receivers, senders])
    return Topology(name, len(weights), not table.symmetric(), (table,))


def two_parts(size: int) -> Topology:
    """Every even rank beside every odd one."""
    across = (np.add.outer(np.arange(size), np.arange(size)) % 2).astype(float)
    return fixed("two parts", (across + np.eye(size)) / (1 + size / 2))


@pytest.mark.parametrize("size", [3, 5, 8, 16, 33, 64])
def test_the_ring_in_closed_form(size: int) -> None:
    assert 1 - gap(ring(size)) == pytest.approx(1 / 3 + 2 / 3 * cos(2 * pi / size), abs=1e-12)


@pytest.mark.parametrize(
    ("name", "gaps"),
    [
        ("ring", (0.195, 0.0508, 0.0032)),
        ("torus", (None, 0.400, 0.117)),
        ("exponential", (0.500, 0.400, 0.286)),
        ("one-peer-exponential", (1.0, 1.0, 1.0)),
        ("random-ring", (0.762, 0.711, 0.677)),
        ("complete", (1.0, 1.0, 1.0)),
        ("finite-time", (1.0, 1.0, 1.0)),
    ],
)
def test_known_gaps_of_8_16_and_64_learners(name: str, gaps: tuple[float | None, ...]) -> None:
    for size, known in zip((8, 16, 64), gaps, strict=True):
        assert known is None or abs(gap(named(name, size)) - known) <= 0.0005


@settings(max_examples=30)
@given(st.sampled_from(sorted(set(NAMED) - {"bipartite-exponential"})), st.integers(1, 24))
def test_every_topology_mixes(name: str, size: int) -> None:
    graph = named(name, size)
    assert 0 <= round_factor(graph) < 1
    assert 0 <= pair_factor(graph) < 1
    assert 0 < gap(graph) <= 1


def test_a_period_is_taken_by_the_round() -> None:
    graph = named("one-peer-exponential", 5)
    whole = np.linalg.multi_dot([graph.weights(k) for k in (2, 1, 0)])
    second = np.linalg.svd(whole, compute_uv=False)[1]
    assert graph.period == 3
    assert gap(graph) == pytest.approx(1 - second ** (1 / 3), abs=1e-12)


def test_no_round_does_worse_than_its_factor() -> None:
    vector = np.random.default_rng(0).normal(size=12)
    vector -= vector.mean()
    for name in ("ring", "torus", "exponential", "bipartite-exponential"):
        mixed = named(name, 12).weights(0) @ vector
        assert mixed @ mixed <= round_factor(named(name, 12)) * (vector @ vector)


@pytest.mark.parametrize("size", [4, 7, 16])
def test_the_random_ring_in_closed_form_and_as_drawn(size: int) -> None:
    graph, rounds = random_ring(size, 3), 2000
    assert round_factor(graph) == pytest.approx(1 / 3 - 2 / 3 / (size - 1))
    vector = np.random.default_rng(1).normal(size=size)
    vector -= vector.mean()
    left = [float(np.sum((graph.weights(k) @ vector) ** 2)) for k in range(rounds)]
    error = np.std(left) / rounds**0.5  # 0 for four: each of their rings takes the same
    assert abs(np.mean(left) - round_factor(graph) * (vector @ vector)) < 4 * error + 1e-12


@pytest.mark.parametrize(
    ("graph", "factors"),
    [
        (ring, (0.861, 0.963, 0.990, 0.998, 0.999)),
        (lambda n: named("bipartite-exponential", n), (0.586, 0.597, 0.710, 0.738, 0.778)),
        (two_parts, (0.586, 0.597, 0.602, 0.604, 0.605)),
    ],
    ids=["ring", "bipartite-exponential", "complete bipartite"],
)
def test_known_factors_of_half_as_many_exchanges_as_learners(
    graph: Callable[[int], Topology], factors: tuple[float, ...]
) -> None:
    for size, known in zip(SIZES, factors, strict=True):
        assert abs(pair_factor(graph(size)) ** (size / 2) - known) <= 0.0006


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("ring", (121, 1913, 30581)),
        ("bipartite-exponential", (8.9, 15.2, 21.3)),
        ("complete", (8.3, 9.0, 9.2)),
    ],
)
def test_known_exchanges_to_cut_the_distance_a_hundredfold(
    name: str, known: tuple[float, ...]
) -> None:
    for size, wanted in zip((16, 64, 256), known, strict=True):
        assert abs(exchanges_to_cut(named(name, size)) - wanted) <= (
            0.5 if name == "ring" else 0.05
        )


def test_the_complete_graph_by_hand() -> None:
    assert pair_factor(named("complete", 9)) == pytest.approx(1 - 1 / 8)


def test_a_star_draws_its_middle_more_often() -> None:
    """Degrees differ, so E[W] is built from draws, not from edges: by hand for three in a row."""
    half, sides = 0.5, np.array([[0.5, 0.5, 0], [0.5, 0, 0.5], [0, 0.5, 0.5]])
    star = fixed("star", sides)
    drawn = (1 + half) / 3  # an end draws the middle always, the middle an end half the time
    assert pair_factor(star) == pytest.approx(1 - drawn / 2)


@pytest.mark.parametrize("name", ["ring", "bipartite-exponential", "complete"])
def test_drawn_exchanges_shrink_the_distance_as_computed(name: str) -> None:
    """From the slowest direction, where the bound is met: 3,000 single exchanges."""
    graph, rng = named(name, 8), np.random.default_rng(2)
    contacts = graph.contacts()
    laplacian = np.diag(contacts.sum(axis=1)) - contacts.astype(float)
    vector = np.linalg.eigh(laplacian)[1][:, 1]
    left = []
    for _ in range(3000):
        mixed, i = vector.copy(), int(rng.integers(8))
        j = rng.choice(graph.neighbours(i))
        mixed[[i, j]] = mixed[[i, j]].mean()
        left.append(float(mixed @ mixed))
    assert abs(np.mean(left) - pair_factor(graph)) < 4 * np.std(left) / 3000**0.5


def test_learners_that_never_meet_never_agree() -> None:
    apart = fixed("apart", np.kron(np.eye(2), np.full((2, 2), 0.5)))
    assert pair_factor(apart) == pytest.approx(1) and exchanges_to_cut(apart) == float("inf")
    assert gap(apart) == pytest.approx(0)


def test_one_and_two_learners_need_next_to_nothing() -> None:
    assert exchanges_to_cut(ring(1)) == 0 and gap(ring(1)) == 1 and pair_factor(ring(1)) == 0
    assert exchanges_to_cut(ring(2)) == 1 and pair_factor(ring(2)) == 0
    with pytest.raises(ValueError, match="more than 1, got 1"):
        exchanges_to_cut(ring(4), 1)


def test_super_learners_mix_as_their_groups_do() -> None:
    for between in (ring(6), random_ring(6, 1), named("exponential", 6)):
        whole = super_learners(18, 3, between)
        assert round_factor(whole) == pytest.approx(round_factor(between), abs=1e-12)
        assert bytes_per_step(whole, 12e6) == pytest.approx(bytes_per_step(between, 12e6) / 3)
    with pytest.raises(ValueError, match="two sizes"):
        round_factor(super_learners(17, 3, random_ring(6, 1)))


@pytest.mark.parametrize(
    ("name", "models"),
    [
        ("ring", 2),
        ("random-ring", 2),
        ("torus", 4),
        ("exponential", 4),
        ("one-peer-exponential", 1),
        ("finite-time", 1),
        ("complete", 15),
    ],
)
def test_bytes_of_sixteen_learners(name: str, models: int) -> None:
    assert bytes_per_step(named(name, 16), 124e6) == models * 124e6


def test_an_all_reduce_sends_nearly_two_models() -> None:
    assert all_reduce_bytes(16, 100) == 187.5
    assert all_reduce_bytes(1, 100) == 0
