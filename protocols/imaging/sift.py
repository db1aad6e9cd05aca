"""Detects keypoints with OpenCV's SIFT, without its descriptor."""

from dataclasses import replace

import cv2
import numpy as np

from protocols.imaging.affine import AffineFrames, from_similarity
from protocols.imaging.grey import Grey
from protocols.imaging.portable import portable

DETECTOR = (
    f"cv2.SIFT.create(enable_precise_upscale=True) of OpenCV {cv2.__version__}: 3 layers an octave,"
    " contrast 0.04, edges 10, sigma 1.6, first octave of twice the size, code for any processor"
)
"""What finds the keypoints, for readers of a record.

Without `enable_precise_upscale`, OpenCV places all keypoints 0.25 pixels too far to the left and to
the top. That does not matter between two upright images of one size; after a turn by 180 degrees,
matching keypoints are 0.7 pixels apart.
"""

GRID = 2.0**-16
"""Pixels. Shapes are rounded to its multiples: processors differ in the last bit of a sine."""


def sift(grey: Grey, most: int) -> AffineFrames:
    """The keypoints of the largest contrast, at most `most`; of equal ones, from left to right.

    The radius of a keypoint is its scale, half of OpenCV's `size`. A place with several main
    directions has a keypoint for each. Their bits are the same on every processor of one
    architecture.
    """
    with portable():
        found = cv2.SIFT.create(enable_precise_upscale=True).detect(grey, None)
    rows = np.array([(*k.pt, k.size, k.angle, k.response) for k in found], float).reshape(-1, 5)
    x, y, size, angle, score = rows[np.lexsort((*rows.T[:4], -rows[:, 4]))[:most]].T
    frames = from_similarity(x, y, size / 2, np.deg2rad(angle), score)
    return replace(frames, matrix=np.rint(frames.matrix / GRID) * GRID)
