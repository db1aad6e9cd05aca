"""Samples an image through a map, after smoothing for the step between samples; bilinear.

As in `frames`, only operations that IEEE 754 defines exactly are used, one at a time. Weights are
rounded, and sums run in a fixed order, so that every machine gives the same bytes.
"""

import math
from collections.abc import Iterator

import numpy as np
from jaxtyping import Float32, Float64, Int, UInt8

from protocols.imaging.frames import Maps

SIDE = 65  # pixels of a patch
READ = 8  # patches sampled at a time: their coordinates fit into the processor's cache

# Levels of smoothing, for steps of 1, sqrt(2), 2, ... pixels. STEPS: the bounds half way between
# levels. ADDED: the blur, in pixels, from each level to the next.
STEPS = np.array([round(2 ** (i / 2 + 0.25), 9) for i in range(16)])
ADDED = [round(0.5 * math.sqrt(2**i), 9) for i in range(16)]

Image = Float32[np.ndarray, "height width"]


def patches(image: Image, image_from_patch: Maps) -> UInt8[np.ndarray, "n 65 65"]:
    """The patch of each region, sampled through the full homography, which is not linearised.

    The step between samples is the geometric mean of the two directions, in the patch's middle.
    """
    depth = image_from_patch[:, 2, 2]
    area = np.abs(_determinant(image_from_patch) / (depth * depth * depth))
    out = np.empty((len(image_from_patch), SIDE, SIDE), np.uint8)
    for rows, some in extract(image, image_from_patch, np.sqrt(area) / (SIDE / 2), SIDE):
        out[rows] = some
    return out


def extract(
    image: Image, image_from_patch: Maps, step: Float64[np.ndarray, " n"], side: int
) -> Iterator[tuple[Int[np.ndarray, " some"], UInt8[np.ndarray, "some side side"]]]:
    """Yields patches of `side` pixels that fill [-1, 1] x [-1, 1], a few rows at a time.

    If a patch's pixels lie s > 1 image pixels apart, it is read from the image smoothed by
    0.5 sqrt(s^2 - 1), with s rounded to a power of sqrt(2). A camera with pixels of that size
    would have added the same blur.

    Yields:
        The rows of some maps, and their patches.
    """
    line = middles(side)
    for rows, smoothed, _ in levels(image, step):
        for i in range(0, len(rows), READ):
            chunk = rows[i : i + READ]
            yield chunk, rounded(read(smoothed, image_from_patch[chunk], line, line))


def levels(
    image: Image, step: Float64[np.ndarray, " n"]
) -> Iterator[tuple[Int[np.ndarray, " some"], Image, float]]:
    """For each level of smoothing: rows to read at it, the smoothed image, the level's step."""
    level = np.searchsorted(STEPS, step)
    for current in range(int(level.max(initial=0)) + 1):
        if current:
            image = smooth(image, ADDED[current - 1])
        yield np.flatnonzero(level == current), image, 2 ** (current / 2)


def middles(side: int) -> Float64[np.ndarray, " side"]:
    """Centres of the pixels of a patch that fills [-1, 1]."""
    return (np.arange(side) - (side - 1) / 2) / (side / 2)


def read(
    image: Image,
    image_from_target: Maps,
    x: Float64[np.ndarray, " columns"],
    y: Float64[np.ndarray, " rows"],
) -> Float32[np.ndarray, "n rows columns"]:
    """Bilinear values of the image where each map takes the grid of points (x, y).

    Beyond the centres of the outermost pixels, the border is repeated.
    """
    maps = image_from_target[:, :, :, None, None]
    u, v, w = (maps[:, i, 0] * x + (maps[:, i, 1] * y[:, None] + maps[:, i, 2]) for i in range(3))
    u /= w
    v /= w
    np.clip(u, 0, image.shape[1] - 1, out=u)
    np.clip(v, 0, image.shape[0] - 1, out=v)
    column, row = np.floor(u), np.floor(v)
    u -= column
    v -= row
    row *= image.shape[1]
    row += column
    at = row.astype(np.intp)
    right, down = u.astype(np.float32), v.astype(np.float32)
    flat, width = image.ravel(), image.shape[1]
    # A point on the last row or column gives weight 0 to the pixel beyond: its value is free.
    a, b, c, d = (
        flat[min(i, flat.size - 1) :].take(at, mode="clip") for i in (0, 1, width, width + 1)
    )
    upper, lower = _between(a, b, right), _between(c, d, right)
    return _between(upper, lower, down)


def _between(a: np.ndarray, b: np.ndarray, share: np.ndarray) -> np.ndarray:
    b -= a
    b *= share
    b += a
    return b


def rounded(image: Float32[np.ndarray, "*shape"]) -> UInt8[np.ndarray, "*shape"]:
    """Grey values rounded to the nearest of 0..255, halves up."""
    return (np.clip(image, 0, 255) + np.float32(0.5)).astype(np.uint8)


def smooth(image: Image, sigma: float) -> Image:
    """Gaussian blur, cut off at 3 sigma; the border is repeated outwards."""
    radius = math.ceil(3 * sigma)
    # Rounded, because the last bit of exp differs between machines.
    half = [round(math.exp(-0.5 * (i / sigma) ** 2), 9) for i in range(radius + 1)]
    total = half[0] + 2 * sum(half[1:])
    weights = [np.float32(weight / total) for weight in half]
    for axis in (0, 1):
        padding = [(0, 0), (0, 0)]
        padding[axis] = (radius, radius)
        padded = np.pad(image, padding, mode="edge")
        length = image.shape[axis]
        parts = [
            padded[(slice(None),) * axis + (slice(i, i + length),)] for i in range(2 * radius + 1)
        ]
        out = parts[radius] * weights[0]
        for i in range(1, radius + 1):
            both = parts[radius - i] + parts[radius + i]
            both *= weights[i]
            out += both
        image = out
    return image


def _determinant(m: Maps) -> Float64[np.ndarray, " n"]:
    return (
        m[:, 0, 0] * (m[:, 1, 1] * m[:, 2, 2] - m[:, 1, 2] * m[:, 2, 1])
        - m[:, 0, 1] * (m[:, 1, 0] * m[:, 2, 2] - m[:, 1, 2] * m[:, 2, 0])
        + m[:, 0, 2] * (m[:, 1, 0] * m[:, 2, 1] - m[:, 1, 1] * m[:, 2, 0])
    )
