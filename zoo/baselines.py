"""Descriptors that know nothing of patches; every other descriptor must beat them.

`constant` and `random` score what chance scores, so a protocol that gives them more is wrong.
`pixels` is the plain comparison of grey values. `meanstd` and `resize` are MStd and Resz of V.
Balntas, K. Lenc, A. Vedaldi, K. Mikolajczyk, HPatches: a benchmark and evaluation of handcrafted
and learned local descriptors, CVPR 2017, as the benchmark's MATLAB code computes them. `resize` has
the paper's 6x6 numbers; the code's default is 4x4.
"""

import zlib

import numpy as np
from jaxtyping import Float, Float32

from harness.distances import L2
from harness.types import Conventions, Descriptor, Patches

SIDE = 16  # of the patch that `pixels` keeps: 256 numbers
RESIZED = 6  # side of the patch of `resize`: 36 numbers
CUBIC = -0.5  # slope of the bicubic kernel at 1, as in MATLAB's imresize
WHOLE = "the whole patch"
HPATCHES = "Balntas et al., CVPR 2017; hpatches/hpatches-benchmark@f04f3b1"
DIM = 128  # of `random`, as long as the usual descriptor

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # SplitMix64: Steele, Lea, Flood, OOPSLA 2014
MIXERS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))


def _constant(patches: Patches) -> Float32[np.ndarray, "n 1"]:
    return np.ones((len(patches), 1), np.float32)


def _pixels(patches: Patches) -> Float32[np.ndarray, "n 256"]:
    covered = _overlap(patches.shape[1])
    # Sums of whole numbers, exact in these types: a flat patch is exactly zero once centred, and
    # no row depends on how the product is blocked.
    rows = patches.astype(np.float32) @ covered.astype(np.float32).T  # (n, height, 16)
    cells = (covered.astype(np.float64) @ rows).reshape(len(patches), SIDE * SIDE)
    cells = SIDE * SIDE * cells - cells.sum(axis=1, keepdims=True)
    norm = np.sqrt(np.einsum("nd,nd->n", cells, cells))[:, None]
    return (cells / np.where(norm == 0, 1, norm)).astype(np.float32)  # a flat patch stays zero


def _overlap(side: int) -> Float[np.ndarray, "16 side"]:
    """How much of each pixel lies in each of 16 cells, in sixteenths of a pixel."""
    cell = np.arange(SIDE)[:, None] * side
    pixel = np.arange(side)[None, :] * SIDE
    shared = np.minimum(cell + side, pixel + SIDE) - np.maximum(cell, pixel)
    return np.maximum(shared, 0).astype(np.float64)


def _random(patches: Patches) -> Float32[np.ndarray, "n 128"]:
    seed = np.array([zlib.crc32(patch.tobytes()) for patch in patches], np.uint64)
    bits = seed[:, None] + GOLDEN * np.arange(1, DIM // 2 + 1, dtype=np.uint64)
    for shift, factor in MIXERS:
        bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
    bits ^= bits >> np.uint64(31)
    # Box-Muller: 64 draws of 64 bits make 128 independent normal numbers.
    uniform = ((bits >> np.uint64(40)) + np.uint64(1)).astype(np.float32) * np.float32(2**-24)
    angle = (bits & np.uint64(0xFFFFFF)).astype(np.float32) * np.float32(2 * np.pi / 2**24)
    radius = np.sqrt(-2 * np.log(uniform))
    normal = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    return normal / np.linalg.norm(normal, axis=1, keepdims=True)


def _meanstd(patches: Patches) -> Float32[np.ndarray, "n 2"]:
    moments = patches.mean(axis=(1, 2)), patches.std(axis=(1, 2), ddof=1)
    return np.stack(moments, axis=1).astype(np.float32)


def _resize(patches: Patches) -> Float32[np.ndarray, "n 36"]:
    # The benchmark also divides by the deviation; unit length makes that superfluous.
    sampled = _bicubic(patches.shape[1])
    centred = patches - patches.mean(axis=(1, 2), keepdims=True)
    cells = (sampled @ centred @ sampled.T).reshape(len(patches), RESIZED * RESIZED)
    norm = np.sqrt(np.einsum("nd,nd->n", cells, cells))[:, None]
    return (cells / np.where(norm == 0, 1, norm)).astype(np.float32)


def _bicubic(side: int) -> Float[np.ndarray, "6 side"]:
    """Weights of the pixels of a row in each of 6: bicubic, without antialiasing, mirrored."""
    at = (np.arange(RESIZED) + 0.5) * side / RESIZED - 0.5
    pixel = np.floor(at)[:, None].astype(np.intp) + np.arange(-1, 3)
    far = np.abs(at[:, None] - pixel)
    near = (CUBIC + 2) * far**3 - (CUBIC + 3) * far**2 + 1
    tail = CUBIC * (far**3 - 5 * far**2 + 8 * far - 4)
    weights = np.zeros((RESIZED, side))
    forth = pixel % (2 * side)
    mirrored = np.minimum(forth, 2 * side - 1 - forth)
    np.add.at(weights, (np.arange(RESIZED)[:, None], mirrored), np.where(far < 1, near, tail))
    return weights


def constant() -> Descriptor:
    """The same vector for every patch."""
    conventions = Conventions(WHOLE, None, "none", "this project")
    return Descriptor(
        "constant", _constant, L2, dim=1, licence="Apache-2.0", conventions=conventions
    )


def pixels() -> Descriptor:
    """Grey values averaged over 16x16 equal cells, with zero mean and unit norm."""
    conventions = Conventions(WHOLE, SIDE, "the vector to mean 0 and unit length", "this project")
    return Descriptor(
        "pixels", _pixels, L2, dim=SIDE * SIDE, licence="Apache-2.0", conventions=conventions
    )


def random() -> Descriptor:
    """A random direction, drawn from the bytes of the patch: equal patches get equal vectors."""
    conventions = Conventions(WHOLE, None, "the vector to unit length", "this project")
    return Descriptor("random", _random, L2, dim=DIM, licence="Apache-2.0", conventions=conventions)


def meanstd() -> Descriptor:
    """Mean and (n - 1) standard deviation of the grey values."""
    conventions = Conventions(WHOLE, None, "none", HPATCHES)
    return Descriptor("meanstd", _meanstd, L2, dim=2, licence="Apache-2.0", conventions=conventions)


def resize() -> Descriptor:
    """The patch at 6x6, bicubic without antialiasing, of mean 0 before and unit norm after."""
    conventions = Conventions(
        WHOLE, RESIZED, "the patch to mean 0, the vector to unit length", HPATCHES
    )
    return Descriptor(
        "resize", _resize, L2, dim=RESIZED**2, licence="Apache-2.0", conventions=conventions
    )
