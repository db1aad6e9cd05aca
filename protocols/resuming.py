"""A work folder for a build, so that a build that was stopped can resume."""

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from harness.errors import FileInTheWayError
from harness.files import atomic, locks

LOCK, REQUEST = "lock", "request.json"


@contextmanager
def resuming(
    folder: Path, request: Mapping[str, object], *, replace: bool = True
) -> Iterator[None]:
    """Lock a work folder for this process, and continue the work of the same request in it.

    The caller may remove the folder inside the `with` block.

    Args:
        folder: made if it is missing.
        request: what is made, as JSON values.
        replace: whether files of another request are removed; if not, they are an error.

    Raises:
        BlockingIOError: if another process works in the folder.
        FileInTheWayError: if the folder has files of another request, and `replace` is False.
    """
    text = json.dumps(request, indent=1)
    busy = f"another process is at work in {folder}: wait for it"
    with atomic.making(folder), locks.alone(folder / LOCK, busy=busy):
        asked = folder / REQUEST
        if not _is(asked, text):
            if asked.exists() and not replace:
                raise FileInTheWayError(
                    f"{folder} has the unfinished work of another model or other settings: finish"
                    " it, or remove the folder"
                )
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
