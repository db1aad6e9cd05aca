"""AKAZE's descriptor, M-LDB: comparisons of means on three grids, by OpenCV (Apache-2.0).

P. F. Alcantarilla, J. Nuevo, A. Bartoli, Fast explicit diffusion for accelerated features in
nonlinear scale spaces, BMVC 2013.

Grids of 2x2, 3x3 and 4x4 cells; cells are compared by their mean grey value and their mean
derivatives in x and y: 3 x (6 + 36 + 120) = 486 bits. It is the upright variant, which does not
read the keypoint's angle, since patches are upright already.

The keypoint is of AKAZE's first level, before any diffusion: size 4.8, octave 0, a Gaussian of 1.6
pixels. There the grids reach from 20 pixels before to 18 pixels behind the keypoint, so the patch
is resized to 41x41. Other levels do not change this descriptor, and are not computed.
"""

import cv2
import numpy as np
from jaxtyping import UInt8

from harness.distances import HAMMING
from harness.types import Conventions, Descriptor, Patches
from zoo.describing import LIBRARIES, at_centre, in_threads

SIDE = 41  # of the patches that M-LDB describes
BORDER = 12  # more than the Gaussian and the derivatives reach
SIZE = 4.8  # of the keypoint, in pixels
BITS = 486


def _describe(patches: Patches) -> UInt8[np.ndarray, "n 61"]:
    return in_threads(_part, patches, 61, np.uint8)


def _part(patches: Patches) -> UInt8[np.ndarray, "n 61"]:
    upright = cv2.xfeatures2d.AKAZE_DESCRIPTOR_MLDB_UPRIGHT
    extractor = cv2.xfeatures2d.AKAZE.create(upright, nOctaves=1, nOctaveLayers=1)
    rows = at_centre(extractor, patches, side=SIDE, border=BORDER, size=SIZE)
    # OpenCV fills a byte from its lowest bit: the two bits without a comparison would not be last.
    return np.packbits(np.unpackbits(rows, axis=1, bitorder="little")[:, :BITS], axis=1)


def akaze() -> Descriptor:
    """AKAZE's M-LDB: 486 comparisons, upright, packed into 61 bytes."""
    return Descriptor(
        "akaze",
        _describe,
        HAMMING,
        dim=BITS,
        libraries=LIBRARIES,
        licence="Apache-2.0",
        conventions=Conventions(
            keypoint="at the centre pixel (20, 20) of 41x41, size 4.8, first level; upright",
            side=SIDE,
            normalisation="a Gaussian of 1.6 pixels; none of grey values",
            source="Alcantarilla et al., BMVC 2013; OpenCV",
        ),
    )
