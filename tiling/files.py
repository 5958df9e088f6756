"""Every file is written beside its place, checked and renamed: a file that exists is whole."""

import errno
import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .errors import StorageError

_PART = ".part-"
"""How the name of a file begins that is not whole yet."""

_LITTLE = 1 << 20
"""Bytes free below which a failed write is put down to a full disk."""


def make_folder(folder: Path) -> Path:
    """The folder, made with its parents; StorageError where that cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise StorageError(
            f"{folder} cannot be made a folder ({problem.strerror}); "
            "wanted a place that can be written"
        ) from problem
    return folder


@contextmanager
def written_beside(path: Path, check: Callable[[Path], None] = lambda part: None) -> Iterator[Path]:
    """A name beside `path` to write to; what stands there at the end is checked, then renamed.

    `check` opens the written file and raises if it is not whole. If anything fails, nothing of
    the new file is left and an older `path` stays as it was. The part keeps the suffix of
    `path`, since writers choose their format by it. StorageError when the disk is full, and
    before anything is done for a place where no file can be.
    """
    check_place(path)
    part = _part(path)
    try:
        yield part
        check(part)
        _sync(part)
        os.replace(part, path)
        remove(part)  # what GDAL put beside it
    except BaseException as problem:
        full = is_full(path.parent, problem)
        with suppress(OSError):  # the first fault is the one to say
            remove(part)
        if full:
            raise _full(path) from problem
        raise


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """While this lasts no other process is `alone_in` the folder; StorageError if one is.

    What a killed process was writing there, or below, is removed. A file system that knows no
    locks is trusted to have one user.
    """
    handle = os.open(folder, os.O_RDONLY)  # the lock is the kernel's, so it dies with its process
    try:
        if _locked(folder, handle):
            for part in folder.rglob(f"{_PART}*"):
                remove(part)
        yield
    finally:
        os.close(handle)


def _locked(folder: Path, handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as problem:
        raise StorageError(
            f"another run is at work in {folder}; wanted one at a time: wait until it has ended"
        ) from problem
    except OSError:
        return False
    return True


def check_place(path: Path) -> None:
    """StorageError unless a file can be written at `path`; its folder is made."""
    make_folder(path.parent)
    part = _part(path)
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        part.touch()
        part.unlink()
    except OSError as problem:
        if is_full(path.parent, problem):
            raise _full(path) from problem
        raise StorageError(
            f"{path} cannot be written ({problem.strerror}); wanted the name of a file "
            "in a folder that can be written"
        ) from problem


def _part(path: Path) -> Path:
    """The name beside `path`; never longer than a file's may be."""
    return path.with_name(f"{_PART}{fingerprint(path.name)}-{os.getpid()}{path.suffix}")


def _full(path: Path) -> StorageError:
    return StorageError(
        f"{path} could not be written: the disk that holds {path.parent} is full; "
        "wanted more free space (what was finished before stays)"
    )


def add_line(path: Path, line: str) -> None:
    """Add a line to a text file; StorageError when the disk is full."""
    try:
        with path.open("a") as stream:
            stream.write(line + "\n")
    except OSError as problem:
        if is_full(path.parent, problem):
            raise _full(path) from problem
        raise


def is_full(folder: Path, problem: BaseException) -> bool:
    """Whether a failed write in `folder` is due to a full disk (GDAL does not say so itself)."""
    if isinstance(problem, OSError) and problem.errno in (errno.ENOSPC, errno.EDQUOT):
        return True
    disk = shutil.disk_usage(folder)  # /proc has no size, so it is never full
    return isinstance(problem, Exception) and 0 < disk.total and disk.free < _LITTLE


def remove(path: Path) -> None:
    """Remove a file or folder and its side-cars, if there."""
    for found in (path, path.with_name(path.name + ".aux.xml"), path.with_name(path.name + ".ovr")):
        if found.is_dir():
            shutil.rmtree(found)
        else:
            found.unlink(missing_ok=True)


def fingerprint(*parts: str) -> str:
    """Twelve hexadecimal digits that change when any of `parts` does.

    >>> fingerprint("a", "b") == fingerprint("ab")
    False
    """
    digest = hashlib.sha256()
    for part in parts:
        digest.update(f"{len(part)}:{part}".encode())
    return digest.hexdigest()[:12]


def file_identity(path: Path) -> str:
    """What changes when a file does: name, size and time of change (content is not read)."""
    found = path.stat()
    return f"{path.name}:{found.st_size}:{found.st_mtime_ns}"


def file_digest(path: Path) -> str:
    """The SHA-256 of a file's content, in hexadecimal digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _sync(path: Path) -> None:
    with path.open("rb") as stream:
        os.fsync(stream.fileno())
