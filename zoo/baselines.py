"""Descriptors that know nothing of patches; every other descriptor must beat them.

`constant` and `random` score what chance scores, so a protocol that gives them more is wrong.
`pixels` is the plain comparison of grey values.
"""

import zlib

import numpy as np
from jaxtyping import Float, Float32

from harness.distances import L2
from harness.types import Conventions, Descriptor, Patches

SIDE = 16  # of the patch that `pixels` keeps: 256 numbers
WHOLE = "the whole patch"
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
