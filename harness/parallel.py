"""Calls functions on all cores; values and their order do not depend on the number of cores."""

import os
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from itertools import islice
from multiprocessing import get_context
from threading import Thread
from typing import TypeVar

from threadpoolctl import threadpool_limits

if hasattr(os, "sched_getaffinity"):  # not on macOS and Windows
    _USABLE = len(os.sched_getaffinity(0))  # fewer than there are in a container or under taskset
else:
    _USABLE = os.cpu_count() or 1
CORES = min(_USABLE, 16)  # each core holds a chunk of distances, so 16 bound the memory
ASKED = 2**14  # items given to the pool at a time
WATCHED = 0.5  # seconds between two looks whether the parent process is alive

A = TypeVar("A")
B = TypeVar("B")


def each(function: Callable[[A], B], items: Iterable[A]) -> list[B]:
    """The function's values, in the order of the items, from threads; NumPy releases the GIL.

    BLAS uses one thread for each call. A waiting item takes about a kilobyte in the pool, so the
    pool gets ASKED items at a time.
    """
    asked = iter(items)
    values: list[B] = []
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(CORES) as pool:
        while batch := list(islice(asked, ASKED)):
            values += pool.map(function, batch)
    return values


def ahead(
    function: Callable[[A], B], items: Iterable[A], size: Callable[[A], int], most: int
) -> Iterator[B]:
    """Yields the function's values in the order of the items; threads compute the next ones.

    An error is raised in place of its value, after all values before it.

    Args:
        function: reads or decodes something; must be safe in several threads at once.
        items: its arguments.
        size: of the value of an item.
        most: largest size of all values that are waiting; one may always wait.
    """
    waiting: deque[tuple[int, Future[B]]] = deque()
    held = 0
    with ThreadPoolExecutor(CORES) as pool:
        try:
            for item in items:
                new = size(item)
                while waiting and (held + new > most or len(waiting) > CORES):
                    old, value = waiting.popleft()
                    held -= old
                    yield value.result()
                held += new
                waiting.append((new, pool.submit(function, item)))
            while waiting:
                yield waiting.popleft()[1].result()
        finally:
            pool.shutdown(cancel_futures=True)


def each_apart(
    function: Callable[[A], B],
    items: Sequence[A],
    progress: Callable[[int, int], None] | None = None,
) -> list[B]:
    """Like `each`, in processes, for code that holds the GIL.

    Function and items are pickled, so they can't be closures. The processes import the main script,
    so its code has to be below `if __name__ == "__main__":`.

    Args:
        function: called in other processes; in this one if there is one core or one item.
        items: its arguments.
        progress: called with the number of values so far and the number of all.
    """

    def collect(values: Iterable[B]) -> list[B]:
        collected = []
        for value in values:
            collected.append(value)
            if progress:
                progress(len(collected), len(items))
        return collected

    workers = min(CORES, len(items))
    if workers < 2:
        return collect(map(function, items))
    # Not "fork": the fork of a process with threads may hang.
    with ProcessPoolExecutor(workers, get_context("spawn"), _follow, (os.getpid(),)) as pool:
        try:
            return collect(pool.map(function, items))
        except BaseException:  # also an interrupt: only calls that have begun are finished
            pool.shutdown(cancel_futures=True)
            raise


def _follow(parent: int) -> None:
    """End this process when its parent ends, even if the parent is killed, and not before.

    The terminal sends SIGINT and SIGHUP to both processes. This one ignores them, since the parent
    decides how to stop. SIGTERM still works, since the pool uses it to end a process.
    """
    for name in ("SIGINT", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(WATCHED)
        os._exit(1)

    if os.name != "nt":  # on Windows, getppid does not change when the parent ends
        Thread(target=watch, daemon=True).start()
