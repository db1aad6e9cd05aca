"""Robust geometry of two images from their matches, by OpenCV's USAC with MAGSAC++.

D. Barath et al., MAGSAC++, a fast, reliable and accurate robust estimator, CVPR 2020.
"""

from dataclasses import dataclass
from typing import Literal

import cv2
import numpy as np
from jaxtyping import Bool, Float64

from harness.errors import InputError

Kind = Literal["fundamental", "homography"]
LEAST = {"fundamental": 8, "homography": 4}  # matches that are needed
THRESHOLD = 1.0  # pixels
CONFIDENCE = 0.9999
ITERATIONS = 10_000

Places = Float64[np.ndarray, "n 2"]


@dataclass(frozen=True, eq=False)
class Geometry:
    """A robust estimate, and the matches that agree with it."""

    kind: Kind
    matrix: Float64[np.ndarray, "3 3"] | None  # from pixels of image 1 to image 2; None: none found
    inlier: Bool[np.ndarray, " n"]
    settings: str


def estimate(
    a: Places, b: Places, kind: Kind, *, threshold: float = THRESHOLD, seed: int = 0
) -> Geometry:
    """The fundamental matrix F (b' F a = 0) or the homography H (b ~ H a) of matched places.

    Args:
        a: places in image 1, pixels.
        b: places in image 2, pixels.
        kind: of the matrix.
        threshold: largest distance of an inlier to its epipolar line or mapped place, pixels.
        seed: of random draws.

    Raises:
        InputError: if the threshold is not positive, or the seed is no 31-bit number.
    """
    if not 0 < threshold < np.inf or not 0 <= seed < 1 << 31:
        raise InputError(
            f"threshold {threshold}, seed {seed}: a threshold above 0 and a seed from 0 to 2^31 - 1"
            " are wanted"
        )
    settings = (
        f"OpenCV {cv2.__version__} USAC, MAGSAC score, threshold {threshold:g} px, confidence"
        f" {CONFIDENCE}, at most {ITERATIONS} iterations, seed {seed}"
    )
    nothing = np.zeros(len(a), bool)
    if len(a) < LEAST[kind]:
        return Geometry(kind, None, nothing, settings)
    parameters = cv2.UsacParams()
    parameters.threshold, parameters.confidence = threshold, CONFIDENCE
    parameters.maxIterations, parameters.randomGeneratorState = ITERATIONS, seed
    parameters.score = cv2.SCORE_METHOD_MAGSAC
    parameters.sampler = cv2.SAMPLING_UNIFORM
    parameters.loMethod = cv2.LOCAL_OPTIM_SIGMA
    parameters.isParallel = False  # threads would draw in varying order
    first, second = np.ascontiguousarray(a), np.ascontiguousarray(b)
    matrix, mask = (
        cv2.findFundamentalMat(first, second, parameters)
        if kind == "fundamental"
        else cv2.findHomography(first, second, parameters)
    )
    if matrix is None or np.shape(matrix) != (3, 3):
        return Geometry(kind, None, nothing, settings)
    return Geometry(kind, np.asarray(matrix, np.float64), mask.ravel().astype(bool), settings)
