"""Square regions of an image: their maps, jitter, visibility and thinning.

All maps are 3 x 3 matrices on pixel coordinates; "image_from_patch" takes the square [-1, 1]^2 to
the region. Only + - * / sqrt and comparisons of float64 are used, one operation at a time: IEEE
754 defines each of them exactly, so the same images give the same bytes on every machine.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64, Int

Maps = Float64[np.ndarray, "n 3 3"]


@dataclass(frozen=True, eq=False)
class Frames:
    """Oriented squares in one image, the strongest first."""

    x: Float64[np.ndarray, " n"]  # centre, pixels
    y: Float64[np.ndarray, " n"]
    half: Float64[np.ndarray, " n"]  # half a side, pixels
    cos: Float64[np.ndarray, " n"]  # of the angle from the image's x axis to the square's
    sin: Float64[np.ndarray, " n"]
    response: Float64[np.ndarray, " n"]  # of the detector

    def __len__(self) -> int:
        """The number of squares."""
        return len(self.x)

    def take(self, rows: Int[np.ndarray, " m"]) -> "Frames":
        """The squares at these rows, in this order."""
        return Frames(*(values[rows] for values in vars(self).values()))


@dataclass(frozen=True)
class Noise:
    """Bounds of the jitter. Each part is drawn evenly between its bound and the bound's inverse."""

    half_tangent: float  # of the largest rotation: tan(angle / 2)
    scale: float  # largest factor of the side
    stretch: float  # largest factor of one side; the other side is divided by it
    shift: float  # largest move along each axis, in units of the detected scale


MAGNIFICATION = 5.0  # half a side of the region / detected scale, as in HPatches

# The kinds of noise are those of HPatches (CVPR 2017, section 3). The bounds are ours. They make
# the median overlap of a detected region with its jittered copy equal to the authors' value: 0.85
# for easy, 0.72 for hard, 0.6 for tough. The authors do not say at which scale they measure it.
# With the overlap of the whole region, shifts reach 0.41 half sides: RootSIFT beats TFeat at every
# level, and BRIEF is useless. With the overlap of the disc of the detected scale, TFeat is better
# at tough, as in HPatches' own results.
NOISE = {
    "e": Noise(half_tangent=0.087488664, scale=1.10, stretch=1.05, shift=0.13),  # 10 degrees
    "h": Noise(half_tangent=0.176326981, scale=1.20, stretch=1.12, shift=0.27),  # 20 degrees
    "t": Noise(half_tangent=0.267949192, scale=1.35, stretch=1.16, shift=0.41),  # 30 degrees
}
DRAWS = 5  # random numbers for one jitter


def compose(
    a: Float64[np.ndarray, "*n 3 3"], b: Float64[np.ndarray, "*m 3 3"]
) -> Float64[np.ndarray, "*k 3 3"]:
    """The map that applies b, then a; shapes are broadcast."""
    first, second, third = (a[..., :, i : i + 1] * b[..., i : i + 1, :] for i in range(3))
    return first + second + third


def image_from_patch(frames: Frames) -> Maps:
    """The map from the square [-1, 1]^2 to each region."""
    maps = np.zeros((len(frames), 3, 3))
    maps[:, 0, 0] = maps[:, 1, 1] = frames.half * frames.cos
    maps[:, 1, 0] = frames.half * frames.sin
    maps[:, 0, 1] = -maps[:, 1, 0]
    maps[:, 0, 2] = frames.x
    maps[:, 1, 2] = frames.y
    maps[:, 2, 2] = 1
    return maps


def jitter(noise: Noise, uniform: Float64[np.ndarray, "n 5"]) -> Maps:
    """Random affine maps of the square around its centre, from uniform numbers in [0, 1).

    Rational functions give the rotation and the factors, so that no sine and no power is needed.
    The angle is uniform to 7 %, the logarithm of a factor to 3 %.
    """
    turn, scale, stretch, right, down = np.moveaxis(2 * uniform - 1, 1, 0)
    tangent = noise.half_tangent * turn
    norm = 1 + tangent * tangent
    cos, sin = (1 - tangent * tangent) / norm, 2 * tangent / norm
    scale, stretch = _factor(noise.scale, scale), _factor(noise.stretch, stretch)
    along_x, along_y = scale / stretch, scale * stretch
    maps = np.zeros((len(uniform), 3, 3))
    maps[:, 0, 0], maps[:, 0, 1] = cos * along_x, -(sin * along_y)
    maps[:, 1, 0], maps[:, 1, 1] = sin * along_x, cos * along_y
    shift = noise.shift / MAGNIFICATION
    maps[:, 0, 2], maps[:, 1, 2] = shift * right, shift * down
    maps[:, 2, 2] = 1
    return maps


def _factor(largest: float, evenly: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, " n"]:
    """A factor in [1 / largest, largest] from a number in [-1, 1]."""
    part = (largest - 1) / (largest + 1) * evenly
    return (1 + part) / (1 - part)


def uniform(seed: tuple[int, ...], *shape: int) -> Float64[np.ndarray, "..."]:
    """Uniform numbers in [0, 1) from PCG64's raw stream, the same in all versions of NumPy."""
    raw = np.random.PCG64(seed).random_raw(math.prod(shape))
    return (raw >> np.uint64(11)).astype(np.float64).reshape(shape) * 2.0**-53


def overlap(jittered: Maps) -> Float64[np.ndarray, " n"]:
    """Intersection over union of the disc of the detected scale and its image under each jitter.

    It is counted on a grid: exact to 0.01 for one region.
    """
    line = (np.arange(20) + 0.5) / 10 - 1
    x, y = (axis.ravel() for axis in np.meshgrid(line, line))
    disc = x * x + y * y < 1
    x, y = (axis[disc] - MAGNIFICATION * jittered[:, i, 2, None] for i, axis in enumerate((x, y)))
    (a, b), (c, d) = (jittered[:, i, :2, None].swapaxes(0, 1) for i in range(2))
    area = a * d - b * c
    u, v = (d * x - b * y) / area, (a * y - c * x) / area
    both = np.count_nonzero(u * u + v * v < 1, axis=1) / np.count_nonzero(disc)
    return both / (1 + area[:, 0] - both)


def inside(maps: Maps, height: int, width: int) -> Bool[np.ndarray, " n"]:
    """Whether the whole region lies on the image, between the centres of the outermost pixels."""
    visible = np.ones(len(maps), bool)
    for u, v in ((-1, -1), (1, -1), (1, 1), (-1, 1)):
        x, y, w = (maps[:, i, 0] * u + maps[:, i, 1] * v + maps[:, i, 2] for i in range(3))
        visible &= (w > 0) & (x >= 0) & (y >= 0) & (x <= (width - 1) * w) & (y <= (height - 1) * w)
    return visible


def thin(frames: Frames, most: float = 0.5) -> Bool[np.ndarray, " n"]:
    """Which regions to keep so that no two overlap by more than `most`; the stronger one is kept.

    Overlap is the intersection over union of the squares, as if they were upright. `most` must be
    0.25 or more.
    """
    order = np.argsort(frames.x, kind="stable")  # frames[order[i]] is the i-th from the left
    place = np.argsort(order, kind="stable")
    x, y, half = frames.x[order], frames.y[order], frames.half[order]
    left, right, top, bottom = x - half, x + half, y - half, y + half
    kept = np.ones(len(order), bool)
    # Two squares that overlap by more than `most` have centres within `reach` of each other.
    reach = 2 * (1 - most) * half
    low, high = np.searchsorted(x, x - reach), np.searchsorted(x, x + reach, side="right")
    for i in place:
        if not kept[i]:
            continue
        near = slice(low[i], high[i])
        wide = np.minimum(right[i], right[near]) - np.maximum(left[i], left[near])
        tall = np.minimum(bottom[i], bottom[near]) - np.maximum(top[i], top[near])
        both = np.maximum(wide, 0) * np.maximum(tall, 0)
        either = 4 * half[i] * half[i] + 4 * half[near] * half[near] - both
        kept[near] &= (both <= most * either) | (order[near] <= order[i])
    return kept[place]
