"""Files and folders that are either whole or not there."""

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


@contextmanager
def placing(folder: Path) -> Iterator[Path]:
    """A folder to fill; it takes the place of `folder` only when the block ends without error.

    Raises:
        OSError: if there is something in `folder`.
    """
    folder = folder.absolute()
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
