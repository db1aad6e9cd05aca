"""Sample sets: made from photographs of scikit-image once, kept in the cache, known by a hash."""

import hashlib
import logging
import platform
import shutil
from collections.abc import Callable
from importlib import metadata, resources
from pathlib import Path

import numpy as np
from filelock import FileLock
from jaxtyping import UInt8

from harness import folders, home
from harness.atomic import placing
from protocols.images.grey import read_grey

log = logging.getLogger(__name__)


def fingerprint(folder: Path) -> str:
    """SHA-256 over the names and contents of all files below a folder, which may be missing."""
    digest = hashlib.sha256()
    there = folders.files(folder)
    files = {file.relative_to(folder).as_posix(): file for file in there}
    for name in sorted(files):
        own = hashlib.sha256(files[name].read_bytes()).hexdigest()
        digest.update(f"{name} {own}\n".encode())
    return digest.hexdigest()


def kept(
    name: str,
    version: int,
    make: Callable[[Path], None],
    sha256: str,
    contents: Callable[[Path], str] = fingerprint,
) -> Path:
    """The folder of a set; it is made on first use and kept in the cache.

    Where it is not as it was made, it is made again; it goes only when the other is verified.

    Args:
        name: of the set; with the version, that of its folder.
        version: raised with the hash.
        make: writes the set into a folder.
        sha256: what `contents` gives for the set of this version.
        contents: the hash of what a folder holds, which may be missing or damaged.

    Raises:
        RuntimeError: if this machine makes another set than it should; says what to report.
    """
    folder = home.cache("datasets", f"{name}-v{version}")
    if contents(folder) == sha256:
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_name(f"{folder.name}.lock")):
        if contents(folder) != sha256:  # another process may have made it meanwhile
            if folder.is_dir():
                log.warning("%s is damaged or was edited: it is replaced", folder)
            log.info("making %s in %s", name, folder)
            with placing(folder) as unfinished:
                make(unfinished)
                _verify(contents(unfinished), version, sha256)
                if folder.is_dir():
                    shutil.rmtree(folder)
    return folder


def photograph(file: str, sample_name: str) -> UInt8[np.ndarray, "height width"]:
    """One of scikit-image's photographs in grey.

    Raises:
        RuntimeError: if it is not installed; names the sample that is made from it.
    """
    path = Path(str(resources.files("skimage") / "data" / file))
    if not path.is_file():
        raise RuntimeError(
            f"scikit-image {metadata.version('scikit-image')} comes without {file}, which"
            f" {sample_name} is made from: install 0.26"
        )
    return read_grey(path)


def _verify(found: str, version: int, sha256: str) -> None:
    if found != sha256:
        libraries = [f"{name} {metadata.version(name)}" for name in ("numpy", "scikit-image")]
        raise RuntimeError(
            f"the sample made here has sha256 {found}, that of version {version} is {sha256}:"
            " scores on it would not compare. Report this line: "
            + ", ".join([*libraries, platform.machine(), platform.platform()])
        )
