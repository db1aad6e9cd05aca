"""OpenCV's own description of one patch in a larger image: an oracle for descriptors of bits."""

from collections.abc import Callable

import cv2
import numpy as np

FRAME = 80  # copies of the outermost pixels; OpenCV keeps any keypoint this far inside


def described(extractor: cv2.Feature2D, patch: np.ndarray, size: float, **more: int) -> np.ndarray:
    """The row of the pixel in the middle, (side // 2, side // 2)."""
    image = np.pad(patch, FRAME, mode="edge")
    middle = FRAME + len(patch) // 2
    keypoint = cv2.KeyPoint(float(middle), float(middle), size, 0.0, **more)
    kept, rows = extractor.compute(image, [keypoint])
    assert len(kept) == 1 == len(rows)
    return rows[0]


def resized(patch: np.ndarray, side: int) -> np.ndarray:
    shrinks = len(patch) > side
    how = cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR
    return cv2.resize(patch, (side, side), interpolation=how)


def changed(
    describe: Callable[[np.ndarray], np.ndarray], patches: np.ndarray, where: np.ndarray
) -> int:
    """Number of rows that change if pixels are inverted."""
    others = patches.copy()
    others[:, where] = 255 - others[:, where]
    return int((describe(patches) != describe(others)).any(axis=1).sum())
