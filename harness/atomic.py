"""Files and folders that are either whole or not there."""

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def writing(file: Path) -> Iterator[IO[bytes]]:
    """Open a file to be written; it takes its place only when the block ends without error."""
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_name(f".{file.name}.{uuid.uuid4().hex[:8]}")
    try:
        with unfinished.open("xb") as stream:
            yield stream
        unfinished.replace(file)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def write_text(file: Path, text: str) -> None:
    """Write a whole text file, UTF-8 with "\\n" line ends on every system."""
    with writing(file) as stream:
        stream.write(text.encode())


def must_be_free(folder: Path) -> None:
    """Refuse, before any work, a folder that `placing` could not put in its place.

    Raises:
        FileExistsError: if there is something in it, or a file in its place.
        OSError: if a disk is mounted there, or nothing can be written above it.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FileExistsError(
            f"{folder} is there already, and no empty folder: remove it, or give another"
        )
    place = folder.resolve()
    if os.path.ismount(place):
        raise OSError(f"{folder} is where a disk is mounted: give a new folder in it")
    above = next(one for one in place.parents if one.exists())
    if not (above.is_dir() and os.access(above, os.W_OK)):
        raise OSError(f"{folder} can't be made: {above} is no folder that can be written to")


@contextmanager
def placing(folder: Path) -> Iterator[Path]:
    """A folder to fill; it takes the place of `folder` only when the block ends without error.

    Ask `must_be_free` before long work.

    Raises:
        OSError: if there is something in `folder` at the end.
    """
    folder = folder.resolve()  # of a link, what it leads to
    unfinished = folder.with_name(f".{folder.name}.unfinished-{uuid.uuid4().hex[:8]}")
    unfinished.mkdir(parents=True)
    try:
        yield unfinished
        if folder.is_dir():
            folder.rmdir()  # empty, or this fails
        unfinished.rename(folder)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
