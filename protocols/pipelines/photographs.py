"""The images of a pipeline; an image that can't be used is skipped, told and counted."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from harness import parallel
from harness.errors import InputError
from harness.files import folders
from protocols.imaging import grey
from protocols.imaging.photographs import SHOWN, find, sha256

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Photograph:
    """An image file that can be read."""

    folder: Path  # that the name is relative to
    name: str
    sha256: str  # of the file
    width: int
    height: int

    @property
    def file(self) -> Path:
        """Path of the file."""
        return folders.at(self.folder, self.name)

    def read(self) -> np.ndarray:
        """Grey values 0 to 255 as float32 [height, width]: pixels as stored, not turned by EXIF."""
        return grey.read_grey(self.file).astype(np.float32)


def opened(folder: Path) -> tuple[list[Photograph], dict[str, str]]:
    """The images in a folder and below it, and for each image that can't be read the reason.

    Raises:
        InputError: if the folder is missing, has no image, or none that can be read.
    """
    names = find(folder)
    results = parallel.each(lambda name: _opened(folder, name), names)
    pairs = list(zip(names, results, strict=True))
    skipped = {name: one for name, one in pairs if isinstance(one, str)}
    photographs = [one for one in results if isinstance(one, Photograph)]
    if not photographs:
        raise InputError(
            f"none of the {len(names)} images in {folder} can be read; the first:"
            f" {skipped[names[0]]}"
        )
    return photographs, skipped


def one(file: Path) -> Photograph:
    """The image of a file.

    Raises:
        InputError: if it can't be read; names the file.
    """
    if not file.is_file():
        raise InputError(f"there is no image {file}")
    return _of(file.parent, file.name)


def report(skipped: Mapping[str, str], total: int) -> None:
    """Log how many images are skipped, and why."""
    if not skipped:
        return
    told = "; ".join(f"{name}: {why}" for name, why in list(skipped.items())[:SHOWN])
    more = f"; and {len(skipped) - SHOWN} more" if len(skipped) > SHOWN else ""
    log.warning("%d of %d images skipped: %s%s", len(skipped), total, told, more)


def _opened(folder: Path, name: str) -> Photograph | str:
    try:
        return _of(folder, name)
    except (InputError, OSError) as error:
        return str(error)


def _of(folder: Path, name: str) -> Photograph:
    file = folders.at(folder, name)
    height, width = grey.check(file)
    return Photograph(folder, name, sha256(file), width, height)
