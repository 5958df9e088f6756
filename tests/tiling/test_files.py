"""A file that exists is whole."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from orthotrace.tiling import files
from orthotrace.tiling.errors import StorageError
from orthotrace.tiling.files import (
    alone_in,
    file_identity,
    fingerprint,
    make_folder,
    remove,
    written_beside,
)


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_comes_into_place_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "new.txt"
    seen = []
    with written_beside(path, lambda part: seen.append(part.read_text())) as part:
        assert part.parent == path.parent and part.suffix == path.suffix
        part.write_text("whole")
        assert not path.exists()
    assert seen == ["whole"]
    assert path.read_text() == "whole"
    assert left(path.parent) == ["new.txt"]


class _Broken(Exception):
    pass


@pytest.mark.parametrize("problem", [_Broken, KeyboardInterrupt, OSError])
def test_a_failed_write_leaves_the_old_file_alone(
    tmp_path: Path, problem: type[BaseException]
) -> None:
    path = tmp_path / "old.txt"
    path.write_text("old")
    with pytest.raises(problem), written_beside(path) as part:
        part.write_text("half")
        part.with_name(part.name + ".aux.xml").write_text("a side-car")
        raise problem
    assert path.read_text() == "old"
    assert left(tmp_path) == ["old.txt"]


def test_what_the_check_refuses_does_not_come_into_place(tmp_path: Path) -> None:
    def refuse(part: Path) -> None:
        raise _Broken(part.read_text())

    with pytest.raises(_Broken, match="half"), written_beside(tmp_path / "new.txt", refuse) as part:
        part.write_text("half")
    assert left(tmp_path) == []


def test_a_writer_that_wrote_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), written_beside(tmp_path / "new.txt"):
        pass
    assert left(tmp_path) == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder with room for two megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("a small disk can only be mounted by root")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_is_said(small_disk: Path) -> None:
    path = small_disk / "old.txt"
    path.write_text("old")
    with (
        pytest.raises(StorageError, match=r"old\.txt .*disk .* is full; wanted more free space"),
        written_beside(path) as part,
    ):
        part.write_bytes(bytes(4 << 20))
    assert path.read_text() == "old"
    assert left(small_disk) == ["old.txt"]


def test_a_full_disk_is_said_where_a_line_is_added(small_disk: Path) -> None:
    """A log that grows while a training runs."""
    log = small_disk / "log.jsonl"
    log.write_text("first\n")
    (small_disk / "filler").write_bytes(b"0" * (shutil.disk_usage(small_disk).free))
    with pytest.raises(StorageError, match=r"log\.jsonl .*disk .* is full"):
        for _ in range(5000):
            files.add_line(log, "more")


def test_a_full_disk_is_told_from_another_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert files.is_full(tmp_path, OSError(28, "No space left on device"))
    assert not files.is_full(tmp_path, ValueError())
    monkeypatch.setattr(files, "_LITTLE", 1 << 62)
    assert files.is_full(tmp_path, ValueError())
    assert not files.is_full(tmp_path, KeyboardInterrupt())


def test_a_file_system_without_size_is_not_full() -> None:
    if not Path("/proc/self").exists():
        pytest.skip("needs Linux")
    with pytest.raises(StorageError, match=r"/proc/x\.tif cannot be written"):
        files.check_place(Path("/proc/x.tif"))


@pytest.mark.parametrize("name", ["folder.tif", "x" * 256 + ".tif"])
def test_a_place_where_no_file_can_be_is_said_before_the_work(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder.tif").mkdir()
    with pytest.raises(StorageError, match=r"\.tif cannot be written \(.*\); wanted"):
        with written_beside(tmp_path / name):
            pytest.fail("the work was begun")
    assert left(tmp_path) == ["folder.tif"]


def test_a_name_as_long_as_may_be_is_written(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 251 + ".tif")
    with written_beside(path) as part:
        part.write_text("whole")
    assert left(tmp_path) == [path.name]


@pytest.fixture
def locked(small_disk: Path) -> Path:
    """A folder that can only be read."""
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    return small_disk


def test_a_place_that_can_only_be_read_is_said(locked: Path) -> None:
    with pytest.raises(StorageError, match=r"new\.txt cannot be written \(Read-only file system"):
        with written_beside(locked / "new.txt"):
            pytest.fail("the work was begun")


def test_a_folder_under_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "folder"):
        with pytest.raises(StorageError, match="cannot be made a folder .* wanted a place"):
            make_folder(folder)
    with pytest.raises(StorageError), written_beside(tmp_path / "file" / "new.txt"):
        pass
    assert make_folder(tmp_path / "a" / "b").is_dir()
    assert make_folder(tmp_path / "a" / "b").is_dir()


def test_one_at_a_time_is_alone_in_a_folder(tmp_path: Path) -> None:
    with alone_in(tmp_path):
        with pytest.raises(StorageError, match="another run is at work in"), alone_in(tmp_path):
            pass
        with alone_in(make_folder(tmp_path / "other")):
            pass
    with alone_in(tmp_path):
        pass


def test_what_a_killed_process_was_writing_is_removed(tmp_path: Path) -> None:
    script = f"""
import os
from pathlib import Path
from orthotrace.tiling.files import alone_in, written_beside
folder = Path({str(tmp_path)!r})
with alone_in(folder), written_beside(folder / "a" / "b.tif") as p:
    p.write_text("half")
    os.kill(os.getpid(), 9)
"""
    assert subprocess.run([sys.executable, "-c", script]).returncode == -9
    assert len(left(tmp_path / "a")) == 1
    with alone_in(tmp_path):
        assert left(tmp_path / "a") == []


def test_what_is_not_there_is_removed_too(tmp_path: Path) -> None:
    remove(tmp_path / "none")
    (tmp_path / "folder" / "deep").mkdir(parents=True)
    remove(tmp_path / "folder")
    assert left(tmp_path) == []


@given(st.lists(st.text(), max_size=4), st.lists(st.text(), max_size=4))
def test_other_parts_have_another_fingerprint(one: list[str], other: list[str]) -> None:
    assert (fingerprint(*one) == fingerprint(*other)) == (one == other)


@given(st.text(), st.text(min_size=1))
def test_where_parts_are_cut_counts(one: str, other: str) -> None:
    assert fingerprint(one, other) != fingerprint(one + other)


def test_a_fingerprint_stays_the_same_over_versions() -> None:
    assert fingerprint("road", "1.0") == "eb4025a24968"


def test_a_changed_file_has_another_identity(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("one")
    before = file_identity(path)
    assert file_identity(path) == before
    path.write_text("three")
    assert file_identity(path) != before
