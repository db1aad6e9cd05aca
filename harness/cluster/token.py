"""A token shows a worker that it shares a folder with the process that asks for work.

It is an empty file in that folder, from the first unit of work to the end of the last one.
"""

import os
import platform
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

from harness.errors import InputError

VERSION = version("descriptor-harness")


class UnfitWorkerError(InputError):
    """A worker has another folder, version or data than the process that asks for work."""


@contextmanager
def placed(folder: Path) -> Iterator[str]:
    """Yields the name of a new token in a folder, which is made; the token ends with the block."""
    name = secrets.token_hex(16)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).touch()
    try:
        yield name
    finally:
        (folder / name).unlink(missing_ok=True)


def must_be_here(file: Path, asked: str, trouble: str) -> None:
    """Refuse to work without the token, or with another version of the harness.

    Args:
        file: where this worker has the token if it has the folder.
        asked: version of the harness of the process that asks.
        trouble: what this worker has instead of the folder, and what to do.

    Raises:
        UnfitWorkerError: if this worker has no such file, or another version.
    """
    if not file.is_file():
        raise UnfitWorkerError(f"{me()} {trouble}")
    if asked != VERSION:
        raise UnfitWorkerError(
            f"{me()} has version {VERSION} of the harness, not {asked}: install the same"
        )


def me() -> str:
    """This worker, at the beginning of a message."""
    return f"the worker {platform.node()}, process {os.getpid()},"
