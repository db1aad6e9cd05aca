"""FREAK: comparisons of mean grey values on a retinal pattern, by OpenCV (BSD-2-Clause).

A. Alahi, R. Ortiz, P. Vandergheynst, FREAK: fast retina keypoint, CVPR 2012.

The patch is resized to 45x45, and the keypoint has size 7, the smallest that OpenCV tells apart. At
this size the outermost boxes reach 22 pixels from the keypoint. The pattern is not turned
(`orientationNormalized` is off), since patches are upright already.

The paper selected the 512 pairs on keypoints of images that it does not name.
"""

from functools import cache

import cv2
import numpy as np
from jaxtyping import UInt8

from harness.distances import HAMMING
from harness.types import Conventions, Descriptor, Patches
from zoo.describing import LIBRARIES, at_centre, in_threads

SIDE = 45  # of the patches that FREAK describes
BORDER = 2  # the least with which OpenCV keeps the keypoint
SIZE = 7.0  # of the keypoint, in pixels


@cache
def _extractor() -> cv2.Feature2D:
    """OpenCV's extractor, after a first call, which builds its pattern; threads can share it."""
    extractor = cv2.xfeatures2d.FREAK.create(orientationNormalized=False)
    at_centre(extractor, np.zeros((1, SIDE, SIDE), np.uint8), side=SIDE, border=BORDER, size=SIZE)
    return extractor


def _describe(patches: Patches) -> UInt8[np.ndarray, "n 64"]:
    return in_threads(_part, patches, 64, np.uint8)


def _part(patches: Patches) -> UInt8[np.ndarray, "n 64"]:
    return at_centre(_extractor(), patches, side=SIDE, border=BORDER, size=SIZE)


def freak() -> Descriptor:
    """FREAK: 512 comparisons of mean grey values, upright, packed into 64 bytes."""
    return Descriptor(
        "freak",
        _describe,
        HAMMING,
        dim=512,
        trained_on=None,
        libraries=LIBRARIES,
        licence="BSD-2-Clause",
        conventions=Conventions(
            keypoint="at the centre pixel (22, 22) of 45x45, size 7; the pattern is not turned",
            side=SIDE,
            normalisation="means over boxes; none of grey values",
            source="Alahi et al., CVPR 2012; OpenCV",
        ),
    )
