"""ORB: comparisons of grey values at learned places, computed by OpenCV (Apache-2.0).

E. Rublee, V. Rabaud, K. Konolige, G. Bradski, ORB: an efficient alternative to SIFT or SURF,
ICCV 2011.

The patch is resized to 31x31: ORB's tests were chosen on patches of this size, and OpenCV's
`patchSize` is 31. OpenCV smooths it by a Gaussian of 2 pixels. At angle 0 a test reaches 13 pixels
from the keypoint, so that its smoothed pixels reach 1 pixel over the border.

The 256 tests were selected on keypoints of the PASCAL 2006 images (section 4.3 of the paper).
"""

import cv2
import numpy as np
from jaxtyping import UInt8

from harness.distances import HAMMING
from harness.types import Conventions, Descriptor, Patches
from zoo.describing import LIBRARIES, at_centre, in_threads

SIDE = 31  # of the patches that ORB describes
BORDER = 16  # the least with which OpenCV keeps the keypoint
SIZE = 31.0  # of the keypoint, in pixels; ORB does not read it


def _describe(patches: Patches) -> UInt8[np.ndarray, "n 32"]:
    return in_threads(_part, patches, 32, np.uint8)


def _part(patches: Patches) -> UInt8[np.ndarray, "n 32"]:
    extractor = cv2.ORB.create(nlevels=1)
    return at_centre(extractor, patches, side=SIDE, border=BORDER, size=SIZE)


def orb() -> Descriptor:
    """ORB: 256 comparisons of smoothed grey values, upright, packed into 32 bytes."""
    return Descriptor(
        "orb",
        _describe,
        HAMMING,
        dim=256,
        trained_on=frozenset({"other/pascal-voc-2006"}),
        libraries=LIBRARIES,
        licence="Apache-2.0",
        conventions=Conventions(
            keypoint="at the centre pixel (15, 15) of 31x31, angle 0, first pyramid level",
            side=SIDE,
            normalisation="a Gaussian of 2 pixels; none of grey values",
            source="Rublee et al., ICCV 2011; OpenCV",
        ),
    )
