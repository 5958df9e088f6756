"""The plain loop is the oracle of the Dask runner."""

import functools
import os
from pathlib import Path

import pytest
from orthotrace.tiling.errors import StorageError, TilingError
from orthotrace.tiling.runner import Outcome, run_here, runner


def halve(number: int) -> int:
    if number % 5 == 3:
        raise TilingError(f"{number} has no half here")
    return number // 2


def write(folder: Path, number: int) -> str:
    (folder / f"{number}.txt").write_text(str(number * number))
    return str(number)


def end_the_process(number: int) -> int:
    if number == 2:
        os._exit(1)
    return number


def fill_the_disk(number: int) -> int:
    raise StorageError(f"no room for {number}")


def stumble(number: int) -> float:
    return 1 / number


def by_item(outcomes: list[Outcome[int, int]]) -> list[tuple[int, int | None, str]]:
    return sorted((o.item, o.value, o.problem) for o in outcomes)


def test_a_failure_ends_its_own_item_alone() -> None:
    outcomes = list(run_here(halve, range(5)))
    assert [o.value for o in outcomes] == [0, 0, 1, None, 2]
    assert [o.problem for o in outcomes if o.problem] == ["3 has no half here"]


def test_a_fault_of_the_program_keeps_its_traceback() -> None:
    zero, one = run_here(stumble, [0, 1])
    assert zero.problem == "ZeroDivisionError: division by zero" and "stumble" in zero.trace
    assert one.value == 1


def test_a_full_disk_ends_the_run() -> None:
    with pytest.raises(StorageError, match="no room for 0"):
        list(run_here(fill_the_disk, range(3)))


def test_dask_gives_what_the_plain_loop_gives(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    list(run_here(functools.partial(write, here), range(30)))
    with runner(workers=2) as run:
        assert by_item(list(run(halve, range(30)))) == by_item(list(run_here(halve, range(30))))
        list(run(functools.partial(write, there), range(30)))
        with pytest.raises(StorageError):
            list(run(fill_the_disk, range(3)))
    assert {p.name: p.read_bytes() for p in here.iterdir()} == {
        p.name: p.read_bytes() for p in there.iterdir()
    }


def test_a_scheduler_that_is_not_there_is_said() -> None:
    with pytest.raises(TilingError, match="no Dask scheduler answers"):
        with runner(cluster="tcp://127.0.0.1:9"):
            pass
