"""BRIEF: OpenCV's conventions, and equality with official descriptor files."""

from pathlib import Path

import cv2
import numpy as np
import pytest
from described_patches import official, read_strips
from described_patches import smooth_patches as patches

from zoo.binary.brief import brief


@pytest.mark.parametrize("n", [0, 1, 5])
@pytest.mark.parametrize("side", [16, 32, 64, 65, 100])
def test_every_patch_gets_one_row(n: int, side: int) -> None:
    vectors = brief().describe(patches(n, side))
    assert vectors.shape == (n, 32) and vectors.dtype == np.uint8


@pytest.mark.parametrize("side", [32, 65])
def test_a_row_does_not_depend_on_its_batch(side: int) -> None:
    some = patches(150, side)
    alone = np.concatenate([brief().describe(some[i : i + 1]) for i in range(0, 150, 10)])
    assert np.array_equal(brief().describe(some)[::10], alone)


def test_a_flat_patch_is_described() -> None:
    assert brief().describe(np.full((2, 65, 65), 128, np.uint8)).shape == (2, 32)


def test_brief_is_that_of_the_centre_pixel_of_a_smoothed_patch() -> None:
    patch = patches(1)[0]
    extractor = cv2.xfeatures2d.BriefDescriptorExtractor_create(32)
    smooth = cv2.GaussianBlur(patch, (0, 0), 1)
    _, expected = extractor.compute(smooth, [cv2.KeyPoint(32, 32, 12)])
    assert np.array_equal(brief().describe(patch[None]), expected)


def test_brief_of_a_patch_is_the_same_between_black_and_between_white_patches() -> None:
    patch = patches(1)
    black, white = np.zeros_like(patch), np.full_like(patch, 255)
    descriptor = brief()
    expected = descriptor.describe(patch)[0]
    assert np.array_equal(descriptor.describe(np.concatenate([black, patch, black]))[1], expected)
    assert np.array_equal(descriptor.describe(np.concatenate([white, patch, white]))[1], expected)


@pytest.fixture(scope="module")
def strips(shared: Path) -> list[tuple[str, np.ndarray]]:
    return [*read_strips(shared / "hpatches" / "mini" / "patches")]


@pytest.mark.data
def test_brief_is_the_official_one(shared: Path, strips: list[tuple[str, np.ndarray]]) -> None:
    descriptor = brief()
    for strip, found in strips:
        bits = np.unpackbits(descriptor.describe(found), axis=1)
        assert np.array_equal(bits, official(shared, "brief", strip)), strip
