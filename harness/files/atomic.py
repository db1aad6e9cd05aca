"""Files and folders that are either whole or not there, on the disk and not in its cache only.

What is being written has the name of its target with a dot before it and ".unfinished" behind it,
and is locked. What a killed process leaves under that name is not locked: the next one that writes
the same target takes it over. So nothing is left behind for good.
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
PROBE = 1 << 12  # bytes written to see whether a disk is full
TOGETHER = 16  # files synced at a time: the disk writes them in one go


@contextmanager
def writing(file: Path, *, sync: bool = True) -> Iterator[IO[bytes]]:
    """Open a file to be written; it takes its place only when the block ends without error.

    Args:
        file: the file; its folder is made.
        sync: whether it must be on the disk then. A cache that can tell a damaged file needs not
            wait for that. In a folder that is being placed, files are synced with the folder.
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
            if os.name == "nt":  # which renames no open file
                stream.close()
            unfinished.replace(file)
        except BaseException:
            if os.name == "nt":
                with suppress(OSError):
                    stream.close()
            unfinished.unlink(missing_ok=True)
            raise
        finally:
            with suppress(OSError):  # a full disk: told already
                stream.close()
        if sync:
            sync_to_disk(file.parent)


def write_text(file: Path, text: str) -> None:
    """Write a whole text file, UTF-8 with "\\n" line ends on every system."""
    with writing(file) as stream:
        stream.write(text.encode())


def write_json(file: Path, value: object) -> None:
    """Write a value as JSON, the same bytes for the same value."""
    write_text(file, json.dumps(value, indent=1, sort_keys=True) + "\n")


@contextmanager
def naming(file: Path) -> Iterator[None]:
    """Errors of the system that name no file, such as a full disk, name this one."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = str(file)
        raise


def must_be_free(folder: Path) -> None:
    """Refuse, before any work, a folder that `placing` could not put in its place.

    Raises:
        FileInTheWayError: if there is something in it, or a file in its place.
        SystemRefusedError: if a disk is mounted there, or nothing can be written above it.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FileInTheWayError(
            f"{folder} is there already, and no empty folder: remove it, or give another"
        )
    place = folder.resolve()
    if os.path.ismount(place):
        raise SystemRefusedError(f"{folder} is where a disk is mounted: give a new folder in it")
    must_be_writable(place.parent, f"{folder} can't be made")


def must_be_writable(folder: Path, trouble: str, remedy: str = "") -> None:
    """Refuse, before any work, a folder in which no file can be written; nothing is made.

    Args:
        folder: the folder, which may be missing: then the nearest one above it is tried.
        trouble: what can't be done then, the beginning of the message.
        remedy: what to do, its end.

    Raises:
        SystemRefusedError: if that folder is a file, is not to be written to, or the disk is full.
    """
    place = folder.absolute()
    above = next(one for one in (place, *place.parents) if one.exists())
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
    """A folder to fill; it takes the place of `folder` only when the block ends without error.

    Enter the block before long work: a folder that can't be placed, or that another process is
    making, is refused at once.

    Args:
        folder: a new folder, or an empty one.
        anew: whether `folder` may be there; it goes when the other one is whole.

    Raises:
        FileInTheWayError: if there is something in `folder`.
        BlockingIOError: if another process makes this folder.
        SystemRefusedError: as `must_be_free` does.
    """
    if not anew:
        must_be_free(folder)
    place = folder.resolve()  # of a link, what it leads to
    busy = f"another process is making {folder}: wait for it, or give another folder"
    lock = place.with_name(f".{place.name}.lock")
    with making(place.parent), locks.alone(lock, busy=busy) as locked:
        if not anew:
            must_be_free(folder)  # another process may have made it meanwhile
        unfinished = _unfinished(place, known=locked)
        _remove(unfinished)  # of a process that was killed
        unfinished.mkdir()
        try:
            yield unfinished
            _sync_tree(unfinished)
            if anew:
                _remove(place)
            elif place.is_dir():
                place.rmdir()  # empty, or this fails
            unfinished.rename(place)
            sync_to_disk(place.parent)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise


@contextmanager
def making(folder: Path) -> Iterator[None]:
    """Make a folder and those above it; after an error those that were made go, if empty."""
    place = folder.absolute()
    made = [one for one in (place, *place.parents) if not one.exists()]
    place.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        with suppress(OSError):
            for one in made:
                one.rmdir()
        raise


def sync_to_disk(path: Path) -> None:
    """Wait until a file, or the list of names in a folder, is on the disk."""
    if os.name == "nt" and path.is_dir():  # Windows opens no folder
        return
    descriptor = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if not path.is_dir():  # some network file systems sync no folder
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
    """Where a target is written; without locks, a name that no other process uses."""
    other = "" if known else f".{uuid.uuid4().hex[:8]}"
    return target.with_name(f".{target.name}{other}{UNFINISHED}")


def _unfinished_file(file: Path) -> tuple[Path, IO[bytes]]:
    """An empty file to write to, which no other process writes to."""
    unfinished = _unfinished(file, known=True)
    try:
        descriptor = locks.opened(unfinished)
    except locks.NoLocks:
        with suppress(OSError):
            unfinished.unlink()  # made to see whether there are locks
        unfinished, descriptor = _new(file)
    except PermissionError:
        if not unfinished.exists():
            raise
        unfinished, descriptor = _new(file)  # another user's process is at work, or was killed
    else:
        os.truncate(descriptor, 0)  # of a process that was killed
    return unfinished, os.fdopen(descriptor, "r+b")


def _new(file: Path) -> tuple[Path, int]:
    unfinished = _unfinished(file, known=False)
    return unfinished, os.open(unfinished, locks.FLAGS | os.O_EXCL, 0o666)


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
