"""A folder for what a build has done so far: one that was stopped goes on from there."""

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from harness import atomic

LOCK = "lock"


@contextmanager
def resuming(folder: Path, request: Mapping[str, object]) -> Iterator[None]:
    """Work in a folder that nobody else works in; it is empty if another request was begun there.

    Raises:
        BlockingIOError: if another process is at work in the folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(request, indent=1)
    lock = FileLock(folder / LOCK, blocking=False)
    try:
        lock.acquire()
    except Timeout as error:
        raise BlockingIOError(f"another process is at work in {folder}: wait for it") from error
    with lock:
        asked = folder / "request.json"
        if not asked.is_file() or asked.read_text("utf-8") != text:
            _empty(folder)
            atomic.write_text(asked, text)
        yield


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != LOCK:
            path.unlink()
