"""Photographs in a folder: their names and sizes, and a check against a COLMAP model's images."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.data import copies
from harness.errors import InputError
from harness.files import folders
from protocols.imaging.grey import read_grey

ENDINGS = (".jpg", ".jpeg", ".png", ".ppm", ".pgm", ".bmp", ".tif", ".tiff")

SHOWN = 5  # a message names this many of the images that are left out

log = logging.getLogger(__name__)


def find(images: Path) -> list[str]:
    """Names of the image files in a folder and below it, relative to it, as COLMAP has them.

    Links are followed.

    Raises:
        SystemRefusedError: if a link below the folder is broken; names the link.
        InputError: if the folder is missing or has no image.
    """
    if not images.is_dir():
        raise InputError(f"{images} is not a folder: give one that holds photographs")
    names = sorted(
        file.relative_to(images).as_posix()
        for file in folders.files(images)
        if file.suffix.lower() in ENDINGS
    )
    if not names:
        raise InputError(f"no images in {images} nor below it: files end in {' '.join(ENDINGS)}")
    return names


def readable(
    images: Path, names: Sequence[str]
) -> tuple[dict[str, tuple[int, int]], dict[str, str]]:
    """Height and width of each readable image, and the reason for each image left out."""
    shapes: dict[str, tuple[int, int]] = {}
    left_out: dict[str, str] = {}
    for name in names:
        try:
            height, width = read_grey(images / name).shape
            shapes[name] = height, width
        except ValueError as error:
            left_out[name] = str(error)
    if left_out:
        log.warning("%d of %d images left out%s", len(left_out), len(names), some(left_out))
    return shapes, left_out


def some(left_out: Mapping[str, str]) -> str:
    """The first images that are left out, with the reasons, as the end of a message."""
    told = [f"{name} ({why})" for name, why in left_out.items()]
    more = [f"and {len(told) - SHOWN} more"] * (len(told) > SHOWN)
    return ": " * bool(told) + ", ".join(told[:SHOWN] + more)


def check_names(names: Sequence[str], images: Path, listed: Sequence[str], model: Path) -> None:
    """Refuse a model with images that are not listed; log listed images that it lacks."""
    names, listed = [list(map(folders.same_form, some)) for some in (names, listed)]
    missing = sorted(set(names) - set(listed))
    if missing:
        raise InputError(
            f"{len(missing)} of {len(names)} images of {model} are not in {images}: {missing[0]}"
            f"{' and others' * (len(missing) > 1)}; give the folder that the model's names are"
            " relative to"
        )
    left = sorted(set(listed) - set(names))
    if left:
        log.warning(
            "%d of %d images are not used, since the model lacks them: %s%s",
            len(left), len(listed), left[0], " and others" * (len(left) > 1),
        )  # fmt: skip


def sha256(file: Path) -> str:
    """The sha256 of a file's contents."""
    return copies.digest(file)
