"""HashSIFT: OpenCV's SIFT as an oracle, a slow twin, and the published numbers."""

import math
from fractions import Fraction
from pathlib import Path

import cv2
import numpy as np
import pytest
from described_patches import smooth_patches as patches

from harness import Descriptor
from zoo.binary import hashsift
from zoo.binary.hashsift import hashsift_256, hashsift_512


def weights(bits: int) -> np.ndarray:
    return np.load(Path(hashsift.__file__).with_name(f"hashsift.{bits}.npy"))


def slow_sift(patch: np.ndarray) -> list[int]:
    """The SIFT of the paper's code, pixel by pixel."""
    smooth = cv2.GaussianBlur(patch, (0, 0), math.sqrt(1.6**2 - 0.5**2)).astype(int)
    histogram = [[[0.0] * 8 for _ in range(6)] for _ in range(6)]  # a cell more on each side
    for i in range(1, 31):
        for j in range(1, 31):
            dx = smooth[i, j + 1] - smooth[i, j - 1]
            dy = smooth[i - 1, j] - smooth[i + 1, j]
            distance = math.hypot(i - 16, j - 16)
            size = math.hypot(dx, dy) * math.exp(-(distance**2) / (2 * 16**2))
            place = (i - 16) / 8 + 2.5, (j - 16) / 8 + 2.5
            turn = math.atan2(dy, dx) % (2 * math.pi) * 8 / (2 * math.pi)
            row, column, direction = math.floor(place[0]), math.floor(place[1]), math.floor(turn)
            for r in (0, 1):
                for c in (0, 1):
                    for o in (0, 1):
                        share = (
                            abs(1 - r - (place[0] - row))
                            * abs(1 - c - (place[1] - column))
                            * abs(1 - o - (turn - direction))
                        )
                        histogram[row + r][column + c][(direction + o) % 8] += size * share
    vector = [number for row in histogram[1:5] for cell in row[1:5] for number in cell]
    for most in (0.2, math.inf):
        length = math.sqrt(sum(number**2 for number in vector)) or 1.0
        vector = [min(number / length, most) for number in vector]
    return [min(round(512 * number), 255) for number in vector]


def test_its_sift_is_that_of_a_slow_twin() -> None:
    for patch in patches(4, 32):
        off = np.abs(hashsift._sift(patch) - slow_sift(patch))
        assert off.max() <= 1 and off.mean() < 0.05  # OpenCV's angles are off by up to 0.3 degrees


def test_its_sift_is_that_of_opencv_for_a_keypoint_whose_cells_have_8_pixels() -> None:
    some = np.random.default_rng(0).integers(0, 256, (30, 32, 32), dtype=np.uint8)
    keypoint = cv2.KeyPoint(16, 16, 32 / 6, 0)  # OpenCV does not round smoothed pixels
    theirs = np.array([cv2.SIFT.create().compute(patch, [keypoint])[1][0] for patch in some])
    off = np.abs(np.array([hashsift._sift(patch) for patch in some]) - theirs)
    assert off.max() <= 4 and off.mean() < 0.5
    assert theirs.mean() > 20


@pytest.mark.parametrize("maker", [hashsift_256, hashsift_512])
def test_a_bit_is_the_sign_of_a_projection(maker) -> None:
    descriptor: Descriptor = maker()
    some = patches(3, 32)
    found = np.unpackbits(descriptor.describe(some), axis=1)
    for patch, bits in zip(some, found, strict=True):
        sift = [1, *map(int, hashsift._sift(patch))]
        for row, bit in zip(weights(descriptor.dim).tolist(), bits, strict=True):
            product = sum(Fraction(w, 10**8) * number for w, number in zip(row, sift, strict=True))
            assert bit == (product > 0)


def test_the_bits_of_a_flat_patch_are_the_signs_of_the_constants() -> None:
    flat = hashsift_256().describe(np.full((1, 65, 65), 77, np.uint8))
    assert np.array_equal(np.unpackbits(flat), weights(256)[:, 0] > 0)


def test_products_are_exact_in_float64() -> None:
    for bits in (256, 512):
        largest = np.abs(weights(bits).astype(np.int64)) @ np.array([1, *[255] * 128])
        assert largest.max() < 2**53


@pytest.mark.data
@pytest.mark.parametrize("bits", [256, 512])
def test_the_weights_are_the_published_ones(shared: Path, bits: int) -> None:
    with np.load(shared / "checkpoints/hashsift/hashsift.npz") as published:
        assert np.array_equal(weights(bits) / 1e8, published[f"projection_{bits}"])
