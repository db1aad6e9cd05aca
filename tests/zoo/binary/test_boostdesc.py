"""BGM, L-BGM and BinBoost: equality with OpenCV's extractor that warps by the keypoint."""

import cv2
import numpy as np
import pytest
from bit_oracle import described
from described_patches import smooth_patches as patches

from harness.distances import L2
from zoo.binary import boostdesc

VARIANTS = {
    "bgm": 100, "bgm_hard": 101, "bgm_bilinear": 102, "lbgm": 200,
    "binboost_64": 300, "binboost_128": 301, "binboost_256": 302,
}  # fmt: skip


@pytest.mark.parametrize("name", VARIANTS)
def test_it_is_that_of_a_keypoint_as_large_as_the_patch(name: str) -> None:
    some = patches(10, 32)
    descriptor = getattr(boostdesc, name)()
    extractor = cv2.xfeatures2d.BoostDesc.create(VARIANTS[name], True, 0.5)
    expected = np.array([described(extractor, patch, size=64) for patch in some])
    found = descriptor.describe(some)
    assert found.dtype == expected.dtype and np.array_equal(found, expected)


@pytest.mark.parametrize("name", VARIANTS)
def test_it_has_the_size_and_the_distance_of_opencv(name: str) -> None:
    descriptor = getattr(boostdesc, name)()
    extractor = cv2.xfeatures2d.BoostDesc.create(VARIANTS[name])
    assert descriptor.width == extractor.descriptorSize()
    assert (descriptor.distance is L2) == (extractor.defaultNorm() == cv2.NORM_L2)


def test_the_scale_factor_counts_even_without_scale_and_orientation() -> None:
    patch = patches(1, 32)[0]
    rows = [
        described(cv2.xfeatures2d.BoostDesc.create(VARIANTS["bgm"], False, factor), patch, size=32)
        for factor in (1.0, 6.25)
    ]
    assert np.array_equal(boostdesc.bgm().describe(patch[None])[0], rows[0])
    assert not np.array_equal(*rows)
