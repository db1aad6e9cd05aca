"""Where the harness keeps what it can make or fetch again."""

import atexit
import functools
import logging
import os
import shutil
import tempfile
from pathlib import Path

import platformdirs

from harness.files import atomic

REMEDY = "set HARNESS_CACHE to a folder of yours"

log = logging.getLogger(__name__)


def cache(*parts: str) -> Path:
    """A place below the user's cache folder, to read from; HARNESS_CACHE moves it."""
    root = os.environ.get("HARNESS_CACHE")
    home = Path(root) if root else Path(platformdirs.user_cache_dir("descriptor-harness"))
    return home.joinpath(*parts)


def writable() -> bool:
    """Whether something can be kept in the cache; if not, it is logged once why and what to do."""
    return _is_writable(cache())


def place(*parts: str) -> Path:
    """A place to write to: in the cache, or where that can't be written to, in a temporary folder.

    The temporary folder is this process's and goes with it.
    """
    return cache(*parts) if writable() else _temporary().joinpath(*parts)


def places(*parts: str) -> list[Path]:
    """Places to look in: the cache and, if it can't be written to, the temporary folder."""
    return [cache(*parts)] + ([] if writable() else [_temporary().joinpath(*parts)])


@functools.cache
def _is_writable(root: Path) -> bool:
    try:
        atomic.must_be_writable(root, f"nothing can be kept in the cache {root}", REMEDY)
    except OSError as error:
        log.warning("%s; this run works without, and the next one computes the same again", error)
        return False
    return True


@functools.cache
def _temporary() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="harness-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
