"""Sample sets: made from photographs of scikit-image once, kept in the cache, known by a hash."""

import logging
import platform
from collections.abc import Callable
from importlib import metadata, resources
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from harness import cache as caches
from harness.cache import fingerprint
from harness.errors import ComputeError
from protocols.imaging.grey import read_grey

log = logging.getLogger(__name__)


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
        ComputeError: if this machine makes another set than it should; says what to report.
    """

    def made(folder: Path) -> None:
        log.info("making %s", name)
        make(folder)
        _verify(contents(folder), version, sha256)

    return caches.folder(
        "datasets",
        f"{name}-v{version}",
        make=made,
        is_whole=lambda folder: contents(folder) == sha256,
    )


def photograph(file: str, sample_name: str) -> UInt8[np.ndarray, "height width"]:
    """One of scikit-image's photographs in grey.

    Raises:
        ComputeError: if it is not installed; names the sample that is made from it.
    """
    path = Path(str(resources.files("skimage") / "data" / file))
    if not path.is_file():
        raise ComputeError(
            f"scikit-image {metadata.version('scikit-image')} comes without {file}, which"
            f" {sample_name} is made from: install 0.26"
        )
    return read_grey(path)


def _verify(found: str, version: int, sha256: str) -> None:
    if found != sha256:
        libraries = [f"{name} {metadata.version(name)}" for name in ("numpy", "scikit-image")]
        raise ComputeError(
            f"the sample made here has sha256 {found}, that of version {version} is {sha256}:"
            " scores on it would not compare. Report this line: "
            + ", ".join([*libraries, platform.machine(), platform.platform()])
        )
