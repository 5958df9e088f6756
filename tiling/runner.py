"""Runs one function on many cells: in a plain loop, or on Dask. Nothing else here knows Dask.

The plain loop is the oracle: both runners give the same outcomes, and so the same bytes. Pixels go
to files; what comes back is one small record a cell. A nation is half a million cells, so cells are
fed to Dask in a bounded window and never as one graph.
"""

import os
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Generic, Protocol, TypeVar

from dask.distributed import Client, Future, KilledWorker, LocalCluster, as_completed

from .. import OrthoTraceError
from .errors import StorageError, TilingError

In = TypeVar("In")
Out = TypeVar("Out")

AHEAD = 3
"""Cells in flight for each thread of the workers: one at work, the next ones on their way."""


@dataclass(frozen=True, slots=True)
class Outcome(Generic[In, Out]):
    """What became of one item."""

    item: In
    value: Out | None
    problem: str = ""
    """One sentence on why it failed; empty if it did not."""

    trace: str = ""
    """The traceback, where the failure is a fault of the program."""


class Runner(Protocol):
    """Does `work` to each item apart from the others; a failure ends its own item alone.

    `work` is a module's function (so that it pickles). StorageError ends the run: the next item
    would meet the same full disk.
    """

    def __call__(
        self, work: Callable[[In], Out], items: Iterable[In]
    ) -> Iterator[Outcome[In, Out]]: ...


def run_here(work: Callable[[In], Out], items: Iterable[In]) -> Iterator[Outcome[In, Out]]:
    """One item after the other in this process."""
    for item in items:
        yield _attempt(work, item)


def run_on(
    client: Client, work: Callable[[In], Out], items: Iterable[In]
) -> Iterator[Outcome[In, Out]]:
    """On a Dask cluster, in the order in which the items end."""
    threads = sum(client.nthreads().values())
    if threads == 0:
        raise TilingError(f"the Dask cluster {client!r} has no worker; start some")
    waiting = iter(items)
    flying = {
        client.submit(_attempt, work, item, pure=False): item
        for item in islice(waiting, AHEAD * threads)
    }
    queue = as_completed(flying)
    for future in queue:
        item = flying.pop(future)
        yield _result(future, item)
        for following in islice(waiting, 1):
            new = client.submit(_attempt, work, following, pure=False)
            flying[new] = following
            queue.add(new)


@contextmanager
def runner(workers: int = 1, cluster: str | None = None) -> Iterator[Runner]:
    """The runner for this machine's `workers` processes, or for the Dask scheduler at `cluster`.

    One worker and no cluster is the plain loop. Local workers have one thread each, since
    polygonising and rasterising hold Python's lock, and listen on the loopback alone.
    """
    if cluster is not None:
        with _connected(cluster) as client:
            yield lambda work, items: run_on(client, work, items)
    elif workers <= 1:
        yield run_here
    else:
        with (
            LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",  # any free port, for several runs side by side
                env=_worker_environment(),
            ) as local,
            Client(local) as client,
        ):
            yield lambda work, items: run_on(client, work, items)


def _worker_environment() -> dict[str, str]:
    """GDAL's cache is per process and defaults to a share of the machine: give each a small one."""
    return {"GDAL_CACHEMAX": os.environ.get("GDAL_CACHEMAX", "128"), "OMP_NUM_THREADS": "1"}


@contextmanager
def _connected(address: str) -> Iterator[Client]:
    try:
        client = Client(address, timeout="10s")
    except (OSError, ValueError) as problem:
        raise TilingError(
            f"no Dask scheduler answers at {address} ({problem}); "
            "wanted an address such as tcp://127.0.0.1:8786"
        ) from problem
    with client:
        yield client


def _attempt(work: Callable[[In], Out], item: In) -> Outcome[In, Out]:
    try:
        return Outcome(item, work(item))
    except StorageError:
        raise
    except OrthoTraceError as problem:
        return Outcome(item, None, str(problem))
    except Exception as problem:  # one cell's fault must not end a nation's run: it is kept whole
        return Outcome(item, None, f"{type(problem).__name__}: {problem}", traceback.format_exc())


def _result(future: Future[Outcome[In, Out]], item: In) -> Outcome[In, Out]:
    try:
        outcome: Outcome[In, Out] = future.result()
        return outcome
    except KilledWorker as problem:
        return Outcome(item, None, f"its worker died, most likely for want of memory ({problem})")
