"""What a person sees while work goes on: bars and lines on a terminal, lines alone elsewhere."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import (
    Progress as Bars,
)


class Progress:
    """Tells of work on standard error; a bar only where the output is a terminal."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, highlight=False)

    @contextmanager
    def bar(self, title: str, total: int) -> Iterator[Callable[[], None]]:
        """A bar that the returned function moves by one; none where there is nothing to do."""
        if total == 0 or not self._console.is_terminal:
            yield lambda: None
            return
        columns = (
            TextColumn("{task.description:>12}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        with Bars(*columns, console=self._console, transient=True) as bars:
            task = bars.add_task(title, total=total)
            yield lambda: bars.advance(task)

    @contextmanager
    def gauge(self, title: str) -> Iterator[Callable[[int, int | None, str], None]]:
        """A bar that the returned function sets: steps done, steps in all if known, a word."""
        if not self._console.is_terminal:
            yield lambda done, total, word: None
            return
        columns = (
            TextColumn("{task.description:>12}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[word]}", markup=False),
            TimeRemainingColumn(),
        )
        with Bars(*columns, console=self._console, transient=True) as bars:
            task = bars.add_task(title, total=None, word="")
            yield lambda done, total, word: bars.update(
                task, completed=done, total=total, word=word
            )

    def say(self, line: str) -> None:
        """One line, as it is: text is never read as markup."""
        self._console.print(line, markup=False, soft_wrap=True)


class Silent(Progress):
    """Tells nothing: for scripts and tests."""

    def __init__(self) -> None:
        super().__init__(Console(quiet=True))
