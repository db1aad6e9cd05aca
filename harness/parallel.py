"""Scoring on every core: NumPy lets other threads run, and BLAS keeps to the thread it is in."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from threadpoolctl import threadpool_limits

CORES = min(os.cpu_count() or 1, 16)  # each holds a chunk of distances: memory stays bounded

A = TypeVar("A")
B = TypeVar("B")


def each(function: Callable[[A], B], items: Iterable[A]) -> list[B]:
    """The function's values, in the order of the items; the numbers do not depend on the cores."""
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(CORES) as pool:
        return list(pool.map(function, items))
