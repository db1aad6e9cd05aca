"""HashSIFT: signs of learned projections of a SIFT of the patch.

I. Suarez, J. M. Buenaposada, L. Baumela, Revisiting binary local image description for resource
limited devices, RA-L 2021.

The SIFT is not that of keypoints: it sees the whole patch, resized to 32x32, and no angle. Facts
from the authors' code, https://github.com/iago-suarez/efficient-descriptors (PatchSIFT, HashSIFT):

- a Gaussian of sqrt(1.6^2 - 0.5^2) pixels on 8-bit pixels;
- differences of the two neighbours, in the inner 30x30 pixels, y upwards; OpenCV's magnitudes and
  angles;
- a weight of exp(-d^2 / (2 * 16^2)), where d is the distance from pixel (16, 16);
- 4x4 cells of 8 pixels around (16, 16), 8 directions, trilinear;
- unit length, cut at 0.2, unit length again, times 512, rounded and cut at 255.

A bit is 1 if the product of its row of weights with (1, SIFT) is above 0; the first bit is the
highest of its byte. Here the product is exact, since weights and SIFT are whole numbers; the
authors' is a float32 sum. So a bit differs where the authors' sum rounds to another side of 0.
Their program also cuts the patch out of an image by cubic interpolation. It was not run for
comparison.

`hashsift.256.npy` and `hashsift.512.npy` hold the published weights times 10^8, which are whole
numbers of int32; nothing else was changed. The authors publish them in HashSiftWeights256.h and
HashSiftWeights512.h of efficient-descriptors@0aa561b, whose sources say "All rights reserved".
Fixstars Corporation publishes them under Apache-2.0 in
https://github.com/fixstars/cuda-efficient-features (hash_sift.p256.h, hash_sift.p512.h): this is
the licence that the descriptor names.

sha256 of the weights as float64, row by row:

    256  6eaa075566775846947c98624a93b5acc0277d5881a69f060d39861974a816b0
    512  1b26973ecac736497b85bd347f6e0bd827ee3c6b13496f29501d1155babf7f40

The paper's other descriptor, TEBLID, was trained on PhotoTour's Liberty. For HashSIFT the sources
that were read do not say it, so none of PhotoTour's scenes is counted as unseen.
"""

import hashlib
from functools import partial
from pathlib import Path

import cv2
import numpy as np
from jaxtyping import Float64, Int, UInt8

from harness.distances import HAMMING
from harness.types import Conventions, Descriptor, Patches
from zoo.describing import LIBRARIES, in_threads, resized

SIDE = 32  # of the patch
SIGMA = np.sqrt(1.6**2 - 0.5**2)  # of the Gaussian, in pixels
CELLS, CELL = 4, 8  # in a row, and pixels of one
DIRECTIONS = 8
SPREAD = 16.0  # standard deviation of the weight around the centre, in pixels
CUT = 0.2  # of numbers of a vector of unit length
SCALE = 512  # of a unit length in whole numbers


def _pooling() -> Float64[np.ndarray, "16 900"]:
    """Weight of each inner pixel in each cell."""
    offset = np.arange(1, SIDE - 1) - SIDE / 2  # of inner pixels from the centre
    cell = (np.arange(CELLS) - (CELLS - 1) / 2) * CELL  # of the cells' centres
    near = np.maximum(0, 1 - np.abs(offset - cell[:, None]) / CELL)  # (4, 30)
    near *= np.exp(-(offset**2) / (2 * SPREAD**2))
    return np.einsum("ri,cj->rcij", near, near).reshape(CELLS * CELLS, -1)


POOLING = _pooling()


def _sift(patch: UInt8[np.ndarray, "height width"]) -> Float64[np.ndarray, "128"]:
    """SIFT of the whole patch, in whole numbers of 0 to 255; zeros if it is flat."""
    x = cv2.GaussianBlur(resized(patch, SIDE), (0, 0), SIGMA).astype(np.float32)
    right = x[1:-1, 2:] - x[1:-1, :-2]  # (30, 30)
    up = x[:-2, 1:-1] - x[2:, 1:-1]
    magnitude, angle = (a.ravel().astype(np.float64) for a in cv2.cartToPolar(right, up))
    direction = angle * DIRECTIONS / (2 * np.pi)
    below = np.floor(direction)
    share = direction - below
    pixel, bin_ = np.arange(len(angle)), below.astype(int)
    gradients = np.zeros((len(angle), DIRECTIONS))  # (900, 8)
    gradients[pixel, bin_ % DIRECTIONS] = magnitude * (1 - share)
    gradients[pixel, (bin_ + 1) % DIRECTIONS] = magnitude * share
    vector = _unit((POOLING @ gradients).ravel())
    return np.minimum(np.rint(SCALE * _unit(np.minimum(vector, CUT))), 255)


def _unit(vector: Float64[np.ndarray, "128"]) -> Float64[np.ndarray, "128"]:
    return vector / max(np.linalg.norm(vector), np.finfo(np.float32).eps)


def _part(
    weights: Int[np.ndarray, "bits 129"], patches: Patches
) -> UInt8[np.ndarray, "n bits_over_8"]:
    # float64 holds the products and their sums exactly: they are whole and below 2^53.
    constant, others = weights[:, 0].astype(np.float64), weights[:, 1:].astype(np.float64)
    return np.packbits([others @ _sift(patch) + constant > 0 for patch in patches], axis=1)


def _made(bits: int) -> Descriptor:
    file = Path(__file__).with_name(f"hashsift.{bits}.npy")
    part = partial(_part, np.load(file))
    return Descriptor(
        f"hashsift.{bits}",
        lambda patches: in_threads(part, patches, bits // 8, np.uint8),
        HAMMING,
        dim=bits,
        trained_on=frozenset(f"phototour/{s}" for s in ("liberty", "notredame", "yosemite")),
        licence="Apache-2.0",
        weights=hashlib.sha256(file.read_bytes()).hexdigest(),
        libraries=LIBRARIES,
        conventions=Conventions(
            keypoint="the whole patch, upright",
            side=SIDE,
            normalisation="SIFT cut at 0.2, unit length, times 512, rounded",
            source="Suarez et al., RA-L 2021; iago-suarez/efficient-descriptors@0aa561b",
        ),
    )


def hashsift_256() -> Descriptor:
    """HashSIFT of 256 bits."""
    return _made(256)


def hashsift_512() -> Descriptor:
    """HashSIFT of 512 bits."""
    return _made(512)
