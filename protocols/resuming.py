"""A work folder for a build, so that a build that was stopped can resume."""

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from harness.files import atomic, locks

LOCK, REQUEST = "lock", "request.json"


@contextmanager
def resuming(folder: Path, request: Mapping[str, object]) -> Iterator[None]:
    """Lock a work folder for this process; files of a build with another request are removed.

    The caller may remove the folder inside the `with` block.

    Raises:
        BlockingIOError: if another process works in the folder.
    """
    text = json.dumps(request, indent=1)
    busy = f"another process is at work in {folder}: wait for it"
    with atomic.making(folder), locks.alone(folder / LOCK, busy=busy):
        asked = folder / REQUEST
        if not _is(asked, text):
            _empty(folder)
            atomic.write_text(asked, text)
        yield


def _is(asked: Path, text: str) -> bool:
    try:
        return asked.read_text("utf-8") == text
    except (FileNotFoundError, UnicodeDecodeError):  # missing or damaged
        return False


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != LOCK:
            path.unlink()
