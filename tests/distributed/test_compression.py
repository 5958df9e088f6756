"""Compressing and averaging commute, and what is not sent is not forgotten."""

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from orthotrace.distributed.compression import (
    AdaComp,
    Indices,
    Part,
    ScaleCom,
    Sparse,
    mean_of,
    parts_of,
)
from orthotrace.distributed.errors import DistributedError
from orthotrace.distributed.layout import Vector
from torch import nn


class Table:
    """Learners around one table: what they hand in is kept, in the order of ranks."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.rows: dict[int, Vector | Indices] = {}
        self.barrier = threading.Barrier(size)
        self.broadcasts: list[Indices] = []
        self.means: list[list[Vector]] = []

    def all_of(self, rank: int, row: Vector | Indices) -> list[Vector | Indices]:
        self.rows[rank] = row
        self.barrier.wait()
        rows = [self.rows[each] for each in range(self.size)]
        self.barrier.wait()
        return rows


class Seat:
    """One learner's place at the table."""

    def __init__(self, table: Table, rank: int) -> None:
        self.table, self.rank, self.size = table, rank, table.size

    def mean(self, values: Vector) -> Vector:
        rows = self.table.all_of(self.rank, values)
        if self.rank == 0:
            self.table.means.append(rows)
        return np.mean(rows, axis=0, dtype=values.dtype)

    def broadcast(self, indices: Indices, leader: int) -> Indices:
        rows = self.table.all_of(self.rank, indices)
        if self.rank == 0:
            self.table.broadcasts.append(rows[leader])
        return rows[leader]


def reduce_all(compressors: list[ScaleCom], gradients: Vector) -> tuple[list[Vector], Table]:
    """Every learner's result of one step, and what went over the table."""
    table = Table(len(compressors))
    told: dict[int, Vector] = {}

    def run(rank: int) -> None:
        try:
            told[rank] = compressors[rank].reduce(gradients[rank], Seat(table, rank))
        except Exception:  # whatever it is, it is raised again
            table.barrier.abort()  # or the others wait for ever
            raise

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(table.size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [told[rank] for rank in range(table.size)], table


PARTS = (Part(0, 4, None), Part(4, 24, 5), Part(24, 27, None), Part(27, 67, 10))


def gradients(learners: int, seed: int) -> Vector:
    return np.random.default_rng(seed).normal(size=(learners, 67))


@given(st.integers(1, 4), st.integers(0, 2**31), st.sampled_from([0.1, 0.5, 1.0]))
def test_the_mean_of_what_is_kept_is_what_is_kept_of_the_mean(
    learners: int, seed: int, beta: float
) -> None:
    compressors = [ScaleCom(PARTS, 0.1, beta) for _ in range(learners)]
    for step in range(learners + 1):
        drawn = gradients(learners, seed + step)
        pressed = np.array([c.state_dict()["memory"] for c in compressors]) + drawn
        told, table = reduce_all(compressors, drawn)
        assert all(np.array_equal(told[0], each) for each in told)
        (indices,) = table.broadcasts
        places = np.concatenate([np.arange(4), np.arange(24, 27), indices])
        wanted = np.zeros(67)
        wanted[places] = pressed.mean(axis=0)[places]
        assert np.array_equal(told[0], wanted)
        leader = pressed[step % learners]
        for part, kept in ((PARTS[1], 2), (PARTS[3], 4)):
            inside = indices[(indices >= part.start) & (indices < part.stop)]
            size = np.abs(leader[part.start : part.stop])
            largest = part.start + np.argsort(size)[-kept:]
            assert sorted(inside) == sorted(largest)


@pytest.mark.parametrize("beta", [0.1, 1.0])
def test_what_is_remembered(beta: float) -> None:
    """The paper's line, m = (1 - beta) m + beta (p - kept); beta = 1 loses nothing."""
    compressors = [ScaleCom(PARTS, 0.1, beta) for _ in range(3)]
    memory, given_in, came_out = np.zeros((3, 67)), np.zeros(67), np.zeros(67)
    for step in range(20):
        drawn = gradients(3, step)
        (told, *_), table = reduce_all(compressors, drawn)
        pressed = memory + drawn
        kept = np.zeros_like(pressed)
        places = np.concatenate([np.arange(4), np.arange(24, 27), table.broadcasts[0]])
        kept[:, places] = pressed[:, places]
        memory = (1 - beta) * memory + beta * (pressed - kept)
        given_in, came_out = given_in + drawn.mean(axis=0), came_out + told
        ours = np.array([c.state_dict()["memory"] for c in compressors])
        assert np.allclose(ours, memory, rtol=0, atol=1e-12)
    lost = np.abs(given_in - came_out - memory.mean(axis=0)).max()
    assert lost < 1e-12 if beta == 1 else lost > 0.1


def test_two_learners_by_hand() -> None:
    """Parts of four, one entry of each step sent, beta a half."""
    parts = (Part(0, 4, 4),)
    compressors = [ScaleCom(parts, 0.25, 0.5) for _ in range(2)]
    drawn = np.array([[4.0, 1, 0, 0], [2.0, 8, 0, 0]])
    first, _ = reduce_all(compressors, drawn)
    assert first[0].tolist() == [3, 0, 0, 0]  # the first learner's 4 leads
    second, _ = reduce_all(compressors, drawn)
    # Memories are (0, .5) and (0, 4): the second learner's 4 + 8 leads.
    assert second[0].tolist() == [0, (1.5 + 12) / 2, 0, 0]
    told = [c.state_dict()["memory"].tolist() for c in compressors]
    assert told == [[2, 0.25, 0, 0], [1, 2, 0, 0]]


def test_warm_up_is_sent_whole_and_bytes_are_as_told() -> None:
    compressors = [ScaleCom(PARTS, 0.1, warmup=1) for _ in range(2)]
    assert compressors[0].nbytes == (4 * 67, 0) and compressors[0].ratio == 1
    drawn = gradients(2, 0).astype(np.float32)
    told, table = reduce_all(compressors, drawn)
    assert np.array_equal(told[0], drawn.mean(axis=0)) and not table.broadcasts
    assert not compressors[0].state_dict()["memory"].any()
    assert compressors[0].nbytes == (4 * (7 + 6), 4 * 6)
    assert compressors[0].ratio == pytest.approx(67 / 19)
    _, table = reduce_all(compressors, drawn)
    assert table.means[0][0].nbytes == 4 * 13 and table.broadcasts[0].nbytes == 4 * 6


def test_resumed_it_goes_on_to_the_same_bits() -> None:
    ours, resumed = ScaleCom(PARTS, 0.1), ScaleCom(PARTS, 0.1)
    reduce_all([ours], gradients(1, 0))
    resumed.load_state_dict(ours.state_dict())
    told = [reduce_all([each], gradients(1, 1))[0][0] for each in (ours, resumed)]
    assert np.array_equal(*told) and ours.state_dict()["step"] == 2
    assert np.array_equal(ours.state_dict()["memory"], resumed.state_dict()["memory"])


def test_what_is_never_compressed() -> None:
    module = nn.Sequential(
        nn.BatchNorm2d(2),
        nn.Conv2d(2, 3, 3),
        nn.Conv2d(3, 4, 3),
        nn.Linear(4, 5).requires_grad_(False),
        nn.Linear(5, 2),
    )
    bins = [(part.stop - part.start, part.bin) for part in parts_of(module)]
    first = [(2, None), (2, None), (54, None), (3, None)]
    assert bins == [*first, (108, 50), (4, None), (10, 500), (2, None)]


def test_adacomp_by_hand() -> None:
    """Residual zero: sent is what doubled reaches the bin's largest."""
    compressor = AdaComp((Part(0, 2, None), Part(2, 8, 3)))
    sent = compressor.compress(np.array([0, 0, 4, 2, -1.9, 0, 0, 1]))
    assert sent.indices.tolist() == [0, 1, 2, 3, 7] and sent.values.tolist() == [0, 0, 4, 2, 1]
    # Now -1.9 is left: with no new gradient it is the bin's largest; then it grows to -2.9.
    assert compressor.compress(np.array([0, 0, 0, 0.9, -1, 0, 0, 0])).values.tolist() == [
        0,
        0,
        -2.9,
    ]
    assert compressor.state_dict()["residual"].tolist() == [0, 0, 0, 0.9, 0, 0, 0, 0]


@given(st.integers(0, 2**31))
def test_adacomp_loses_nothing_and_the_leader_of_a_bin_always_goes(seed: int) -> None:
    compressor, sent, given_in = AdaComp(PARTS), np.zeros(67), np.zeros(67)
    for step in range(10):
        gradient = gradients(1, seed + step)[0]
        grown = compressor.state_dict()["residual"] + gradient
        message = compressor.compress(gradient)
        sent[message.indices] += message.values
        given_in += gradient
        for part in (PARTS[1], PARTS[3]):
            for start in range(part.start, part.stop, part.bin or 1):
                inside = slice(start, min(start + (part.bin or 1), part.stop))
                wanted = np.abs(grown + gradient)[inside] >= np.abs(grown[inside]).max()
                went = np.isin(np.arange(67)[inside], message.indices)
                assert np.array_equal(went, wanted)
    assert np.allclose(sent + compressor.state_dict()["residual"], given_in, atol=1e-12)


def test_adacomp_resumed_goes_on_to_the_same_bits() -> None:
    ours, resumed = AdaComp(PARTS), AdaComp(PARTS)
    ours.compress(gradients(1, 0)[0])
    resumed.load_state_dict(ours.state_dict())
    one, other = (each.compress(gradients(1, 1)[0]) for each in (ours, resumed))
    assert np.array_equal(one.indices, other.indices) and np.array_equal(one.values, other.values)


def test_messages_of_different_places_have_one_mean() -> None:
    messages = [
        Sparse(np.array([0, 2]), np.array([1.0, 2])),
        Sparse(np.array([2]), np.array([4.0])),
    ]
    assert mean_of(messages, 4).tolist() == [0.5, 0, 3, 0]


def test_what_is_wrong_is_told() -> None:
    for share, beta, warmup in ((0, 0.1, 0), (1.5, 0.1, 0), (0.1, 0, 0), (0.1, 2, 0), (0.1, 1, -1)):
        with pytest.raises(DistributedError, match="must be in"):
            ScaleCom(PARTS, share, beta, warmup)
    with pytest.raises(ValueError, match="must follow each other"):
        ScaleCom((Part(0, 4, 1), Part(5, 6, 1)), 0.1)
    with pytest.raises(ValueError, match=r"\(3,\).*\(67,\)"):
        AdaComp(PARTS).compress(np.zeros(3))
    with pytest.raises(ValueError, match="no message"):
        mean_of([], 4)
