"""Handles signals that ask a process to end: Ctrl-C, SIGTERM, a closed terminal."""

import logging
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SIGNALS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]
STATUS = 128  # plus the signal's number: exit status of a process ended by a signal, as in shells

log = logging.getLogger(__name__)

_asked: list[int] = []


def asked() -> bool:
    """Whether a signal asked this process to end."""
    return bool(_asked)


def status() -> int:
    """Exit status of a process that a signal asked to end."""
    return STATUS + (_asked[0] if _asked else signal.SIGINT)


@contextmanager
def as_interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt in the block for each of the signals, so that it cleans up.

    A second signal ends the process at once.
    """

    def interrupt() -> None:
        raise KeyboardInterrupt

    with _handled(interrupt):
        yield


@contextmanager
def after_this_step() -> Iterator[Callable[[], bool]]:
    """Yields a function: whether a signal has arrived. A second signal ends the process."""
    with _handled(lambda: log.info("stopping after this step")):
        yield asked


@contextmanager
def _handled(first: Callable[[], None]) -> Iterator[None]:
    def handle(number: int, frame: object) -> None:
        _asked.append(number)
        for signum in before:
            signal.signal(signum, signal.SIG_DFL)
        first()

    now = {signum: signal.getsignal(signum) for signum in SIGNALS}
    # Ignored signals stay ignored, as nohup requires. A handler that Python did not install (None)
    # can't be restored, so its signal is not changed.
    before = {signum: old for signum, old in now.items() if old not in (signal.SIG_IGN, None)}
    _asked.clear()
    for signum in before:
        signal.signal(signum, handle)
    try:
        yield
    finally:
        for signum, old in before.items():
            signal.signal(signum, old)
