"""HOG: histograms of gradients of overlapping blocks, computed by OpenCV (Apache-2.0).

N. Dalal, B. Triggs, Histograms of oriented gradients for human detection, CVPR 2005, with their
parameters: cells of 8x8 pixels, blocks of 2x2 cells that move on by one cell, 9 orientations
without sign, the square root of grey values, a Gaussian window of 4 pixels in each block, and
blocks of unit length that are cut at 0.2 and made unit length again.

The patch is resized to 64x64 and is the whole window: 7x7 blocks of 36 numbers.
"""

import cv2
import numpy as np
from jaxtyping import Float32

from harness.distances import L2
from harness.types import Conventions, Descriptor, Patches
from zoo.describing import LIBRARIES, in_threads, resized

SIDE = 64
CELL = 8
BLOCK = 2 * CELL
ORIENTATIONS = 9
DIM = 1764


def _describe(patches: Patches) -> Float32[np.ndarray, "n 1764"]:
    return in_threads(_part, patches, DIM, np.float32)


def _part(patches: Patches) -> Float32[np.ndarray, "n 1764"]:
    hog = cv2.HOGDescriptor((SIDE, SIDE), (BLOCK, BLOCK), (CELL, CELL), (CELL, CELL), ORIENTATIONS)
    return np.array([np.ravel(hog.compute(resized(patch, SIDE))) for patch in patches])


def hog() -> Descriptor:
    """Blocks of unit length or zero: 7x7 of 2x2 cells of 9 orientations."""
    return Descriptor(
        "hog",
        _describe,
        L2,
        dim=DIM,
        libraries=LIBRARIES,
        licence="Apache-2.0",
        conventions=Conventions(
            keypoint="the whole patch",
            side=SIDE,
            normalisation="square root of grey values; blocks cut at 0.2, unit length",
            source="Dalal, Triggs, CVPR 2005; OpenCV",
        ),
    )
