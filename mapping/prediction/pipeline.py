"""Reading ahead and writing behind, each in one thread of its own and in a bounded queue.

What is in the two threads is GDAL's work and NumPy's, which let other threads run meanwhile.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final, TypeVar

T = TypeVar("T")

_END: Final = object()


def ahead(items: Generator[T], depth: int) -> Generator[T]:
    """The same items in the same order, made up to `depth` in advance in another thread.

    `items` runs in that thread from its first line to its last, so a file that it opens belongs to
    the thread. What it raises is raised here, in its place.
    """
    with ThreadPoolExecutor(1) as thread:
        waiting = deque(thread.submit(next, items, _END) for _ in range(depth))
        try:
            while (item := waiting.popleft().result()) is not _END:
                waiting.append(thread.submit(next, items, _END))
                yield item  # type: ignore[misc]  # mypy does not narrow by identity with _END
        finally:
            thread.submit(items.close).result()


@contextmanager
def behind(work: Callable[[T], None], depth: int) -> Iterator[Callable[[T], None]]:
    """A function that has `work` done to an item in another thread, in order, and goes on.

    It waits while `depth` items are not done. A failure is raised by a later call or at the end;
    nothing more is done after it.
    """
    waiting: deque[Future[None]] = deque()

    def hand_over(item: T) -> None:
        while waiting and (len(waiting) >= depth or waiting[0].done()):
            waiting.popleft().result()
        waiting.append(thread.submit(work, item))

    thread = ThreadPoolExecutor(1)
    try:
        yield hand_over
        while waiting:
            waiting.popleft().result()
    finally:
        thread.shutdown(cancel_futures=True)
