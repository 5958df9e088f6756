"""Reading ahead and writing behind: the order stays, faults arrive, nothing is left running."""

import threading
from collections.abc import Generator
from contextlib import closing

import pytest
from orthotrace.mapping.prediction.pipeline import ahead, behind


def test_items_keep_their_order_and_are_made_in_one_other_thread() -> None:
    threads = set()

    def items() -> Generator[int]:
        for number in range(50):
            threads.add(threading.get_ident())
            yield number

    assert list(ahead(items(), 3)) == list(range(50))
    assert len(threads) == 1 and threading.get_ident() not in threads


def test_no_more_than_depth_items_are_made_in_advance() -> None:
    made: list[int] = []
    taken: list[int] = []

    def items() -> Generator[int]:
        for number in range(50):
            made.append(number)
            assert len(made) - len(taken) <= 4  # three ahead, and the one that is taken now
            yield number

    for number in ahead(items(), 3):
        taken.append(number)
    assert taken == made


def test_a_fault_of_the_reader_is_raised_in_its_place() -> None:
    def items() -> Generator[int]:
        yield 1
        raise OSError("torn")

    coming = ahead(items(), 3)
    assert next(coming) == 1
    with pytest.raises(OSError, match="torn"):
        next(coming)


def test_the_reader_is_closed_in_its_thread_when_the_rest_is_not_wanted() -> None:
    closed = []

    def items() -> Generator[int]:
        here = threading.get_ident()
        try:
            yield from range(50)
        finally:
            closed.append(threading.get_ident() == here)

    with closing(ahead(items(), 3)) as coming:
        next(coming)
    assert closed == [True]


def test_work_is_done_in_order_and_to_the_end() -> None:
    done: list[int] = []
    with behind(done.append, 2) as hand_over:
        for number in range(50):
            hand_over(number)
    assert done == list(range(50))


def test_a_fault_of_the_writer_is_raised_and_ends_its_work() -> None:
    done = []

    def work(number: int) -> None:
        if number == 3:
            raise OSError("full")
        done.append(number)

    with pytest.raises(OSError, match="full"), behind(work, 1) as hand_over:
        for number in range(50):
            hand_over(number)
    assert done[:3] == [0, 1, 2] and len(done) < 6
