"""Describes patches by OpenCV and NumPy: in threads, each patch alone, resized by one rule."""

from collections.abc import Callable

import cv2
import numpy as np
from jaxtyping import UInt8

from harness import parallel
from harness.types import Patches, Vectors

TOGETHER = 64  # patches that one thread describes at a time


def in_threads(
    describe: Callable[[Patches], Vectors], patches: Patches, width: int, dtype: type[np.generic]
) -> Vectors:
    """Vectors of patches, computed in threads: OpenCV and NumPy release Python's lock.

    Args:
        describe: takes up to TOGETHER patches, returns a row for each.
        patches: any number of patches.
        width: columns of the array.
        dtype: of the array.
    """
    rows = np.empty((len(patches), width), dtype)

    def fill(start: int) -> None:
        part = slice(start, start + TOGETHER)
        rows[part] = describe(patches[part])

    parallel.each(fill, range(0, len(patches), TOGETHER))
    return rows


def resized(patch: UInt8[np.ndarray, "height width"], side: int) -> UInt8[np.ndarray, "side side"]:
    """A patch of side x side pixels: by area where it shrinks, bilinear where it grows."""
    how = cv2.INTER_AREA if len(patch) > side else cv2.INTER_LINEAR
    return cv2.resize(patch, (side, side), interpolation=how)
