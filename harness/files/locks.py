"""Locks files by the operating system, which releases a lock when its process ends or is killed.

Only the lock counts, not the existence of its file: a file left by a killed process blocks nothing.
On NFS and other network file systems the server keeps the locks, so they work between machines.
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

PAUSE = 0.05  # seconds between two attempts to get a lock
# Windows has no O_NOFOLLOW; other systems have no O_BINARY.
FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
MISSING = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}  # without locks

log = logging.getLogger(__name__)


class NoLocks(SystemRefusedError):
    """The file system does not support locks."""


def opened(file: Path, *, busy: str | None = None) -> int:
    """Open and lock a file, which is made if it is missing; closing it releases the lock.

    Args:
        file: the file; its folder exists.
        busy: message of the error if another process or thread holds the lock. None: wait for it.

    Returns:
        The file descriptor.

    Raises:
        BlockingIOError: if another process or thread holds the lock and `busy` is given.
        NoLocks: if the file system does not support locks.
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
            continue  # its last holder renamed or removed the file: open it again
        if busy is not None:
            raise BlockingIOError(busy)
        time.sleep(PAUSE)


@contextmanager
def alone(file: Path, *, busy: str | None = None) -> Iterator[bool]:
    """Hold a lock while the block runs; its file is made at the start and removed at the end.

    Yields whether there is a lock. If the file system does not support locks, this is logged and
    the block runs without.

    Args:
        file: the lock's file; its folder exists.
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
        # Removed while locked: a waiting process sees that the file is gone and makes a new one.
        with suppress(OSError):  # Windows removes no open file: it stays and blocks nothing
            file.unlink()
        os.close(descriptor)


def _is(descriptor: int, file: Path) -> bool:
    """Whether the open file is still the file of this name."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(file))
    except FileNotFoundError:
        return False


@cache
def _warn_once(folder: Path, reason: str) -> None:
    log.warning(
        "the file system of %s has no locks (%s): make sure yourself that no two processes write"
        " the same file there",
        folder,
        reason,
    )
