"""A folder for what a build has done so far: one that was stopped goes on from there."""

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from harness.files import atomic, locks

LOCK, REQUEST = "lock", "request.json"


@contextmanager
def resuming(folder: Path, request: Mapping[str, object]) -> Iterator[None]:
    """Work in a folder that nobody else works in; it is empty if another request was begun there.

    The block may remove the folder.

    Raises:
        BlockingIOError: if another process is at work in the folder.
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
    except (FileNotFoundError, UnicodeDecodeError):  # the latter is damaged
        return False


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != LOCK:
            path.unlink()
