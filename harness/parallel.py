"""Work on every core, whatever their number: values and their order do not depend on it."""

import os
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from itertools import islice
from multiprocessing import get_context
from threading import Thread
from typing import TypeVar

from threadpoolctl import threadpool_limits

CORES = min(os.cpu_count() or 1, 16)  # each holds a chunk of distances: memory stays bounded
ASKED = 2**14  # values at a time
WATCHED = 0.5  # seconds until a process sees that its parent was killed

A = TypeVar("A")
B = TypeVar("B")


def each(function: Callable[[A], B], items: Iterable[A]) -> list[B]:
    """The function's values, in the order of the items: NumPy lets other threads run.

    BLAS keeps to the thread it is in. A pool keeps about a kilobyte of what it was asked for and
    has not done, so that it is asked for millions of values bit by bit.
    """
    asked = iter(items)
    found: list[B] = []
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(CORES) as pool:
        while some := list(islice(asked, ASKED)):
            found += pool.map(function, some)
    return found


def each_apart(
    function: Callable[[A], B],
    items: Sequence[A],
    progress: Callable[[int, int], None] | None = None,
) -> list[B]:
    """Like `each`, in processes, for code that holds the GIL.

    Function and items are sent to the processes, so none can be a closure. They import the main
    script: one that comes here has to begin with `if __name__ == "__main__":`.

    Args:
        function: is called in another process, unless there is one core or one item.
        items: what it is called with.
        progress: called with the number of values so far and that of all.
    """

    def told(values: Iterable[B]) -> list[B]:
        found = []
        for value in values:
            found.append(value)
            if progress:
                progress(len(found), len(items))
        return found

    workers = min(CORES, len(items))
    if workers < 2:
        return told(map(function, items))
    # Not forked: of a process with threads, a fork may hang.
    with ProcessPoolExecutor(workers, get_context("spawn"), _follow, (os.getpid(),)) as pool:
        try:
            return told(pool.map(function, items))
        except BaseException:  # an interrupt as well: only what has been begun is finished
            pool.shutdown(cancel_futures=True)
            raise


def _follow(parent: int) -> None:
    """End with the process that waits for this one, even if that is killed, and not before.

    Ctrl-C and the end of a terminal come to both: what becomes of the work is for the parent to
    say. SIGTERM is what the pool itself ends a process by.
    """
    for name in ("SIGINT", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(WATCHED)
        os._exit(1)

    if os.name != "nt":  # where a process keeps the number of a parent that has ended
        Thread(target=watch, daemon=True).start()
