"""Estimates a homography from matches with OpenCV's RANSAC, and measures its error."""

import math
from dataclasses import dataclass

import cv2
import numpy as np
from jaxtyping import Float64

from protocols.imaging.portable import portable
from protocols.imaging.sequences import Homography

Points = Float64[np.ndarray, "n 2"]

FEWEST = 4  # matches that determine a homography
CONFIDENCE, ITERATIONS = 0.999, 5000  # of RANSAC
LOCAL = 5  # iterations of its local optimisation


@dataclass(frozen=True)
class Ransac:
    """How homographies are estimated: OpenCV's USAC, with uniform samples and MSAC's score."""

    threshold: float  # largest error of an inlier, pixels
    seeds: int  # the estimate is repeated with the seeds 0, 1, ...

    def __str__(self) -> str:
        """The settings in a sentence, for readers of a record."""
        return (
            f"cv2.findHomography with UsacParams of OpenCV {cv2.__version__}: uniform samples,"
            f" score MSAC, inner local optimisation of {LOCAL} iterations,"
            f" threshold {self.threshold:g} px, confidence {CONFIDENCE}, at most {ITERATIONS}"
            f" iterations, all else by default, seeds 0 to {self.seeds - 1}"
        )


def warp(homography: Homography, points: Points) -> Points:
    """Where a homography maps points; not finite where it maps them to infinity."""
    x, y = points.T
    u, v, w = homography @ np.stack([x, y, np.ones_like(x)])
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.stack([u / w, v / w], axis=1)


def transfer_errors(homography: Homography, a: Points, b: Points) -> Float64[np.ndarray, " n"]:
    """Distance of each point of b from its partner of a, mapped into the other image; pixels."""
    error = np.linalg.norm(warp(homography, a) - b, axis=1)
    return np.where(np.isfinite(error), error, np.inf)


def corner_error(found: Homography | None, true: Homography, shape: tuple[int, int]) -> float:
    """Mean distance of the four corners of image 1, mapped by two homographies; pixels of image k.

    The corners are the centres of the corner pixels: (0, 0), (width - 1, 0), (width - 1,
    height - 1) and (0, height - 1). DeTone and others, SuperPoint, CVPRW 2018. It is infinite if no
    homography was found.
    """
    if found is None:
        return math.inf
    height, width = shape
    corners = np.array([[0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1]], float)
    error = float(transfer_errors(found, corners, warp(true, corners)).mean())
    return error if math.isfinite(error) else math.inf


def estimate(a: Points, b: Points, ransac: Ransac, seed: int) -> Homography | None:
    """The homography that maps points a to their partners b; None if RANSAC finds none."""
    if len(a) < FEWEST:
        return None
    settings = cv2.UsacParams()
    settings.sampler = cv2.SAMPLING_UNIFORM
    settings.score = cv2.SCORE_METHOD_MSAC
    settings.loMethod = cv2.LOCAL_OPTIM_INNER_LO
    settings.loIterations = LOCAL
    settings.threshold = ransac.threshold
    settings.confidence = CONFIDENCE
    settings.maxIterations = ITERATIONS
    settings.randomGeneratorState = seed
    settings.isParallel = False
    with portable():
        found, _ = cv2.findHomography(a, b, settings)
    return None if found is None else np.asarray(found, np.float64)
