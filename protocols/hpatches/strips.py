"""Reads a strip from disk: its bytes are checked first, its pixels are decoded on demand."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from harness import verified
from harness.errors import FileMissingError, InputError
from harness.types import Patches
from protocols.imaging.grey import must_fit
from protocols.imaging.headers import DamagedError, png

CHECK = "hpatches strip 1"  # the number is raised whenever `check` refuses more, or tells more
HIGHEST = 1_000_000  # pixels: OpenCV reads with libpng, which refuses higher images


@dataclass(frozen=True)
class Strip:
    """The facts of a checked strip."""

    file: Path
    width: int  # of a patch, in pixels
    patches: int
    sha256: str  # of the file


def check(file: Path) -> Strip:
    """The facts of a strip, after a check of checksums, grey pixels and a height of whole patches.

    Raises:
        FileMissingError: if the file is missing.
        InputError: if it is damaged, or not a column of grey patches; names the file.
    """
    try:
        data = file.read_bytes()
    except OSError as error:
        raise FileMissingError(
            f"{file} is missing or unreadable ({error.strerror}): a sequence has the 16 strips ref,"
            " e1 to e5, h1 to h5 and t1 to t5"
        ) from error
    width, height = _size(file, data)
    if not width or height % width or not height:
        raise InputError(
            f"{file} is {width} x {height} pixels: a strip is a column of square patches, so its"
            " height is a multiple of its width"
        )
    if height > HIGHEST:
        raise InputError(
            f"{file} is {height} pixels high, and OpenCV reads at most {HIGHEST}: divide the"
            f" sequence into sequences of at most {HIGHEST // width} patches"
        )
    must_fit(width, height, file)
    return Strip(file, width, height // width, hashlib.sha256(data).hexdigest())


def check_all(files: Sequence[Path]) -> list[Strip]:
    """Like `check`, of many files; those that did not change since an earlier run are not read.

    `read` notices every change of a file that it decodes.
    """

    def facts(file: Path) -> verified.Facts:
        strip = check(file)
        return [strip.width, strip.patches, strip.sha256]

    every = verified.facts(CHECK, files, facts)
    return [
        Strip(file, int(width), int(patches), str(sha256))
        for file, (width, patches, sha256) in zip(files, every, strict=True)
    ]


def read(strip: Strip) -> Patches:
    """The patches of a strip.

    Raises:
        InputError: if the file changed since it was checked, or can't be decoded.
    """
    data = strip.file.read_bytes()
    if hashlib.sha256(data).hexdigest() != strip.sha256:
        raise InputError(f"{strip.file} changed since it was checked: start again")
    how = cv2.IMREAD_GRAYSCALE | cv2.IMREAD_IGNORE_ORIENTATION  # the pixels as stored
    image = cv2.imdecode(np.frombuffer(data, np.uint8), how)
    if image is None or image.shape != (strip.patches * strip.width, strip.width):
        raise InputError(
            f"{strip.file} can't be decoded as {strip.patches} grey patches: get it again"
        )
    return image.reshape(strip.patches, strip.width, strip.width)


def _size(file: Path, data: bytes) -> tuple[int, int]:
    """Width and height of an intact PNG of 8-bit grey."""
    try:
        head = png(data)
    except DamagedError as error:
        raise InputError(f"{file} {error}: get it again") from error
    if (head.bits, head.colour, head.interlace) != (8, 0, 0):
        raise InputError(
            f"{file} has {head.bits} bits a sample, colour type {head.colour} and interlace"
            f" {head.interlace}: strips must have 8 bits, colour type 0 (grey) and no interlace;"
            " they are not converted"
        )
    return head.width, head.height
