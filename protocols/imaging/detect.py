"""Detects regions of an image: extrema of the difference of Gaussians."""

import math
from itertools import pairwise

import numpy as np
from jaxtyping import Float32, Float64, Int, UInt8

from protocols.imaging.frames import MAGNIFICATION, Frames
from protocols.imaging.sampling import smooth

SMALLEST = 1.6  # scale in pixels: HPatches has no regions below 16 x 16 pixels
CAMERA = 0.5  # blur of the original image, in pixels, as Lowe (2004) assumes
CONTRAST = 2.0  # least difference of neighbouring scales, in grey values
EDGE = 10.0  # largest ratio of principal curvatures, Lowe (2004), section 4.1
PER_OCTAVE = 3

RATIO = round(2 ** (1 / PER_OCTAVE), 9)  # between neighbouring scales
SCALES = [round(SMALLEST * 2 ** ((i - 1) / PER_OCTAVE), 9) for i in range(PER_OCTAVE + 3)]


def detect(grey: UInt8[np.ndarray, "height width"]) -> Frames:
    """Oriented regions in an image, the strongest first; ties from left to right.

    Lowe's detector without the sub-pixel refinement, in operations that give the same bits on every
    machine. The direction is the gradient's at the point, averaged by a Gaussian of about 1.5
    scales, the window of Lowe's histogram of directions.
    """
    image = smooth(grey.astype(np.float32), round(math.sqrt(SCALES[0] ** 2 - CAMERA**2), 9))
    tables = []
    pixel = 1  # size of this octave's pixels, in pixels of the image
    while MAGNIFICATION * SMALLEST * pixel * 2 < min(grey.shape):
        levels = [image]
        for scale in SCALES[:-1]:
            levels.append(smooth(levels[-1], round(scale * math.sqrt(RATIO**2 - 1), 9)))
        differences = [b - a for a, b in pairwise(levels)]
        for i in range(1, PER_OCTAVE + 1):
            tables.append(_extrema(differences[i - 1 : i + 2], levels[i + 2], SCALES[i], pixel))
        image = levels[PER_OCTAVE][::2, ::2]
        pixel *= 2
    columns = [np.concatenate(parts) for parts in zip(*tables, strict=True)] or [np.empty(0)] * 6
    x, y, half, _, _, response = columns
    return Frames(*columns).take(np.lexsort((half, y, x, -response)))


def _extrema(
    differences: list[Float32[np.ndarray, "height width"]],
    blurred: Float32[np.ndarray, "height width"],
    scale: float,
    pixel: int,
) -> tuple[np.ndarray, ...]:
    """Columns of Frames: pixels that are extreme among their 26 neighbours in place and scale."""
    here = differences[1]
    y, x = np.nonzero(np.abs(here[1:-1, 1:-1]) > CONTRAST)
    y, x = y + 1, x + 1
    sign = np.sign(here[y, x])
    for level, dy, dx in np.ndindex(3, 3, 3):
        if (level, dy, dx) == (1, 1, 1):
            continue
        gap = sign * (here[y, x] - differences[level][y + dy - 1, x + dx - 1])
        beyond = gap > 0 if (level, dy, dx) < (1, 1, 1) else gap >= 0  # one of several that tie
        y, x, sign = y[beyond], x[beyond], sign[beyond]
    middle = here[y, x]
    xx = here[y, x - 1] + here[y, x + 1] - 2 * middle
    yy = here[y - 1, x] + here[y + 1, x] - 2 * middle
    xy = (here[y + 1, x + 1] - here[y + 1, x - 1] - here[y - 1, x + 1] + here[y - 1, x - 1]) / 4
    trace, determinant = xx + yy, xx * yy - xy * xy
    blob = (determinant > 0) & (EDGE * trace * trace < (EDGE + 1) ** 2 * determinant)
    y, x, middle = y[blob], x[blob], middle[blob]
    cos, sin = direction(blurred, y, x)
    half = np.full(len(x), MAGNIFICATION * scale * pixel)
    return x * float(pixel), y * float(pixel), half, cos, sin, np.abs(middle).astype(np.float64)


def direction(
    blurred: Float32[np.ndarray, "height width"],
    y: Int[np.ndarray, " n"],
    x: Int[np.ndarray, " n"],
) -> tuple[Float64[np.ndarray, " n"], Float64[np.ndarray, " n"]]:
    """Cosine and sine of the gradient's direction; where the image is flat, to the right."""
    right = (blurred[y, x + 1] - blurred[y, x - 1]).astype(np.float64)
    down = (blurred[y + 1, x] - blurred[y - 1, x]).astype(np.float64)
    norm = np.sqrt(right * right + down * down)
    cos = np.divide(right, norm, out=np.ones(len(norm)), where=norm > 0)
    sin = np.divide(down, norm, out=np.zeros(len(norm)), where=norm > 0)
    return cos, sin
