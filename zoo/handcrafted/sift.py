"""SIFT and RootSIFT, computed by OpenCV (Apache-2.0) with one keypoint a patch.

D. Lowe, Distinctive image features from scale-invariant keypoints, IJCV 2004.
R. Arandjelovic, A. Zisserman, Three things everyone should know to improve object retrieval,
CVPR 2012.

The keypoint is that of the HPatches baseline. For a patch of n x n pixels it is at (n/2, n/2),
where OpenCV counts from the centre of the first pixel: half a pixel beyond the centre. Its size is
n/5.303, so that the 4x4 cells reach a little over the border. Its angle is OpenCV's default of -1,
which SIFT does not read as "none": it turns the grid by one degree, and angle 0 gives other numbers
for every patch. The patch is not resized: place and size follow n.
"""

import cv2
import numpy as np
from jaxtyping import Float32

from harness.distances import L2
from harness.types import Conventions, Descriptor, Patches
from zoo.describing import LIBRARIES, in_threads

LICENCE = "Apache-2.0"  # OpenCV's, as ours
SIZE = 5.303  # patch side over keypoint size, as in the HPatches baseline
KEYPOINT = "at (n/2, n/2) of n x n pixels, size n/5.303, angle -1: HPatches' baseline"
PAPER = "Lowe, IJCV 2004; OpenCV"


def _sift(patches: Patches) -> Float32[np.ndarray, "n 128"]:
    return in_threads(_each, patches, 128, np.float32)


def _each(patches: Patches) -> Float32[np.ndarray, "n 128"]:
    # Patch by patch: the cells reach over the border, in a larger image into the neighbours.
    side = patches.shape[1]
    centre = [cv2.KeyPoint(side / 2, side / 2, side / SIZE, -1)]
    extractor = cv2.SIFT.create()
    return np.array([extractor.compute(patch, centre)[1][0] for patch in patches])


def _rootsift(patches: Patches) -> Float32[np.ndarray, "n 128"]:
    vectors = _sift(patches)
    total = vectors.sum(axis=1, keepdims=True)
    return np.sqrt(vectors / np.where(total == 0, 1, total))  # a zero vector stays zero


def sift() -> Descriptor:
    """OpenCV's SIFT: 128 whole numbers from 0 to 255."""
    conventions = Conventions(
        KEYPOINT, None, "vector cut at 0.2, unit length, times 512, rounded", PAPER
    )
    return Descriptor(
        "sift",
        _sift,
        L2,
        dim=128,
        libraries=LIBRARIES,
        licence=LICENCE,
        conventions=conventions,
    )


def rootsift() -> Descriptor:
    """The square root of SIFT divided by its sum: unit norm, and L2 compares like Hellinger."""
    conventions = Conventions(
        KEYPOINT,
        None,
        "SIFT over its sum, then the square root of each number",
        f"Arandjelovic, Zisserman, CVPR 2012; {PAPER}",
    )
    return Descriptor(
        "rootsift",
        _rootsift,
        L2,
        dim=128,
        libraries=LIBRARIES,
        licence=LICENCE,
        conventions=conventions,
    )
