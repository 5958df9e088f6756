"""Claims, one call at a time, on a board of our own and on torch's store."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from orthotrace.distributed.claims import (
    Board,
    Lease,
    MemoryBoard,
    claim,
    claim_pair,
    free,
    holds,
    is_free,
    lease_on,
    open_for_claims,
)


def board_of(*ranks: int) -> MemoryBoard:
    board = MemoryBoard()
    for rank in ranks:
        open_for_claims(board, rank)
    return board


@given(st.integers(0, 2000), st.integers(0, 2**63), st.floats(-1e300, 1e300))
def test_a_lease_comes_back_from_its_line(holder: int, epoch: int, expires: float) -> None:
    assert Lease.read(Lease(holder, epoch, expires).line()) == Lease(holder, epoch, expires)


@pytest.mark.parametrize("line", ["", "free", "1:2", "1:2:3:4", "a:2:3", "-1:2:3", "1:2:nan"])
def test_another_line_is_no_lease(line: str) -> None:
    with pytest.raises(ValueError, match=f'wanted a line "holder:epoch:expires", got "{line}"'):
        Lease.read(line)


def test_one_claim_at_a_time_and_free_again_after_it() -> None:
    board, mine, theirs = board_of(1), Lease(0, 1, 5.0), Lease(2, 1, 5.0)
    assert is_free(board, 1, 0.0) and lease_on(board, 1) is None
    assert claim(board, 1, mine, 0.0) and not claim(board, 1, theirs, 0.0)
    assert holds(board, 1, mine) and lease_on(board, 1) == mine and not is_free(board, 1, 4.9)
    assert not free(board, 1, theirs) and holds(board, 1, mine)
    assert free(board, 1, mine) and is_free(board, 1, 0.0)
    assert claim(board, 1, theirs, 0.0)


def test_who_is_not_open_cannot_be_claimed() -> None:
    board = MemoryBoard()
    for _ in range(2):  # the second time its line is there, and empty
        assert not claim(board, 1, Lease(0, 1, 5.0), 0.0)
        assert not is_free(board, 1, 0.0) and lease_on(board, 1) is None
    open_for_claims(board, 1)
    assert claim(board, 1, Lease(0, 1, 5.0), 0.0)


def test_an_expired_lease_is_taken_over_and_not_freed_by_the_old_one() -> None:
    board, old, new = board_of(1), Lease(0, 1, 5.0), Lease(2, 1, 10.0)
    assert claim(board, 1, old, 0.0)
    assert not claim(board, 1, new, 4.999)
    assert is_free(board, 1, 5.0) and claim(board, 1, new, 5.0)
    assert not free(board, 1, old) and holds(board, 1, new) and not holds(board, 1, old)
    with pytest.raises(ValueError, match="has expired at 10"):
        claim(board, 1, new, 10.0)


def test_who_comes_back_sits_out_another_s_lease_and_lifts_its_own() -> None:
    board, lease = board_of(0, 1), Lease(0, 1, 5.0)
    claim_pair(board, 1, lease, 0.0)
    open_for_claims(board, 1)
    open_for_claims(board, 0)
    assert holds(board, 1, lease) and is_free(board, 0, 0.0)


def test_who_may_be_in_an_exchange_yet_is_not_taken_over() -> None:
    board, old = board_of(0, 1), Lease(0, 1, 5.0)
    claim_pair(board, 1, old, 0.0)
    assert not claim(board, 0, Lease(2, 1, 90.0), 50.0) and not is_free(board, 0, 50.0)
    assert not claim_pair(board, 0, Lease(1, 1, 90.0), 50.0)
    assert holds(board, 0, old) and holds(board, 1, old)


def test_a_pair_is_both_or_neither() -> None:
    board = board_of(0, 1, 2)
    assert claim_pair(board, 1, Lease(0, 1, 5.0), 0.0)
    assert lease_on(board, 0) == lease_on(board, 1) == Lease(0, 1, 5.0)
    assert not claim_pair(board, 1, Lease(2, 1, 5.0), 0.0)
    assert is_free(board, 2, 0.0)
    assert not claim_pair(board, 2, Lease(0, 2, 5.0), 0.0)
    assert is_free(board, 2, 0.0)
    with pytest.raises(ValueError, match="no exchange with itself"):
        claim_pair(board, 2, Lease(2, 2, 5.0), 0.0)


def test_a_line_is_looked_at_and_set_under_one_lock() -> None:
    board, locked = board_of(1), []

    class Told(str):
        """What is expected, and sees in the middle of the call whether another could come in."""

        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            locked.append(board._lock.locked())
            return str.__eq__(self, other)

    assert board.compare_set("claim/1", Told("free"), "0:1:5.0") == b"0:1:5.0"
    assert locked == [True] and not board._lock.locked()


def test_our_board_answers_as_torch_s_store() -> None:
    from torch.distributed import TCPStore  # seconds to import, for this test alone

    store: Board = TCPStore("127.0.0.1", 0, 1, True, wait_for_workers=False)
    ours, rng = MemoryBoard(), np.random.default_rng(0)
    for _ in range(300):
        key, expected, desired = (str(rng.choice(words)) for words in (["a", "b", "c"], *WORDS))
        key += str(rng.integers(20))
        wanted = store.compare_set(key, expected, desired)
        assert ours.compare_set(key, expected, desired) == wanted
    open_for_claims(store, 1)
    assert claim(store, 1, Lease(0, 1, 5.0), 0.0) and holds(store, 1, Lease(0, 1, 5.0))
    assert free(store, 1, Lease(0, 1, 5.0)) and is_free(store, 1, 0.0)


WORDS = [["", "free", "0:1:5.0"]] * 2
"""What a line may be expected to say, and be set to."""
