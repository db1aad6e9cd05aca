"""What all descriptors by OpenCV's extractors have in common: threads, resizing, the region."""

from collections.abc import Callable, Iterator

import cv2
import numpy as np
import pytest
from bit_oracle import changed, resized
from described_patches import smooth_patches as patches

from harness import Descriptor
from zoo.binary.akaze import akaze
from zoo.binary.beblid import beblid_256, beblid_512, teblid_256, teblid_512
from zoo.binary.boostdesc import (
    bgm,
    bgm_bilinear,
    bgm_hard,
    binboost_64,
    binboost_128,
    binboost_256,
    lbgm,
)
from zoo.binary.brisk import brisk
from zoo.binary.freak import freak
from zoo.binary.hashsift import hashsift_256, hashsift_512
from zoo.binary.latch import latch
from zoo.binary.orb import orb

MAKERS = (
    orb, brisk, freak, latch, akaze, bgm, bgm_hard, bgm_bilinear, lbgm, binboost_64, binboost_128,
    binboost_256, beblid_256, beblid_512, teblid_256, teblid_512, hashsift_256, hashsift_512,
)  # fmt: skip


@pytest.fixture(params=MAKERS, ids=lambda maker: maker.__name__)
def descriptor(request: pytest.FixtureRequest) -> Descriptor:
    maker: Callable[[], Descriptor] = request.param
    return maker()


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    before = cv2.getNumThreads()
    yield cv2.setNumThreads
    cv2.setNumThreads(before)


@pytest.mark.parametrize("side", [16, 100])
def test_patches_of_unusual_sizes_get_one_row_each(descriptor: Descriptor, side: int) -> None:
    vectors = descriptor.describe(patches(5, side))
    assert vectors.shape == (5, descriptor.width)


def test_rows_do_not_depend_on_the_number_of_threads(
    descriptor: Descriptor, threads: Callable[[int], None]
) -> None:
    some = patches(150)
    threads(1)
    alone = np.concatenate([descriptor.describe(some[i : i + 50]) for i in (0, 50, 100)])
    threads(4)
    assert np.array_equal(descriptor.describe(some), alone)


def test_a_patch_is_resized_before_anything_else(descriptor: Descriptor) -> None:
    assert descriptor.conventions is not None and descriptor.conventions.side is not None
    side = descriptor.conventions.side
    for large in (65, 20):
        some = patches(6, large)
        small = np.array([resized(patch, side) for patch in some])
        assert np.array_equal(descriptor.describe(some), descriptor.describe(small))


def test_a_patch_is_read_up_to_its_outermost_pixels(descriptor: Descriptor) -> None:
    assert descriptor.conventions is not None and descriptor.conventions.side is not None
    side = descriptor.conventions.side
    noise = np.random.default_rng(0).integers(0, 256, (30, side, side), dtype=np.uint8)
    outermost = np.ones((side, side), bool)
    outermost[1:-1, 1:-1] = False
    assert changed(descriptor.describe, noise, outermost) > 0
