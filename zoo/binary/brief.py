"""BRIEF: comparisons of grey values, computed by OpenCV (Apache-2.0).

M. Calonder, V. Lepetit, C. Strecha, P. Fua, BRIEF: binary robust independent elementary features,
ECCV 2010.

The patch is resized to 65x65, as the tests reach 28 pixels from the keypoint and OpenCV silently
drops a keypoint nearer to the border. A Gaussian of one pixel smooths it. The keypoint is the
centre pixel (32, 32): OpenCV would round (32.5, 32.5) to (33, 33). At each test OpenCV adds its
own mean over 9x9 pixels.
"""

import cv2
import numpy as np
from jaxtyping import UInt8

from harness.distances import HAMMING
from harness.types import Conventions, Descriptor, Patches
from zoo.describing import LIBRARIES, in_threads, resized

SIDE = 65  # of the patches that BRIEF describes
SIZE = 12.0  # of the keypoint, in pixels; BRIEF does not read it


def _describe(patches: Patches) -> UInt8[np.ndarray, "n 32"]:
    return in_threads(_part, patches, 32, np.uint8)


def _part(patches: Patches) -> UInt8[np.ndarray, "n 32"]:
    # One column of patches: smoothing and tests see no more than 1 .. 63 of their own.
    column = np.concatenate([resized(patch, SIDE) for patch in patches])
    centres = [cv2.KeyPoint(32, 32 + SIDE * k, SIZE) for k in range(len(patches))]
    extractor = cv2.xfeatures2d.BriefDescriptorExtractor.create(32)
    return extractor.compute(cv2.GaussianBlur(column, (0, 0), 1), centres)[1]


def brief() -> Descriptor:
    """BRIEF: 256 comparisons of smoothed grey values, packed into 32 bytes."""
    return Descriptor(
        "brief",
        _describe,
        HAMMING,
        dim=256,
        libraries=LIBRARIES,
        licence="Apache-2.0",
        conventions=Conventions(
            keypoint="at the centre pixel (32, 32) of 65x65; without scale and angle",
            side=SIDE,
            normalisation="a Gaussian of 1 pixel; none of grey values",
            source="Calonder et al., ECCV 2010; OpenCV",
        ),
    )
