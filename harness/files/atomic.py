"""Writes files and folders that either are complete or do not exist, and syncs them to the disk.

While "name" is being written, it is called ".name.unfinished" and is locked. After a process was
killed, its unfinished file is not locked, and the next process that writes the same target reuses
it. So no unfinished files pile up.
"""

import json
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from harness.errors import FileInTheWayError, SystemRefusedError
from harness.files import locks

UNFINISHED = ".unfinished"
PROBE = 1 << 12  # bytes written to find out whether a disk is full
TOGETHER = 16  # files synced at a time, which the disk then writes together


@contextmanager
def writing(file: Path, *, sync: bool = True) -> Iterator[IO[bytes]]:
    """Open a file for writing; it appears under its name only when the block ends without error.

    Args:
        file: the file; its folder is made if it is missing.
        sync: whether to wait until the file is on the disk. A cache that detects damaged files need
            not wait. Files in a folder of `placing` are synced together with it.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    sync = sync and not any(part.endswith(UNFINISHED) for part in file.parts)
    with naming(file):
        unfinished, stream = _unfinished_file(file)
        try:
            yield stream
            stream.flush()
            if sync:
                os.fsync(stream.fileno())
            if os.name == "nt":  # Windows renames no open file
                stream.close()
            unfinished.replace(file)
        except BaseException:
            if os.name == "nt":
                with suppress(OSError):
                    stream.close()
            unfinished.unlink(missing_ok=True)
            raise
        finally:
            with suppress(OSError):  # a full disk, which has raised its error already
                stream.close()
        if sync:
            sync_to_disk(file.parent)


def write_text(file: Path, text: str) -> None:
    """Write a text file in UTF-8, with "\\n" line ends on every system."""
    with writing(file) as stream:
        stream.write(text.encode())


def write_json(file: Path, value: object) -> None:
    """Write a value as JSON; the same value gives the same bytes."""
    write_text(file, json.dumps(value, indent=1, sort_keys=True) + "\n")


@contextmanager
def naming(file: Path) -> Iterator[None]:
    """Add the file to system errors that name none, such as that of a full disk."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = str(file)
        raise


def must_be_free(folder: Path) -> None:
    """Refuse, before any work, a folder that `placing` could not put under its name.

    Raises:
        FileInTheWayError: if the folder is not empty, or is a file.
        SystemRefusedError: if a disk is mounted there, or its parent folder is not writable.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FileInTheWayError(
            f"{folder} is there already, and is not an empty folder: remove it, or give another"
        )
    place = folder.resolve()
    if os.path.ismount(place):
        raise SystemRefusedError(f"{folder} is where a disk is mounted: give a new folder in it")
    must_be_writable(place.parent, f"{folder} can't be made")


def must_be_writable(folder: Path, trouble: str, remedy: str = "") -> None:
    """Refuse, before any work, a folder in which no file can be written; nothing is left there.

    Args:
        folder: the folder. If it is missing, the nearest existing folder above it is tested.
        trouble: beginning of the message: the action that is impossible.
        remedy: end of the message: what the user can do.

    Raises:
        FileInTheWayError: if the tested folder is a file.
        SystemRefusedError: if it is not writable, or the disk is full.
    """
    place = folder.absolute()
    above = next(parent for parent in (place, *place.parents) if parent.exists())
    end = f": {remedy}" if remedy else ""
    if not above.is_dir():
        raise FileInTheWayError(f"{trouble}: {above} is no folder{end}")
    try:
        with tempfile.TemporaryFile(dir=above) as stream:
            stream.write(bytes(PROBE))
            stream.flush()
    except OSError as error:
        reason = error.strerror or str(error)
        raise SystemRefusedError(
            f"{trouble}: {above} can't be written to ({reason}){end}"
        ) from error


@contextmanager
def placing(folder: Path, *, anew: bool = False) -> Iterator[Path]:
    """Yield a folder to fill; it is renamed to `folder` only when the block ends without error.

    Enter the block before long work: a folder that can't be placed, or that another process is
    making, is refused at once.

    Args:
        folder: a new or an empty folder.
        anew: whether `folder` may exist; it is removed when its replacement is complete.

    Raises:
        FileInTheWayError: if `folder` is not empty.
        BlockingIOError: if another process is making this folder.
        SystemRefusedError: as `must_be_free` does.
    """
    if not anew:
        must_be_free(folder)
    place = folder.resolve()  # the target, if it is a link
    busy = f"another process is making {folder}: wait for it, or give another folder"
    lock = place.with_name(f".{place.name}.lock")
    with making(place.parent), locks.alone(lock, busy=busy) as locked:
        if not anew:
            must_be_free(folder)  # another process may have made it in the meantime
        unfinished = _unfinished(place, known=locked)
        _remove(unfinished)  # left by a killed process
        unfinished.mkdir()
        try:
            yield unfinished
            _sync_tree(unfinished)
            if anew:
                _remove(place)
            elif place.is_dir():
                place.rmdir()  # fails unless it is empty
            unfinished.rename(place)
            sync_to_disk(place.parent)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise


@contextmanager
def making(folder: Path) -> Iterator[None]:
    """Make a folder and its parents; after an error, remove those made here, if they are empty."""
    place = folder.absolute()
    made = [parent for parent in (place, *place.parents) if not parent.exists()]
    place.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        with suppress(OSError):
            for parent in made:
                parent.rmdir()
        raise


def sync_to_disk(path: Path) -> None:
    """Wait until a file, or the list of names in a folder, is on the disk (fsync)."""
    if os.name == "nt" and path.is_dir():  # Windows can't open folders
        return
    descriptor = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if not path.is_dir():  # some network file systems can't sync folders
            error.filename = str(path)
            raise
    finally:
        os.close(descriptor)


def _sync_tree(folder: Path) -> None:
    with ThreadPoolExecutor(TOGETHER) as pool:
        list(
            pool.map(sync_to_disk, [folder, *(p for p in folder.rglob("*") if not p.is_symlink())])
        )


def _unfinished(target: Path, *, known: bool) -> Path:
    """The unfinished name of a target; without locks, one that no other process uses."""
    other = "" if known else f".{uuid.uuid4().hex[:8]}"
    return target.with_name(f".{target.name}{other}{UNFINISHED}")


def _unfinished_file(file: Path) -> tuple[Path, IO[bytes]]:
    """An empty unfinished file that no other process writes."""
    unfinished = _unfinished(file, known=True)
    try:
        descriptor = locks.opened(unfinished)
    except locks.NoLocks:
        with suppress(OSError):
            unfinished.unlink()  # it was made only to test for locks
        unfinished, descriptor = _new(file)
    except PermissionError:
        if not unfinished.exists():
            raise
        unfinished, descriptor = _new(file)  # it belongs to a process of another user
    else:
        os.truncate(descriptor, 0)  # left by a killed process
    return unfinished, os.fdopen(descriptor, "r+b")


def _new(file: Path) -> tuple[Path, int]:
    unfinished = _unfinished(file, known=False)
    return unfinished, os.open(unfinished, locks.FLAGS | os.O_EXCL, 0o666)


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
