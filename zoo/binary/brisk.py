"""BRISK: comparisons of mean grey values on rings, computed by OpenCV (BSD-3-Clause).

S. Leutenegger, M. Chli, R. Siegwart, BRISK: binary robust invariant scalable keypoints, ICCV 2011.

OpenCV's extractor always turns the pattern: it measures an angle on pairs of points that are
farther apart than `dMin`, and ignores the keypoint's own angle. Patches are upright already, so the
pattern is built here with a `dMin` that no pair exceeds: the measured angle is then 0. The rings
and the 512 short pairs are those of OpenCV's default.

The patch is resized to 39x39, and the keypoint has size 12, the smallest of BRISK's detector. At
this size the outermost boxes reach 18.8 pixels from the keypoint.
"""

from functools import cache

import cv2
import numpy as np
from jaxtyping import UInt8

from harness.distances import HAMMING
from harness.types import Conventions, Descriptor, Patches
from zoo.describing import LIBRARIES, at_centre, in_threads

SIDE = 39  # of the patches that BRISK describes
BORDER = 1  # the least with which OpenCV keeps the keypoint
SIZE = 12.0  # of the keypoint, in pixels
RADII = [0.85 * radius for radius in (0.0, 2.9, 4.9, 7.4, 10.8)]  # of the rings, at scale 1
POINTS = [1, 10, 14, 15, 20]  # on each ring
SHORT = 5.85  # points that are less apart are compared
NEVER = 1e4  # as `dMin`, so that no pair measures an angle


@cache
def _extractor() -> cv2.Feature2D:
    """OpenCV's extractor; it takes 0.1 s to build, and threads can share it."""
    return cv2.xfeatures2d.BRISK.create(RADII, POINTS, SHORT, NEVER)


def _describe(patches: Patches) -> UInt8[np.ndarray, "n 64"]:
    return in_threads(_part, patches, 64, np.uint8)


def _part(patches: Patches) -> UInt8[np.ndarray, "n 64"]:
    return at_centre(_extractor(), patches, side=SIDE, border=BORDER, size=SIZE)


def brisk() -> Descriptor:
    """BRISK: 512 comparisons of mean grey values, upright, packed into 64 bytes."""
    return Descriptor(
        "brisk",
        _describe,
        HAMMING,
        dim=512,
        libraries=LIBRARIES,
        licence="BSD-3-Clause",
        conventions=Conventions(
            keypoint="at the centre pixel (19, 19) of 39x39, size 12; the pattern is not turned",
            side=SIDE,
            normalisation="means over boxes; none of grey values",
            source="Leutenegger et al., ICCV 2011; OpenCV",
        ),
    )
