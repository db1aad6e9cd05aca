"""Signals that ask a process to end: Ctrl-C, a polite kill, a terminal that was closed."""

import logging
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SIGNALS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]
STATUS = 128  # of a process that a signal ended, beside the signal's number, as shells have it

log = logging.getLogger(__name__)

_asked: list[int] = []


def asked() -> bool:
    """Whether this process was asked to end."""
    return bool(_asked)


def status() -> int:
    """The exit status of a process that was asked to end."""
    return STATUS + (_asked[0] if _asked else signal.SIGINT)


@contextmanager
def as_interrupts() -> Iterator[None]:
    """Let each of the signals raise KeyboardInterrupt in the block, so that it cleans up.

    A second signal ends the process at once.
    """

    def interrupt() -> None:
        raise KeyboardInterrupt

    with _handled(interrupt):
        yield


@contextmanager
def after_this_step() -> Iterator[Callable[[], bool]]:
    """A function that says whether one of the signals came; a second one ends the process."""
    with _handled(lambda: log.info("stopping after this step")):
        yield asked


@contextmanager
def _handled(first: Callable[[], None]) -> Iterator[None]:
    def handle(number: int, frame: object) -> None:
        _asked.append(number)
        for one in before:
            signal.signal(one, signal.SIG_DFL)
        first()

    now = {one: signal.getsignal(one) for one in SIGNALS}
    # Ignored signals stay ignored: nohup asks for that. A handler that is not Python's (None) can't
    # be restored, so its signal is left alone.
    before = {one: old for one, old in now.items() if old not in (signal.SIG_IGN, None)}
    _asked.clear()
    for one in before:
        signal.signal(one, handle)
    try:
        yield
    finally:
        for one, old in before.items():
            signal.signal(one, old)
