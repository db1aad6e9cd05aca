"""LATCH: comparisons of three small windows at learned places, by OpenCV (Apache-2.0).

G. Levi, T. Hassner, LATCH: learned arrangements of three patch codes, WACV 2016.

A bit says which of two windows differs less from a third, by the sum of squared differences. As in
OpenCV's default: 256 bits, windows of 7x7 pixels, whose centres lie up to 24 pixels from the
keypoint, and a 3x3 Gaussian of 2 pixels before. So the patch is resized to 55x55. The arrangement
is not turned, since patches are upright already.

The arrangements were learned on the pairs of Brown et al. (PhotoTour). Which of its scenes they are
of is not stated in the sources that were read, so none of them is counted as unseen.
"""

import cv2
import numpy as np
from jaxtyping import UInt8

from harness.distances import HAMMING
from harness.types import Conventions, Descriptor, Patches
from zoo.describing import LIBRARIES, at_centre, in_threads

SIDE = 55  # of the patches that LATCH describes
BORDER = 1  # for the Gaussian
SIZE = 55.0  # of the keypoint, in pixels; LATCH does not read it


def _describe(patches: Patches) -> UInt8[np.ndarray, "n 32"]:
    return in_threads(_part, patches, 32, np.uint8)


def _part(patches: Patches) -> UInt8[np.ndarray, "n 32"]:
    extractor = cv2.xfeatures2d.LATCH.create(
        bytes=32, rotationInvariance=False, half_ssd_size=3, sigma=2.0
    )
    return at_centre(extractor, patches, side=SIDE, border=BORDER, size=SIZE)


def latch() -> Descriptor:
    """LATCH: 256 comparisons of windows, upright, packed into 32 bytes."""
    return Descriptor(
        "latch",
        _describe,
        HAMMING,
        dim=256,
        trained_on=frozenset(f"phototour/{s}" for s in ("liberty", "notredame", "yosemite")),
        libraries=LIBRARIES,
        licence="Apache-2.0",
        conventions=Conventions(
            keypoint="at the centre pixel (27, 27) of 55x55; the arrangement is not turned",
            side=SIDE,
            normalisation="a 3x3 Gaussian of 2 pixels; none of grey values",
            source="Levi, Hassner, WACV 2016; OpenCV",
        ),
    )
