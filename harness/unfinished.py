"""Removes what an interrupted evaluation would go on from, once it is finished.

A protocol whose scoring takes hours keeps finished pieces of it in the cache. At the end of its
scoring it calls `done_with`: whoever keeps the record decides when the pieces are removed.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Remove = Callable[[], None]

_waiting: ContextVar[list[Remove] | None] = ContextVar("waiting", default=None)


def done_with(remove: Remove) -> None:
    """Call a function that removes pieces: at the end of the block of `kept_until_end`, or now."""
    waiting = _waiting.get()
    if waiting is None:
        remove()
    else:
        waiting.append(remove)


@contextmanager
def kept_until_end() -> Iterator[list[Remove]]:
    """Pieces that are done with in the block are removed at its end; they stay if it fails.

    In a block in a block, they are removed at the end of the outer one. Yields the functions that
    remove them: a caller who could not keep the result clears the list.
    """
    waiting: list[Remove] = []
    before = _waiting.set(waiting)
    try:
        yield waiting
    finally:
        _waiting.reset(before)
    for remove in waiting:
        done_with(remove)
