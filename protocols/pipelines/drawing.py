"""Draws the matches of two images side by side; inliers in green, other matches in orange."""

from collections.abc import Sequence

import cv2
import numpy as np
from jaxtyping import Bool, Float64

Places = Float64[np.ndarray, "m 2"]

WIDTH = 1600  # pixels of the picture
GAP = 8  # pixels between the images
LINES = 150  # most lines of each colour: the matches are taken evenly from all
GREEN, ORANGE = (115, 158, 0), (0, 94, 213)  # blue, green, red; also distinct for the colour-blind
PAPER = 255
FRACTION = 4  # binary digits of places between pixels


def matches(
    images: Sequence[np.ndarray], places: Sequence[Places], inlier: Bool[np.ndarray, " m"]
) -> bytes:
    """A PNG of two grey images with a line for each match; inliers are drawn on top.

    Args:
        images: grey values 0 to 255.
        places: of the matches in each image, pixels.
        inlier: which matches agree with the geometry.
    """
    heights, widths = zip(*(image.shape for image in images), strict=True)
    scale = (WIDTH - GAP) / sum(widths)
    canvas = np.full((max(1, round(max(heights) * scale)), WIDTH, 3), PAPER, np.uint8)
    lefts = (0, WIDTH - max(1, round(widths[1] * scale)))
    for image, left in zip(images, lefts, strict=True):
        size = max(1, round(image.shape[1] * scale)), max(1, round(image.shape[0] * scale))
        small = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
        part = canvas[: size[1], left : left + size[0]]
        part[:] = np.rint(small)[: part.shape[0], : part.shape[1], None]
    ends = [
        (points + 0.5) * scale - 0.5 + [left, 0] for points, left in zip(places, lefts, strict=True)
    ]
    for rows, colour in ((np.flatnonzero(~inlier), ORANGE), (np.flatnonzero(inlier), GREEN)):
        step = -(-len(rows) // LINES) or 1
        for row in rows[::step].tolist():
            a, b = (_fixed(points[row]) for points in ends)
            cv2.line(canvas, a, b, colour, 1, cv2.LINE_AA, FRACTION)
            for end in (a, b):
                cv2.circle(canvas, end, 2 << FRACTION, colour, 1, cv2.LINE_AA, FRACTION)
    return cv2.imencode(".png", canvas)[1].tobytes()


def _fixed(place: Float64[np.ndarray, "2"]) -> tuple[int, int]:
    """A place in OpenCV's fixed-point form."""
    x, y = np.rint(place * 2**FRACTION).astype(int).tolist()
    return x, y
