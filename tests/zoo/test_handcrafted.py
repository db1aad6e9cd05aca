"""SIFT, RootSIFT and BRIEF: OpenCV's conventions, and equality with official descriptor files."""

from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
import pytest

from harness import Descriptor
from zoo import handcrafted


def patches(n: int, side: int = 65) -> np.ndarray:
    noise = np.random.default_rng(n).integers(0, 256, (n, side, side), np.uint8)
    found = np.array([cv2.GaussianBlur(patch, (0, 0), 2) for patch in noise], np.uint8)
    found = found.reshape(n, side, side)
    found.flags.writeable = False
    return found


@pytest.fixture(params=["sift", "rootsift", "brief"])
def descriptor(request: pytest.FixtureRequest) -> Descriptor:
    return getattr(handcrafted, request.param)()


@pytest.mark.parametrize("n", [0, 1, 5])
@pytest.mark.parametrize("side", [16, 32, 64, 65, 100])
def test_every_patch_gets_one_row(descriptor: Descriptor, n: int, side: int) -> None:
    vectors = descriptor.describe(patches(n, side))
    width = descriptor.dim // 8 if descriptor.name == "brief" else descriptor.dim
    assert vectors.shape == (n, width) and vectors.dtype == descriptor.distance.dtype


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


def test_brief_is_that_of_the_centre_pixel_of_a_smoothed_patch() -> None:
    patch = patches(1)[0]
    extractor = cv2.xfeatures2d.BriefDescriptorExtractor_create(32)
    smooth = cv2.GaussianBlur(patch, (0, 0), 1)
    _, expected = extractor.compute(smooth, [cv2.KeyPoint(32, 32, 12)])
    assert np.array_equal(handcrafted.brief().describe(patch[None]), expected)


def test_brief_of_a_patch_is_the_same_between_black_and_between_white_patches() -> None:
    patch = patches(1)
    black, white = np.zeros_like(patch), np.full_like(patch, 255)
    brief = handcrafted.brief()
    expected = brief.describe(patch)[0]
    assert np.array_equal(brief.describe(np.concatenate([black, patch, black]))[1], expected)
    assert np.array_equal(brief.describe(np.concatenate([white, patch, white]))[1], expected)


@pytest.fixture(scope="module")
def strips(shared: Path) -> list[tuple[str, np.ndarray]]:
    return [*read_strips(shared / "hpatches" / "mini" / "patches")]


def read_strips(folder: Path) -> Iterator[tuple[str, np.ndarray]]:
    for file in sorted(folder.glob("*/*.png")):
        strip = cv2.imread(str(file), cv2.IMREAD_GRAYSCALE)
        assert strip is not None
        yield f"{file.parent.name}/{file.stem}", strip.reshape(-1, 65, 65)


def official(shared: Path, method: str, strip: str) -> np.ndarray:
    file = shared / "hpatches" / "mini" / "descriptors" / method / f"{strip}.csv"
    return np.loadtxt(file, delimiter=",", dtype=np.float32)


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


@pytest.mark.data
def test_brief_is_the_official_one(shared: Path, strips: list[tuple[str, np.ndarray]]) -> None:
    brief = handcrafted.brief()
    for strip, found in strips:
        bits = np.unpackbits(brief.describe(found), axis=1)
        assert np.array_equal(bits, official(shared, "brief", strip)), strip
