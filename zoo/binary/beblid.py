"""BEBLID and TEBLID: comparisons of mean grey values of learned boxes, by OpenCV (Apache-2.0).

I. Suarez, G. Sfeir, J. M. Buenaposada, L. Baumela, BEBLID: boosted efficient binary local image
descriptor, Pattern Recognition Letters 133, 2020.
I. Suarez, J. M. Buenaposada, L. Baumela, Revisiting binary local image description for resource
limited devices, RA-L 2021. TEBLID is OpenCV's name of its BAD.

A bit compares the difference of two boxes with a threshold. The boxes lie in a patch of 32x32, to
which the patch is resized. The keypoint has size 32 and the scale factor is 1, so that OpenCV moves
no box. The border of 13 pixels is not read: with it OpenCV takes its path for keypoints far from
the border of the image, which compares whole numbers. Its other path rounds means to float32, and
misses ties.

Both were trained on PhotoTour's Liberty, as OpenCV's documentation says.
"""

from collections.abc import Callable
from functools import partial

import cv2
import numpy as np

from harness.distances import HAMMING
from harness.types import Conventions, Descriptor, Patches, Vectors
from zoo.describing import LIBRARIES, at_centre, in_threads

SIDE = 32  # of the patches that the boxes lie in
BORDER = 13  # the least with which OpenCV compares whole numbers
SIZE = 32.0  # of the keypoint, in pixels
SCALE = 1.0  # factor of the keypoint's size
BEBLID = "Suarez et al., Pattern Recognition Letters 133, 2020; OpenCV"
TEBLID = "Suarez et al., RA-L 2021; OpenCV"


def _part(create: Callable[[], cv2.Feature2D], patches: Patches) -> Vectors:
    return at_centre(create(), patches, side=SIDE, border=BORDER, size=SIZE)


def _made(name: str, bits: int, create: Callable[[], cv2.Feature2D], source: str) -> Descriptor:
    part = partial(_part, create)
    return Descriptor(
        f"{name}.{bits}",
        lambda patches: in_threads(part, patches, bits // 8, np.uint8),
        HAMMING,
        dim=bits,
        trained_on=frozenset({"phototour/liberty"}),
        libraries=LIBRARIES,
        licence="Apache-2.0",
        conventions=Conventions(
            keypoint="at (16, 16) of 32x32, size 32, scale factor 1, angle 0: the whole patch",
            side=SIDE,
            normalisation="means over boxes; none of grey values",
            source=source,
        ),
    )


def beblid_256() -> Descriptor:
    """BEBLID of 256 bits."""
    size = cv2.xfeatures2d.BEBLID_SIZE_256_BITS
    return _made("beblid", 256, lambda: cv2.xfeatures2d.BEBLID.create(SCALE, size), BEBLID)


def beblid_512() -> Descriptor:
    """BEBLID of 512 bits."""
    size = cv2.xfeatures2d.BEBLID_SIZE_512_BITS
    return _made("beblid", 512, lambda: cv2.xfeatures2d.BEBLID.create(SCALE, size), BEBLID)


def teblid_256() -> Descriptor:
    """TEBLID of 256 bits."""
    size = cv2.xfeatures2d.TEBLID_SIZE_256_BITS
    return _made("teblid", 256, lambda: cv2.xfeatures2d.TEBLID.create(SCALE, size), TEBLID)


def teblid_512() -> Descriptor:
    """TEBLID of 512 bits."""
    size = cv2.xfeatures2d.TEBLID_SIZE_512_BITS
    return _made("teblid", 512, lambda: cv2.xfeatures2d.TEBLID.create(SCALE, size), TEBLID)
