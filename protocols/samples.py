"""Sample data sets: made once from scikit-image's photographs, cached, verified by a hash."""

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
    """The folder of a sample set; it is made on first use and kept in the cache.

    A damaged set is made again. The damaged folder is removed only once the new set is verified.

    Args:
        name: of the set; name and version give the folder's name.
        version: of the set; raised whenever the hash changes.
        make: writes the set into a folder.
        sha256: the hash of this version, as `contents` computes it.
        contents: computes the hash of a folder's contents; files may be missing or damaged.

    Raises:
        ComputeError: if the set made on this machine has another hash; says what to report.
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
    """A photograph of scikit-image in grey.

    Raises:
        ComputeError: if the photograph is not installed; names the sample that needs it.
    """
    path = Path(str(resources.files("skimage") / "data" / file))
    if not path.is_file():
        raise ComputeError(
            f"scikit-image {metadata.version('scikit-image')} comes without {file}, which"
            f" {sample_name} is made from: install 0.26"
        )
    return read_grey(path)


def _verify(actual: str, version: int, sha256: str) -> None:
    if actual != sha256:
        libraries = [f"{name} {metadata.version(name)}" for name in ("numpy", "scikit-image")]
        raise ComputeError(
            f"the sample made here has sha256 {actual}, that of version {version} is {sha256}:"
            " scores on it could not be compared. Report this line: "
            + ", ".join([*libraries, platform.machine(), platform.platform()])
        )
