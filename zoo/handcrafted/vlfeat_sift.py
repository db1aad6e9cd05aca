"""SIFT and RootSIFT by VLFeat's conventions, in NumPy.

D. Lowe, Distinctive image features from scale-invariant keypoints, IJCV 2004.
R. Arandjelovic, A. Zisserman, Three things everyone should know to improve object retrieval,
CVPR 2012.
A. Vedaldi, B. Fulkerson, VLFeat 0.9.21, https://www.vlfeat.org: vl_imgradient_polar and
vl_sift_calc_raw_descriptor, as vl_covdet calls them on a patch that it has cut out.

A patch of n x n pixels is five cells wide, from the middle of its first pixel to the middle of its
last: the 4x4 cells of SIFT, and half a cell around them, from where bilinear shares still reach
them. Its centre is (n - 1)/2, its angle 0. Directions turn from x to y, where y points down; those
of OpenCV turn the other way. The patch is neither resized nor smoothed: vl_covdet
smooths while it cuts, and the patches of a benchmark are cut already.

VLFeat approximates two functions: the arc tangent by a polynomial, up to 0.0062 rad off, and the
Gaussian window by a table. Both are the same here. What remains is rounding: below 5e-6 in a
vector of unit length. `vl_sift` would return whole numbers, 512 times these; `vl_covdet` does not.
"""

import numpy as np
from jaxtyping import Float, Float32

from harness.distances import L2
from harness.types import Conventions, Descriptor, Patches
from zoo.describing import in_threads

LICENCE = "Apache-2.0"  # ours; VLFeat, whose numbers these are, is under the BSD licence
CELLS = 4  # a side
DIRECTIONS = 8
PATCH = 5  # width of the patch in cells
WINDOW = 2  # standard deviation of the Gaussian window, in cells
LIMIT = 0.2  # a number of the unit vector above it is cut
EPSILON = np.float32(2**-23)  # VLFeat's VL_EPSILON_F
ARC = np.float32(0.1821), np.float32(0.9675)  # of VLFeat's arc tangent
TABLE = np.arange(257) * 25 / 256  # where VLFeat knows exp(-x); it is linear between
KEYPOINT = "at (n - 1)/2 of n x n pixels, cells of (n - 1)/5 pixels, angle 0: vl_covdet's patch"
SOURCE = "Lowe, IJCV 2004; VLFeat 0.9.21"


def _sift(patches: Patches) -> Float32[np.ndarray, "n 128"]:
    return in_threads(_part, patches, 128, np.float32)


def _part(patches: Patches) -> Float32[np.ndarray, "n 128"]:
    return normalised(histograms(patches.astype(np.float32)), LIMIT)


def _rootsift(patches: Patches) -> Float32[np.ndarray, "n 128"]:
    vectors = _sift(patches)
    total = vectors.sum(axis=1, keepdims=True)
    return np.sqrt(vectors / np.where(total == 0, 1, total))  # a zero vector stays zero


def histograms(patches: Float32[np.ndarray, "n side side"]) -> Float32[np.ndarray, "n 128"]:
    """Histograms of gradients, not normalised: by cell row, cell column, direction."""
    n, side = patches.shape[:2]
    dy, dx = np.gradient(patches, axis=(1, 2))  # one-sided at the border
    size = np.sqrt(dx * dx + dy * dy).ravel()
    turn = _angle(dx, dy).ravel() * np.float32(DIRECTIONS / (2 * np.pi))
    before = np.floor(turn)
    behind = turn - before
    direction = before.astype(np.intp)
    field = np.zeros(len(size) * DIRECTIONS, np.float32)  # flat: NumPy fills it three times faster
    pixel = np.arange(len(size)) * DIRECTIONS
    field[pixel + direction % DIRECTIONS] = size * (1 - behind)
    field[pixel + (direction + 1) % DIRECTIONS] = size * behind
    # One product a patch, so that no row depends on the others.
    cells = _shares(side) @ field.reshape(n, side * side, DIRECTIONS)  # (n, 16, 8)
    return cells.reshape(n, CELLS * CELLS * DIRECTIONS)


def normalised(vectors: Float32[np.ndarray, "n dim"], limit: float) -> Float32[np.ndarray, "n dim"]:
    """Vectors of unit length, cut at a limit, and made unit length again; zero stays zero."""
    return _unit(np.minimum(_unit(vectors), np.float32(limit)))


def _unit(vectors: Float32[np.ndarray, "n dim"]) -> Float32[np.ndarray, "n dim"]:
    return vectors / (np.sqrt(np.einsum("nd,nd->n", vectors, vectors)) + EPSILON)[:, None]


def _angle(
    dx: Float32[np.ndarray, "n side side"], dy: Float32[np.ndarray, "n side side"]
) -> Float32[np.ndarray, "n side side"]:
    """Angles of gradients in radians, from -pi to pi, as vl_fast_atan2_f computes them."""
    width, height = np.abs(dx), np.abs(dy) + EPSILON
    ratio = (width - height) / (width + height)
    angle = (ARC[0] * ratio * ratio - ARC[1]) * ratio + np.float32(np.pi / 4)
    return np.copysign(np.where(dx < 0, np.float32(np.pi) - angle, angle), dy)


def _shares(side: int) -> Float32[np.ndarray, "16 pixels"]:
    """Share of each pixel in each cell: bilinear, times the window."""
    at = (np.arange(side) - (side - 1) / 2) * PATCH / (side - 1)  # in cells, from the centre
    middle = np.arange(CELLS) - (CELLS - 1) / 2
    near: Float[np.ndarray, "4 side"] = np.maximum(1 - np.abs(at - middle[:, None]), 0)
    window = np.interp(
        (at[:, None] ** 2 + at**2) / (2 * WINDOW**2), TABLE, np.exp(-TABLE)
    )  # (side, side)
    shares = near[:, None, :, None] * near[None, :, None, :] * window
    return shares.reshape(CELLS * CELLS, side * side).astype(np.float32)


def sift() -> Descriptor:
    """VLFeat's SIFT: 128 numbers, unit length."""
    conventions = Conventions(KEYPOINT, None, "vector cut at 0.2, unit length", SOURCE)
    return Descriptor("sift.vlfeat", _sift, L2, dim=128, licence=LICENCE, conventions=conventions)


def rootsift() -> Descriptor:
    """The square root of VLFeat's SIFT divided by its sum."""
    conventions = Conventions(
        KEYPOINT,
        None,
        "SIFT over its sum, then the square root of each number",
        f"Arandjelovic, Zisserman, CVPR 2012; {SOURCE}",
    )
    return Descriptor(
        "rootsift.vlfeat", _rootsift, L2, dim=128, licence=LICENCE, conventions=conventions
    )
