"""SIFT, RootSIFT and BRIEF, computed by OpenCV (Apache-2.0) with one keypoint a patch.

D. Lowe, Distinctive image features from scale-invariant keypoints, IJCV 2004.
R. Arandjelovic, A. Zisserman, Three things everyone should know to improve object retrieval,
CVPR 2012. M. Calonder et al., BRIEF: binary robust independent elementary features, ECCV 2010.

The conventions for a patch of n x n pixels, where OpenCV counts from the centre of the first:

- SIFT, as the HPatches baseline: keypoint at (n/2, n/2), half a pixel beyond the centre; size
  n/5.303, so that the 4x4 cells reach a little over the border; angle left at OpenCV's -1, which
  its SIFT does not read as "none": it turns the grid by one degree, and angle 0 gives other
  numbers for every patch. The patch is not resized: place and size follow n.
- BRIEF, 256 bits: resized to 65x65 (bilinear, by area where it shrinks), as its tests reach 28
  pixels from the keypoint and OpenCV silently drops a keypoint nearer to the border; smoothed by
  a Gaussian of one pixel; keypoint at the centre pixel (32, 32), since OpenCV would round
  (32.5, 32.5) to (33, 33). OpenCV adds its own mean over 9x9 at each test.
"""

from concurrent.futures import ThreadPoolExecutor
from itertools import chain

import cv2
import numpy as np
from jaxtyping import Float32, UInt8

from harness.distances import HAMMING, L2
from harness.types import Descriptor, Patches

LIBRARIES = ("numpy", "opencv-contrib-python-headless")
LICENCE = "Apache-2.0"  # OpenCV's, as ours
SIZE = 5.303  # patch side over keypoint size, as in the HPatches baseline
SIDE = 65  # of the patches that BRIEF describes
TOGETHER = 64  # patches that one thread takes at a time


def _sift(patches: Patches) -> Float32[np.ndarray, "n 128"]:
    parts = [patches[i : i + TOGETHER] for i in range(0, len(patches), TOGETHER)]
    with ThreadPoolExecutor() as pool:  # OpenCV releases the interpreter's lock
        rows = chain.from_iterable(pool.map(_sift_each, parts))
        return np.array([*rows], np.float32).reshape(len(patches), 128)


def _sift_each(patches: Patches) -> list[Float32[np.ndarray, " 128"]]:
    # Patch by patch: the cells reach over the border, in a larger image into the neighbours.
    side = patches.shape[1]
    centre = [cv2.KeyPoint(side / 2, side / 2, side / SIZE, -1)]
    extractor = cv2.SIFT.create()
    return [extractor.compute(patch, centre)[1][0] for patch in patches]


def _rootsift(patches: Patches) -> Float32[np.ndarray, "n 128"]:
    vectors = _sift(patches)
    total = vectors.sum(axis=1, keepdims=True)
    return np.sqrt(vectors / np.where(total == 0, 1, total))  # a zero vector stays zero


def _brief(patches: Patches) -> UInt8[np.ndarray, "n 32"]:
    extractor = cv2.xfeatures2d.BriefDescriptorExtractor.create(32)
    rows: list[np.ndarray] = [np.empty((0, 32), np.uint8)]
    for i in range(0, len(patches), TOGETHER):
        part = [_resized(patch) for patch in patches[i : i + TOGETHER]]
        # One column of patches: smoothing and tests see no more than 1 .. 63 of their own.
        column = cv2.GaussianBlur(np.concatenate(part), (0, 0), 1)
        centres = [cv2.KeyPoint(32, 32 + SIDE * k, SIDE / SIZE) for k in range(len(part))]
        rows.append(extractor.compute(column, centres)[1])
    return np.concatenate(rows)


def _resized(patch: UInt8[np.ndarray, "height width"]) -> UInt8[np.ndarray, "65 65"]:
    how = cv2.INTER_AREA if len(patch) > SIDE else cv2.INTER_LINEAR
    return cv2.resize(patch, (SIDE, SIDE), interpolation=how)


def sift() -> Descriptor:
    """OpenCV's SIFT: 128 whole numbers from 0 to 255."""
    return Descriptor("sift", _sift, L2, dim=128, libraries=LIBRARIES, licence=LICENCE)


def rootsift() -> Descriptor:
    """The square root of SIFT divided by its sum: unit norm, and L2 compares like Hellinger."""
    return Descriptor("rootsift", _rootsift, L2, dim=128, libraries=LIBRARIES, licence=LICENCE)


def brief() -> Descriptor:
    """OpenCV's BRIEF: 256 comparisons of smoothed grey values, packed into 32 bytes."""
    return Descriptor("brief", _brief, HAMMING, dim=256, libraries=LIBRARIES, licence=LICENCE)
