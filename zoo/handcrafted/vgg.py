"""VGG: pooling regions and a projection learned by convex optimisation, computed by OpenCV.

K. Simonyan, A. Vedaldi, A. Zisserman, Learning local feature descriptors using convex
optimisation, PAMI 2014. OpenCV (Apache-2.0) has four projections, to 120, 80, 64 and 48 numbers,
learned by https://github.com/cbalint13/opencv-dlco on PhotoTour.

The patch is resized to 64x64, the size that VGG computes on, and is the whole image of OpenCV. The
keypoint is at (31.5, 31.5), without scale and angle: OpenCV then reads each pixel of the patch
once, where it is.
"""

import cv2
import numpy as np
from jaxtyping import Float32

from harness.distances import L2
from harness.types import Conventions, Descriptor, Patches
from zoo.describing import LIBRARIES, in_threads, resized

SIDE = 64
SIZE = 64.0  # of the keypoint; without scale, VGG does not read it
TYPES = {120: 100, 80: 101, 64: 102, 48: 103}  # OpenCV's numbers of VGG_120 and so on
# Which scenes a projection saw is not stated, so none of PhotoTour's is counted as unseen.
TRAINED_ON = frozenset(f"phototour/{scene}" for scene in ("liberty", "notredame", "yosemite"))
CONVENTIONS = Conventions(
    keypoint="the whole patch",
    side=SIDE,
    normalisation="a Gaussian of 1.4 pixels; gradients over their 0.8 quantile; the vector is a"
    " projection, not unit",
    source="Simonyan et al., PAMI 2014; OpenCV, cbalint13/opencv-dlco",
)


def _vgg(length: int) -> Descriptor:
    def part(patches: Patches) -> Float32[np.ndarray, "n length"]:
        extractor = cv2.xfeatures2d.VGG.create(TYPES[length], use_scale_orientation=False)
        centre = [cv2.KeyPoint(31.5, 31.5, SIZE)]
        return np.array([extractor.compute(resized(p, SIDE), centre)[1][0] for p in patches])

    return Descriptor(
        f"vgg.{length}",
        lambda patches: in_threads(part, patches, length, np.float32),
        L2,
        dim=length,
        trained_on=TRAINED_ON,
        libraries=LIBRARIES,
        licence="Apache-2.0",
        conventions=CONVENTIONS,
    )


def vgg_120() -> Descriptor:
    """VGG projected to 120 numbers."""
    return _vgg(120)


def vgg_80() -> Descriptor:
    """VGG projected to 80 numbers."""
    return _vgg(80)


def vgg_64() -> Descriptor:
    """VGG projected to 64 numbers."""
    return _vgg(64)


def vgg_48() -> Descriptor:
    """VGG projected to 48 numbers."""
    return _vgg(48)
