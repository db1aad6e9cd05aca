"""The cache folder of the harness, for data that it can compute or download again."""

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
    """A path in the user's cache folder, for reading; HARNESS_CACHE changes the folder."""
    root = os.environ.get("HARNESS_CACHE")
    home = Path(root) if root else Path(platformdirs.user_cache_dir("descriptor-harness"))
    return home.joinpath(*parts)


def writable() -> bool:
    """Whether the cache can be written; if not, the reason and a remedy are logged once."""
    return _is_writable(cache())


def place(*parts: str) -> Path:
    """A path for writing: in the cache or, if that is not writable, in a temporary folder.

    The temporary folder belongs to this process and is deleted at its end.
    """
    return cache(*parts) if writable() else _temporary().joinpath(*parts)


def places(*parts: str) -> list[Path]:
    """Paths for reading: in the cache and, if that is not writable, in the temporary folder."""
    return [cache(*parts)] + ([] if writable() else [_temporary().joinpath(*parts)])


@functools.cache
def _is_writable(root: Path) -> bool:
    try:
        atomic.must_be_writable(root, f"nothing can be kept in the cache {root}", REMEDY)
    except OSError as error:
        log.warning("%s; this run works without, and the next run computes the same again", error)
        return False
    return True


@functools.cache
def _temporary() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="harness-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
