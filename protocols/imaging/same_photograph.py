"""Finds photographs that two folders share, by their content, so that no test image is trained on.

A fingerprint is the sign of the lowest 16 x 16 frequencies of an image, with its median taken off:
255 bits. OpenCV's `img_hash.pHash` has 64 bits and does not average before it makes an image
small: of a quarter of the size it differs in up to 17 bits, and different photographs in as few as
11. To find cut images, parts of one image are compared with the whole of the other, so an image has
one fingerprint for each way to cut it. `results/studies/same-photographs.md` has the measurements
behind `SAME`, and what is not found.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import cv2
import numpy as np
from jaxtyping import Int, UInt8, UInt64

from harness import parallel
from protocols.imaging import photographs
from protocols.imaging.grey import Grey, read_grey

SIDE, FREQUENCIES = 64, 16
FIRST = 256  # pixels of the longer side that an image is reduced to before it is cut
CUTS = (0.0, 0.04, 0.08)  # shares of the height or width that are cut off at each of four sides
SAME = 64  # most bits of 255 that differ between images of one photograph

Cuts = UInt64[np.ndarray, "cuts 4"]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Pair:
    """An image of each of two folders that seem to be one photograph."""

    first: str  # path in the first folder
    second: str
    bits: int  # that differ


def shared(first: Path, second: Path) -> list[Pair]:
    """The photographs that two folders share, the surest pairs first.

    Images in subfolders are compared, too. Images that can't be read are left out and logged.

    Raises:
        InputError: if a folder is missing or has no image.
    """
    return pairs(of_folder(first), of_folder(second))


def pairs(ours: Mapping[str, Cuts], theirs: Mapping[str, Cuts]) -> list[Pair]:
    """The pairs of images that seem to be one photograph, by their fingerprints, surest first."""
    names = [*theirs]
    many = np.stack([*theirs.values()]) if names else np.empty((0, 1, 4), np.uint64)
    found = [
        Pair(name, names[k], int(bits[k]))
        for name, own in ours.items()
        for bits in [differences(own, many)]
        for k in np.flatnonzero(bits <= SAME)
    ]
    return sorted(found, key=lambda pair: (pair.bits, pair.first, pair.second))


def of_folder(folder: Path) -> dict[str, Cuts]:
    """The fingerprints of each image of a folder that can be read, by name; others are logged.

    Raises:
        InputError: if the folder is missing or has no image.
    """

    def of(name: str) -> Cuts | str:
        try:
            return fingerprints(read_grey(folder / name))
        except ValueError as error:
            return str(error)

    found = {}
    names = photographs.find(folder)
    for name, made in zip(names, parallel.each(of, names), strict=True):
        if isinstance(made, str):
            log.warning("%s can't be compared: %s", folder / name, made)
        else:
            found[name] = made
    return found


def differences(own: Cuts, many: UInt64[np.ndarray, "images cuts 4"]) -> Int[np.ndarray, " images"]:
    """Bits that differ between one image and each of many, in the best of all cuts of either."""
    theirs_cut = np.bitwise_count(many ^ own[0]).sum(axis=2, dtype=np.int64).min(axis=1)
    ours_cut = np.bitwise_count(many[:, :1] ^ own).sum(axis=2, dtype=np.int64).min(axis=1)
    return np.minimum(theirs_cut, ours_cut)


def fingerprints(grey: Grey) -> Cuts:
    """A fingerprint of the whole image, then one for each way to cut it."""
    height, width = grey.shape
    scale = min(1.0, FIRST / max(height, width))
    size = max(1, round(width * scale)), max(1, round(height * scale))
    small = cv2.resize(grey, size, interpolation=cv2.INTER_AREA)
    return np.stack([_fingerprint(cut(small, *shares)) for shares in product(CUTS, repeat=4)])


def cut(
    grey: Grey, top: float, bottom: float, left: float, right: float
) -> UInt8[np.ndarray, "lower narrower"]:
    """An image without shares of its height or width at its four sides."""
    height, width = grey.shape
    return grey[
        round(top * height) : height - round(bottom * height),
        round(left * width) : width - round(right * width),
    ]


def _fingerprint(grey: Grey) -> UInt64[np.ndarray, " 4"]:
    small = cv2.resize(grey, (SIDE, SIDE), interpolation=cv2.INTER_AREA).astype(np.float32)
    low = cv2.dct(small)[:FREQUENCIES, :FREQUENCIES].ravel()
    above = low > np.median(low[1:])
    above[0] = False  # the mean, which says nothing about the content
    return np.packbits(above).view(np.uint64)
