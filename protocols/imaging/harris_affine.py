"""Harris-Affine regions: Harris corners with a characteristic scale and an affine shape.

Mikolajczyk & Schmid, Scale & affine invariant interest point detectors, IJCV 2004:
- Corners are peaks of the scale-adapted Harris measure at a series of scales (section 3.1).
- A corner is kept if its Laplacian has an extremum over scale within half an octave; this
  extremum gives the region's scale (3.2).
- The second moment matrix gives the region's shape, by iteration (4).

Three things differ from the paper. A corner stays at the peak of the Harris measure, is not tracked
over scales, and keeps its scale during the shape iteration. The last two are as in VLFeat.
"""

import math
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from jaxtyping import Float32, Float64, Int, UInt8

from protocols.imaging.affine import AffineFrames, image_from_patch
from protocols.imaging.detect import CAMERA
from protocols.imaging.sampling import Image, read, smooth

FINEST = 0.8  # scale in pixels: the blur at which derivatives are taken
PER_OCTAVE = 6  # scales of the Laplacian
EVERY = 2  # corners are searched at every second scale
HALF_OCTAVE = 3  # the Laplacian's extremum lies within so many scales of the corner's
SMALLEST = 24  # pixels: the smallest side of an image of the pyramid

WINDOW = 1.4  # scale of the Harris measure's window / scale of its derivatives
ALPHA = 0.05
LEAST = 10.0  # smallest Harris measure, grey values to the fourth: VLFeat's PeakThreshold
ASKED = 1024  # corners whose neighbours are sought together; most of a large image's are not needed
ALIKE = 0.5  # two corners so near in place and scale, relative to scale, count as one

EXTENT, SIDE = 9.0, 25  # half side in radii and side in pixels of the patch that gives a shape
SHAPE_WINDOW = 3.0  # radii
STEPS = 5  # iterations of the shape; further ones change little
ROUND = 1.05  # a shape with a smaller ratio of radii is final
LONGEST = 6.0  # largest ratio of a region's radii
TOGETHER = 64  # patches that are read at a time
DECIMALS = 6
"""Decimals of shapes in pixels. The last bits of a sum, a root or an arc tangent differ between
processors and libraries; rounded double precision gives the same regions everywhere."""

BINS = 36  # of the histogram of directions, as Lowe's (IJCV 2004, section 5)
PEAK = 0.8  # a bin this high, relative to the highest, gives one more region
DIRECTIONS = 4  # of a region, at most


Gradient = Float64[np.ndarray, "n pixels"]


@dataclass(frozen=True, eq=False)
class _Level:
    """An image smoothed to a scale, both in pixels of the original."""

    scale: float
    pixel: int  # distance between its pixels
    image: Image


def harris_affine(grey: UInt8[np.ndarray, "height width"], most: int) -> AffineFrames:
    """Oriented regions of the strongest corners, at most `most`; the strongest first.

    The smaller radius of a region is the scale of its corner. A corner with several directions
    gives one region for each.
    """
    levels = _levels(grey)
    regions = _oriented(levels, _adapted(levels, _corners(levels, most)), DIRECTIONS)
    return regions.take(np.arange(min(most, len(regions))))


def oriented(grey: UInt8[np.ndarray, "height width"], frames: AffineFrames) -> AffineFrames:
    """Regions turned so that the main gradient of the image points along their x axis."""
    return _oriented(_levels(grey), frames, 1)


def _levels(grey: UInt8[np.ndarray, "height width"]) -> list[_Level]:
    """The scale pyramid: PER_OCTAVE scales an octave; each octave halves the number of pixels."""
    scales = [FINEST * 2 ** (i / PER_OCTAVE) for i in range(PER_OCTAVE + 1)]
    image, pixel = smooth(grey.astype(np.float32), math.sqrt(FINEST**2 - CAMERA**2)), 1
    levels: list[_Level] = []
    while not levels or min(image.shape) >= SMALLEST:
        for scale, coarser in pairwise(scales):
            levels.append(_Level(scale * pixel, pixel, image))
            image = smooth(image, math.sqrt(coarser**2 - scale**2))
        image, pixel = image[::2, ::2], 2 * pixel
    return levels


# ---- corners, and their scales


def _corners(levels: list[_Level], most: int) -> AffineFrames:
    """Circles around the strongest corners; of equal ones, from top to bottom, left to right."""
    large = [level for level in levels[::EVERY] if min(level.image.shape) >= SMALLEST]
    peaks = [np.empty((0, 3)), *map(_peaks, large)]
    first = np.repeat(np.arange(-1, len(large)) * EVERY, [len(rows) for rows in peaks])
    place, measure = np.split(np.concatenate(peaks), [2], axis=1)
    scale = _own_scale(levels, place, first)
    order = np.lexsort((*place.T, -measure[:, 0]))
    order = order[scale[order] > 0]
    order = order[_distinct(place[order], scale[order], most)]
    circles = scale[order, None, None] * np.eye(2)
    x, y = place[order].T.copy()
    return AffineFrames(x, y, circles, measure[order, 0])


def _peaks(level: _Level) -> Float64[np.ndarray, "n 3"]:
    """x, y and Harris measure of the corners of one level, refined by a quadratic fit."""
    scale = level.scale / level.pixel
    down, right = (np.float32(scale) * part for part in np.gradient(level.image))
    tensor = right * right, down * down, right * down
    xx, yy, xy = (smooth(part, WINDOW * scale).astype(np.float64) for part in tensor)
    measure = xx * yy - xy * xy - ALPHA * (xx + yy) ** 2
    here = measure[1:-1, 1:-1]
    peak = here > LEAST
    for dy, dx in np.ndindex(3, 3):
        if (dy, dx) != (1, 1):
            near = measure[dy : dy + here.shape[0], dx : dx + here.shape[1]]
            peak &= here > near if (dy, dx) < (1, 1) else here >= near  # one of several that tie
    y, x = (place + 1 for place in np.nonzero(peak))
    upper, middle, lower = (
        measure[y[:, None] + row, x[:, None] + [-1, 0, 1]].T for row in (-1, 0, 1)
    )
    gx, gy = (middle[2] - middle[0]) / 2, (lower[1] - upper[1]) / 2
    gxx, gyy = middle[0] + middle[2] - 2 * middle[1], upper[1] + lower[1] - 2 * middle[1]
    gxy = (lower[2] - lower[0] - upper[2] + upper[0]) / 4
    determinant = gxx * gyy - gxy * gxy
    bowl = determinant > 0
    determinant[~bowl] = 1
    dx, dy = (gxy * gy - gyy * gx) / determinant, (gxy * gx - gxx * gy) / determinant
    top = middle[1] + (gx * dx + gy * dy) / 2
    sure = bowl & (np.abs(dx) < 1) & (np.abs(dy) < 1)
    return np.stack([(x + dx) * level.pixel, (y + dy) * level.pixel, top], axis=1)[sure]


def _own_scale(
    levels: list[_Level], place: Float64[np.ndarray, "n 2"], first: Int[np.ndarray, " n"]
) -> Float64[np.ndarray, " n"]:
    """The scale of the Laplacian's highest peak at each corner, or 0 if there is no peak."""
    # Infinity where the Laplacian is not computed: no peak can be next to it.
    response = np.full((len(place), 2 * HALF_OCTAVE + 1), np.inf)
    for i, level in enumerate(levels):
        rows = np.flatnonzero(np.abs(first - i) <= HALF_OCTAVE)
        value = np.abs(_values(_laplacian(level), place[rows] / level.pixel))
        response[rows, i - first[rows] + HALF_OCTAVE] = value
    before, here, after = response[:, :-2], response[:, 1:-1], response[:, 2:]
    peak = np.where((here > before) & (here > after), here, 0)
    row, best = np.arange(len(place)), peak.argmax(axis=1)
    has_peak = peak[row, best] > 0
    a, b, c = (part[row, best][has_peak] for part in (before, here, after))
    at = (first + best + 1 - HALF_OCTAVE)[has_peak] + (a - c) / (a - 2 * b + c) / 2
    scale = np.zeros(len(place))
    scale[has_peak] = FINEST * 2 ** (at / PER_OCTAVE)
    return scale


def _laplacian(level: _Level) -> Image:
    """The Laplacian of the image, times the square of its scale."""
    padded = np.pad(level.image, 1, mode="edge")
    around = padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:]
    return np.float32((level.scale / level.pixel) ** 2) * (around - 4 * level.image)


def _values(image: Image, place: Float64[np.ndarray, "n 2"]) -> Float32[np.ndarray, " n"]:
    maps = np.zeros((len(place), 3, 3))
    maps[:, :2, 2], maps[:, 2, 2] = place, 1
    return read(image, maps, np.zeros(1), np.zeros(1))[:, 0, 0]


def _distinct(
    place: Float64[np.ndarray, "n 2"], scale: Float64[np.ndarray, " n"], most: int
) -> Int[np.ndarray, " some"]:
    """The first corners, at most `most`, that are near no earlier one of them."""
    from scipy.spatial import KDTree

    tree, alone = KDTree(place), np.ones(len(place), bool)
    chosen: list[int] = []
    for start in range(0, len(place), ASKED):
        some = slice(start, start + ASKED)
        for i, near in enumerate(tree.query_ball_point(place[some], ALIKE * scale[some]), start):
            if alone[i]:
                chosen.append(i)
                later = np.array([j for j in near if j > i], np.intp)
                factor = scale[later] / scale[i]
                alone[later[(factor < 1 + ALIKE) & (factor > 1 / (1 + ALIKE))]] = False
        if len(chosen) >= most:
            break
    return np.array(chosen[:most], np.intp)


# ---- their shapes, and their directions


def _adapted(levels: list[_Level], circles: AffineFrames) -> AffineFrames:
    """Regions with the shape that makes the second moment matrix isotropic, if there is one.

    A region without a shape is dropped. Regions stay upright.
    """
    matrix, radius = circles.matrix.copy(), circles.matrix[:, 0, 0]
    kept, active = np.ones(len(circles), bool), np.arange(len(circles))
    for _ in range(STEPS):
        right, down = _gradients(levels, replace(circles.take(active), matrix=matrix[active]))
        both = np.stack([right, down])
        tensor = np.einsum("inp,jnp,p->nij", both, both, _window(), optimize=True)
        value, vector = np.linalg.eigh(tensor)
        flat = value[:, 0] <= 1e-6 * value[:, 1]
        value[flat] = 1
        shape = matrix[active] @ (vector / np.sqrt(value)[:, None]) @ vector.swapaxes(1, 2)
        radii = np.linalg.svd(shape, compute_uv=False)
        matrix[active] = (shape * (radius[active] / radii[:, 1])[:, None, None]).round(DECIMALS)
        kept[active] = ~flat & (radii[:, 0] < LONGEST * radii[:, 1])
        active = active[kept[active] & (value[:, 1] > ROUND**2 * value[:, 0])]
    rows = np.flatnonzero(kept)
    matrix = matrix[rows]
    upright = _turned(matrix, np.arctan2(matrix[:, 0, 1], matrix[:, 0, 0]))
    return replace(circles.take(rows), matrix=upright)


def _oriented(levels: list[_Level], frames: AffineFrames, most: int) -> AffineFrames:
    """A copy of each region for each main direction of its gradients; flat regions stay as is."""
    right, down = _gradients(levels, frames)
    length = np.hypot(right, down) * _window()
    place = np.arctan2(down, right) * (BINS / (2 * np.pi)) % BINS
    low = np.floor(place)
    histogram = np.zeros((len(frames), BINS))
    for bins, share in ((low, 1 - (place - low)), (low + 1, place - low)):
        at = np.arange(len(frames))[:, None] * BINS + bins.astype(np.intp) % BINS
        added = np.bincount(at.ravel(), (length * share).ravel(), histogram.size)
        histogram += added.reshape(histogram.shape)
    for _ in range(6):
        histogram = (np.roll(histogram, 1, 1) + histogram + np.roll(histogram, -1, 1)) / 3
    before, after = np.roll(histogram, 1, 1), np.roll(histogram, -1, 1)
    peak = np.where((histogram > before) & (histogram >= after), histogram, 0)
    order = np.argsort(-peak, axis=1, kind="stable")[:, :most]
    height = np.take_along_axis(peak, order, axis=1)
    chosen = (height > 0) & (height >= PEAK * height[:, :1])
    chosen[:, 0] = True
    row, rank = np.nonzero(chosen)
    bins = order[row, rank]
    a, b, c = (part[row, bins] for part in (before, histogram, after))
    bent = a - 2 * b + c
    aside = np.divide(a - c, 2 * bent, out=np.zeros(len(row)), where=bent < 0)
    copies = frames.take(row)
    return replace(copies, matrix=_turned(copies.matrix, (bins + aside) * (2 * np.pi / BINS)))


def _gradients(levels: list[_Level], frames: AffineFrames) -> tuple[Gradient, Gradient]:
    """Gradients of each region's normalised patch, to the right and down.

    The image is smoothed to the region's smaller radius, or a little less.
    """
    radius = np.linalg.svd(frames.matrix, compute_uv=False)[:, 1]
    scales = [level.scale for level in levels]
    best = np.maximum(np.searchsorted(scales, radius, side="right") - 1, 0)
    maps, line = image_from_patch(frames, EXTENT), np.linspace(-1, 1, SIDE)
    patches = np.empty((len(frames), SIDE, SIDE), np.float32)
    for i in np.unique(best).tolist():
        level, rows = levels[i], np.flatnonzero(best == i)
        for begin in range(0, len(rows), TOGETHER):
            some = rows[begin : begin + TOGETHER]
            there = maps[some]
            there[:, :2] /= level.pixel
            patches[some] = read(level.image, there, line, line)
    right = patches[:, 1:-1, 2:] - patches[:, 1:-1, :-2]
    down = patches[:, 2:, 1:-1] - patches[:, :-2, 1:-1]
    pixels = (SIDE - 2) ** 2
    return (
        right.reshape(-1, pixels).astype(np.float64),
        down.reshape(-1, pixels).astype(np.float64),
    )


def _window() -> Float64[np.ndarray, " pixels"]:
    """Gaussian weights of a patch's gradients."""
    line = np.linspace(-EXTENT, EXTENT, SIDE)[1:-1] / SHAPE_WINDOW
    return np.exp(-0.5 * (line**2 + line[:, None] ** 2)).ravel()


def _turned(
    matrix: Float64[np.ndarray, "n 2 2"], angle: Float64[np.ndarray, " n"]
) -> Float64[np.ndarray, "n 2 2"]:
    cos, sin = np.cos(angle), np.sin(angle)
    turn = np.stack([np.stack([cos, -sin], axis=1), np.stack([sin, cos], axis=1)], axis=1)
    return (matrix @ turn).round(DECIMALS)
