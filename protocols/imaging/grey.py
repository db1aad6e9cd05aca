"""Reads an image file as 8-bit grey; an image that would lose its content is refused."""

import os
from pathlib import Path

import cv2
import numpy as np
from jaxtyping import UInt8

from harness.errors import InputError
from protocols.imaging.headers import DamagedError, Header, header

LIMIT = "HARNESS_MAX_PIXELS"
MOST_PIXELS = 160_000_000
"""Pixels of the largest image that is decoded, unless the variable LIMIT gives another number.

The largest cameras have 151 million pixels. A file of 875 KB may declare 900 million, which take
2.7 GB when decoded and several times as much as floating-point numbers.
"""

OPENCV_SIDE = 1_000_000  # limit of libpng, which OpenCV uses; OpenCV's own limit is 2^20
OPENCV_PIXELS = 1 << 30

FULL = 1 << 14
"""16-bit images with all values below this hold 14 bits or fewer, and are refused.

Such images as 8-bit grey would have at most 64 values, all near black; 12 bits give 16 values.
"""

STRIPE = 1 << 20  # pixels that are turned to grey at a time

Grey = UInt8[np.ndarray, "height width"]


def read_grey(file: Path) -> Grey:
    """An image in 8-bit grey: BT.601 luma in integers, so that every machine rounds alike.

    Raises:
        InputError: if the file can't be decoded, is too large, or has values that would be lost in
            8 bits; names the file.
    """
    return decode(file.read_bytes(), file)


def check(file: Path) -> tuple[int, int]:
    """Height and width of an image that `read_grey` can read; only 16-bit images are decoded.

    Raises:
        InputError: as `read_grey`, except for faults that only decoding shows.
    """
    data = file.read_bytes()
    known = _readable(data, file)
    if known.bits > 8:
        decode(data, file)
    return known.height, known.width


def decode(data: bytes, file: Path) -> Grey:
    """Like `read_grey`, from the contents of a file."""
    known = _readable(data, file)
    if known.bits > 8:
        _must_use_range(_pixels(data, file, cv2.IMREAD_COLOR | cv2.IMREAD_ANYDEPTH), file)
    return of_colours(_pixels(data, file, cv2.IMREAD_COLOR))


def of_colours(colours: UInt8[np.ndarray, "height width 3"]) -> Grey:
    """Pixels in OpenCV's order, blue, green, red, in 8-bit grey, as `read_grey` does."""
    grey = np.empty(colours.shape[:2], np.uint8)
    rows = max(1, STRIPE // colours.shape[1])
    for top in range(0, len(colours), rows):  # 32-bit numbers for one stripe at a time
        blue, green, red = np.moveaxis(colours[top : top + rows].astype(np.int32), 2, 0)
        grey[top : top + rows] = (4899 * red + 9617 * green + 1868 * blue + (1 << 13)) >> 14
    return grey


def _readable(data: bytes, file: Path) -> Header:
    """The header of an image file; the file is whole and not too large."""
    try:
        known = header(data)
    except DamagedError as error:
        raise InputError(f"{file} can't be decoded, it {error}: replace the image") from error
    must_fit(known.width, known.height, file)
    if known.form == "PNM" and known.most is not None and known.most < 255:
        raise InputError(
            f"{file} has grey values from 0 to {known.most}, and OpenCV would take 255 for white:"
            " stretch them to 0..255 and save the image again"
        )
    return known


def must_fit(width: int, height: int, file: Path) -> None:
    """Refuse an image that is too large, by its declared size, before memory is allocated.

    Raises:
        InputError: if the image is too large for OpenCV, or has more pixels than the limit.
    """
    size = f"{file} has {width} x {height} pixels"
    if max(width, height) > OPENCV_SIDE or width * height > OPENCV_PIXELS:
        raise InputError(
            f"{size}: the file may be sound, but it is too large for OpenCV, which reads at most"
            f" {OPENCV_SIDE} a side and {OPENCV_PIXELS} in all; make the image smaller"
        )
    most = _most_pixels()
    if width * height > most:
        raise InputError(
            f"{size}, more than {most}, and was not decoded: that could fill the memory; make the"
            f" image smaller, or set {LIMIT} to a larger number"
        )


def _most_pixels() -> int:
    given = os.environ.get(LIMIT)
    if not given:
        return MOST_PIXELS
    if not (given.isascii() and given.isdigit() and len(given) < 20 and int(given) > 0):
        raise InputError(f"{LIMIT} is {given!r}: a number of pixels is wanted, as {MOST_PIXELS}")
    return int(given)


def _pixels(data: bytes, file: Path, how: int) -> np.ndarray:
    # The orientation tag is ignored: homographies refer to the pixels as stored.
    try:
        image = cv2.imdecode(np.frombuffer(data, np.uint8), how | cv2.IMREAD_IGNORE_ORIENTATION)
    except cv2.error:
        image = None
    if image is None:
        raise InputError(f"{file} can't be decoded ({len(data)} bytes): replace the image")
    return np.asarray(image)


def _must_use_range(colours: np.ndarray, file: Path) -> None:
    if colours.dtype != np.uint16:
        return
    low, high = int(colours.min()), int(colours.max())
    if 0 < high < FULL:
        bits = max(high.bit_length(), 8)
        raise InputError(
            f"{file} has 16-bit values, and they are {low} to {high}: as 8-bit grey they would be"
            f" {low >> 8} to {high >> 8}, all but black. If they are {bits}-bit values, multiply"
            f" them by {2 ** (16 - bits)}, or save the image in 8 bits"
        )
