"""Removes what an interrupted evaluation would go on from, once it is finished.

A protocol whose scoring takes hours keeps finished pieces of it in the cache. At the end of its
scoring it calls `done_with`: whoever keeps the record decides when the pieces are removed.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from harness import cache
from harness.cache import Origin

Piece = tuple[str, Origin]
"""An entry of the cache: the kind of results, and the entry's origin."""

_waiting: ContextVar[list[Piece] | None] = ContextVar("waiting", default=None)


def remove(pieces: Iterable[Piece]) -> None:
    """Remove pieces; they may be missing."""
    for kind, origin in pieces:
        cache.kept(kind).remove(origin)


def done_with(pieces: Iterable[Piece]) -> None:
    """Remove pieces at the end of the block of `kept_until_end`, or now if there is none."""
    waiting = _waiting.get()
    if waiting is None:
        remove(pieces)
    else:
        waiting += pieces


@contextmanager
def kept_until_end() -> Iterator[list[Piece]]:
    """Pieces that are done with in the block are removed at its end; they stay if it fails.

    In a block in a block, they are removed at the end of the outer one. Yields the list of them: a
    caller who could not keep the result, or removes them later, clears it.
    """
    waiting: list[Piece] = []
    before = _waiting.set(waiting)
    try:
        yield waiting
    finally:
        _waiting.reset(before)
    done_with(waiting)
