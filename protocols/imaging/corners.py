"""Corners of an image at all scales: points whose structure tensor has two large eigenvalues.

The measure of Shi & Tomasi (CVPR 1994) at a series of scales, like the multi-scale Harris detector
of Mikolajczyk & Schmid (IJCV 2004), section 2. There is no scale selection: a corner may be found
at several scales.
"""

import math

import numpy as np
from jaxtyping import Float32, UInt8

from protocols.imaging.detect import CAMERA, SMALLEST, direction
from protocols.imaging.frames import MAGNIFICATION, Frames
from protocols.imaging.sampling import smooth

SCALES = [SMALLEST, round(SMALLEST * math.sqrt(2), 9)]  # of the tensor's window, in an octave
DERIVED = 0.7  # scale of the derivatives / scale of the window
AROUND = 1.5  # scale of the gradient that gives the direction / scale of the window
CONTRAST = 3.0  # least change of the image in grey values, across the scale of the derivatives


def corners(grey: UInt8[np.ndarray, "height width"]) -> Frames:
    """Oriented regions around corners, the strongest first; ties from left to right."""
    image = smooth(grey.astype(np.float32), _added(CAMERA, DERIVED * SCALES[0]))
    tables = []
    pixel = 1  # size of this octave's pixels, in pixels of the image
    while MAGNIFICATION * SMALLEST * pixel * 2 < min(grey.shape):
        for scale in SCALES:
            tables.append(_peaks(image, scale, pixel))
            image = smooth(image, _added(DERIVED * scale, DERIVED * scale * math.sqrt(2)))
        image = image[::2, ::2]
        pixel *= 2
    columns = [np.concatenate(parts) for parts in zip(*tables, strict=True)] or [np.empty(0)] * 6
    x, y, half, _, _, response = columns
    return Frames(*columns).take(np.lexsort((half, y, x, -response)))


def _added(blur: float, wanted: float) -> float:
    return round(math.sqrt(wanted**2 - blur**2), 9)


def _peaks(
    image: Float32[np.ndarray, "height width"], scale: float, pixel: int
) -> tuple[np.ndarray, ...]:
    """Columns of Frames: corners of an image already smoothed for the derivatives."""
    right, down = np.zeros_like(image), np.zeros_like(image)
    step = np.float32(DERIVED * scale / 2)  # from a change over two pixels to one over a scale
    right[:, 1:-1] = (image[:, 2:] - image[:, :-2]) * step
    down[1:-1] = (image[2:] - image[:-2]) * step
    xx, yy, xy = (smooth(part, scale) for part in (right * right, down * down, right * down))
    half = (xx - yy) / 2
    least = (xx + yy) / 2 - np.sqrt(half * half + xy * xy)
    here = least[1:-1, 1:-1]
    peak = here > CONTRAST**2
    for dy, dx in np.ndindex(3, 3):
        if (dy, dx) != (1, 1):
            near = least[dy : dy + here.shape[0], dx : dx + here.shape[1]]
            peak &= here > near if (dy, dx) < (1, 1) else here >= near  # one of several that tie
    y, x = (place + 1 for place in np.nonzero(peak))
    blurred = smooth(image, _added(DERIVED * scale, AROUND * scale))
    cos, sin = direction(blurred, y, x)
    size = np.full(len(x), MAGNIFICATION * scale * pixel)
    response = np.sqrt(least[y, x]).astype(np.float64)
    return x * float(pixel), y * float(pixel), size, cos, sin, response
