"""Locks of the operating system, which frees them when the process ends, even if it is killed.

The lock counts, not its file: a file that a killed process left behind stops nobody. On NFS and
other network file systems the server keeps the locks, so they hold between machines.
"""

import errno
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from filelock import lock_descriptor

from harness.errors import SystemRefusedError

PAUSE = 0.05  # seconds between two tries to get a lock that is waited for
# Windows has no O_NOFOLLOW, other systems no O_BINARY.
FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
MISSING = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}  # no locks there

log = logging.getLogger(__name__)


class NoLocks(SystemRefusedError):
    """The file system has no locks."""


def opened(file: Path, *, busy: str | None = None) -> int:
    """Open a file, made where there is none, and lock it; the lock ends when it is closed.

    Args:
        file: the file; its folder is there.
        busy: the message of the error where another process or thread holds the lock; where None,
            it is waited for.

    Raises:
        BlockingIOError: if another holds it and `busy` is given.
        NoLocks: if the file system has no locks.
    """
    while True:
        descriptor = os.open(file, FLAGS, 0o666)
        try:
            locked = lock_descriptor(descriptor, blocking=False)
            if locked and _is(descriptor, file):
                return descriptor
        except OSError as error:
            os.close(descriptor)
            if error.errno in MISSING:
                raise NoLocks(error.errno, error.strerror, str(file)) from error
            raise
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        if locked:
            continue  # its last holder renamed or removed the file: open the one that is there now
        if busy is not None:
            raise BlockingIOError(busy)
        time.sleep(PAUSE)


@contextmanager
def alone(file: Path, *, busy: str | None = None) -> Iterator[bool]:
    """Hold a lock while the block runs; its file is made for it and removed at the end.

    Yields whether there is a lock: where the file system has none, that is logged and the work is
    done without.

    Args:
        file: of the lock; its folder is there.
        busy: as in `opened`.

    Raises:
        BlockingIOError: as `opened` does.
    """
    try:
        descriptor = opened(file, busy=busy)
    except NoLocks as error:
        with suppress(OSError):
            file.unlink()
        _warn_once(file.parent, error.strerror)
        yield False
        return
    try:
        yield True
    finally:
        # Removed while it is held: a waiting process finds that it is gone, and makes another.
        with suppress(OSError):  # Windows removes no open file: it stays, and stops nobody
            file.unlink()
        os.close(descriptor)


def _is(descriptor: int, file: Path) -> bool:
    """Whether an open file still has its name."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(file))
    except FileNotFoundError:
        return False


@cache
def _warn_once(folder: Path, reason: str) -> None:
    log.warning(
        "the file system of %s has no locks (%s): see to it yourself that no two processes write"
        " the same there",
        folder,
        reason,
    )
