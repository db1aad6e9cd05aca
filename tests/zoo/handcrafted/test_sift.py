"""SIFT and RootSIFT: OpenCV's conventions, and equality with official descriptor files."""

from pathlib import Path

import cv2
import numpy as np
import pytest
from described_patches import official, read_strips
from described_patches import smooth_patches as patches

from harness import Descriptor
from zoo.handcrafted import sift as handcrafted


@pytest.fixture(params=["sift", "rootsift"])
def descriptor(request: pytest.FixtureRequest) -> Descriptor:
    return getattr(handcrafted, request.param)()


@pytest.mark.parametrize("n", [0, 1, 5])
@pytest.mark.parametrize("side", [16, 32, 64, 65, 100])
def test_every_patch_gets_one_row(descriptor: Descriptor, n: int, side: int) -> None:
    vectors = descriptor.describe(patches(n, side))
    assert vectors.shape == (n, 128) and vectors.dtype == descriptor.distance.dtype


@pytest.mark.parametrize("side", [32, 65])
def test_a_row_does_not_depend_on_its_batch(descriptor: Descriptor, side: int) -> None:
    some = patches(150, side)
    alone = np.concatenate([descriptor.describe(some[i : i + 1]) for i in range(0, 150, 10)])
    assert np.array_equal(descriptor.describe(some)[::10], alone)


def test_a_flat_patch_is_described(descriptor: Descriptor) -> None:
    assert np.isfinite(descriptor.describe(np.full((2, 65, 65), 128, np.uint8))).all()


def test_sift_is_that_of_a_keypoint_at_half_the_side() -> None:
    patch = patches(1)[0]
    keypoint = cv2.KeyPoint(32.5, 32.5, 65 / 5.303)  # angle: OpenCV's default
    assert keypoint.angle == -1
    _, expected = cv2.SIFT_create().compute(patch, [keypoint])
    assert np.array_equal(handcrafted.sift().describe(patch[None]), expected)


def test_sift_reads_the_default_angle_as_minus_one_degree() -> None:
    patch = patches(1)[0]
    _, upright = cv2.SIFT_create().compute(patch, [cv2.KeyPoint(32.5, 32.5, 65 / 5.303, 0)])
    assert not np.array_equal(handcrafted.sift().describe(patch[None]), upright)


def test_sift_hardly_changes_with_the_resolution_of_the_patch() -> None:
    large = np.array([cv2.GaussianBlur(patch, (0, 0), 6) for patch in patches(20, 130)])
    small = np.array([cv2.resize(p, (65, 65), interpolation=cv2.INTER_AREA) for p in large])
    rootsift = handcrafted.rootsift()
    inner = np.einsum("nd,nd->n", rootsift.describe(large), rootsift.describe(small))
    assert inner.min() > 0.95


def test_rootsift_is_the_root_of_normalised_sift() -> None:
    some = patches(9)
    sift = handcrafted.sift().describe(some).astype(np.float64)
    expected = np.sqrt(sift / np.abs(sift).sum(axis=1, keepdims=True))
    assert np.allclose(handcrafted.rootsift().describe(some), expected, atol=1e-7)


def test_rootsift_has_unit_norm() -> None:
    assert np.allclose(np.linalg.norm(handcrafted.rootsift().describe(patches(9)), axis=1), 1)


def test_a_zero_sift_vector_stays_zero() -> None:
    flat = np.full((2, 65, 65), 128, np.uint8)
    assert not handcrafted.sift().describe(flat).any()
    assert not handcrafted.rootsift().describe(flat).any()


@pytest.fixture(scope="module")
def strips(shared: Path) -> list[tuple[str, np.ndarray]]:
    return [*read_strips(shared / "hpatches" / "mini" / "patches")]


@pytest.mark.data
def test_sift_is_the_official_one(shared: Path, strips: list[tuple[str, np.ndarray]]) -> None:
    # 3 of 8,000 rows differ, in one number by 1: OpenCV rounds by the instructions of the CPU.
    sift = handcrafted.sift()
    difference = np.concatenate(
        [sift.describe(found) - official(shared, "sift", strip) for strip, found in strips]
    )
    assert len(difference) == 8000
    assert abs(difference).max() <= 1
    assert np.count_nonzero(difference) <= 80
