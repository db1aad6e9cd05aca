"""DAISY: histograms of gradients on three circles, computed by OpenCV (Apache-2.0).

E. Tola, V. Lepetit, P. Fua, DAISY: an efficient dense descriptor applied to wide-baseline stereo,
PAMI 2010. OpenCV's parameters, which are the paper's: radius 15, 3 circles of 8 points and their
centre, 8 directions. Each of the 25 histograms is made unit length alone, as in the paper.

The patch is resized to 35x35, so that the points of the outer circle, 15 pixels from the keypoint
in the centre, nearly reach the border. They must not be nearer to it: at 33x33, OpenCV silently
leaves two histograms at zero. DAISY does not read size and angle of a keypoint.
"""

import cv2
import numpy as np
from jaxtyping import Float32

from harness.distances import L2
from harness.types import Conventions, Descriptor, Patches
from zoo.describing import LIBRARIES, in_threads, resized

RADIUS = 15
SIDE = 2 * RADIUS + 5
CENTRE = RADIUS + 2
SIZE = 35.0  # of the keypoint; DAISY does not read it
DIM = 200  # 25 histograms of 8 directions


def _describe(patches: Patches) -> Float32[np.ndarray, "n 200"]:
    return in_threads(_part, patches, DIM, np.float32)


def _part(patches: Patches) -> Float32[np.ndarray, "n 200"]:
    extractor = cv2.xfeatures2d.DAISY.create(RADIUS, norm=cv2.xfeatures2d.DAISY_NRM_PARTIAL)
    centre = [cv2.KeyPoint(CENTRE, CENTRE, SIZE)]
    return np.array([extractor.compute(resized(p, SIDE), centre)[1][0] for p in patches])


def daisy() -> Descriptor:
    """25 histograms of 8 directions, each of unit length or zero."""
    return Descriptor(
        "daisy",
        _describe,
        L2,
        dim=DIM,
        libraries=LIBRARIES,
        licence="Apache-2.0",
        conventions=Conventions(
            keypoint="at the centre pixel (17, 17) of 35x35; the outer circle is 15 pixels away",
            side=SIDE,
            normalisation="each of 25 histograms to unit length",
            source="Tola et al., PAMI 2010; OpenCV",
        ),
    )
