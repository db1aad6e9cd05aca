"""Describes patches in threads, each patch alone, resized and framed by one rule."""

from collections.abc import Callable

import cv2
import numpy as np
from jaxtyping import UInt8

from harness import parallel
from harness.types import Patches, Vectors

LIBRARIES = ("numpy", "opencv-contrib-python-headless")  # whose versions can change vectors
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


def at_centre(
    extractor: cv2.Feature2D, patches: Patches, *, side: int, border: int, size: float
) -> Vectors:
    """Rows of OpenCV's extractor, one for each patch: of one upright keypoint at the centre pixel.

    Args:
        extractor: must be safe to use in several threads if they share it.
        patches: resized to side x side pixels. The centre pixel is (side // 2, side // 2).
        side: of the patch that the extractor describes.
        border: copies of the outermost pixels around it, since OpenCV silently drops a keypoint
            that is near the border of the image.
        size: of the keypoint. Its angle and octave are 0.
    """
    centre = border + side // 2
    keypoint = cv2.KeyPoint(centre, centre, size, angle=0, octave=0, class_id=0)
    around = (border, border, border, border, cv2.BORDER_REPLICATE)
    images = (cv2.copyMakeBorder(resized(patch, side), *around) for patch in patches)
    return np.concatenate([extractor.compute(image, [keypoint])[1] for image in images])
