"""BEBLID and TEBLID: equality with OpenCV's extractor at another scale factor; whole numbers."""

from collections.abc import Callable

import cv2
import numpy as np
import pytest
from bit_oracle import FRAME, described
from described_patches import smooth_patches as patches

from harness import Descriptor
from zoo.binary.beblid import beblid_256, beblid_512, teblid_256, teblid_512
from zoo.describing import at_centre

CASES = [
    (beblid_256, cv2.xfeatures2d.BEBLID, cv2.xfeatures2d.BEBLID_SIZE_256_BITS),
    (beblid_512, cv2.xfeatures2d.BEBLID, cv2.xfeatures2d.BEBLID_SIZE_512_BITS),
    (teblid_256, cv2.xfeatures2d.TEBLID, cv2.xfeatures2d.TEBLID_SIZE_256_BITS),
    (teblid_512, cv2.xfeatures2d.TEBLID, cv2.xfeatures2d.TEBLID_SIZE_512_BITS),
]
each = pytest.mark.parametrize(("maker", "kind", "bits"), CASES)


@each
def test_it_is_that_of_a_keypoint_whose_window_is_the_patch(
    maker: Callable[[], Descriptor], kind: type[cv2.Feature2D], bits: int
) -> None:
    some = patches(20, 32)
    extractor = kind.create(6.25, bits)  # OpenCV's default factor
    expected = [described(extractor, patch, size=32 / 6.25) for patch in some]
    assert np.array_equal(maker().describe(some), expected)


@each
def test_nothing_outside_the_patch_is_read(
    maker: Callable[[], Descriptor], kind: type[cv2.Feature2D], bits: int
) -> None:
    large = np.random.default_rng(0).integers(0, 256, (20, 132, 132), dtype=np.uint8)
    keypoint = cv2.KeyPoint(66, 66, 32, 0)
    wanted = [kind.create(1.0, bits).compute(patch, [keypoint])[1][0] for patch in large]
    assert np.array_equal(maker().describe(large[:, 50:82, 50:82]), wanted)


def test_without_its_border_opencv_misses_ties() -> None:
    dark = np.random.default_rng(0).integers(0, 4, (200, 32, 32), dtype=np.uint8)
    kind, bits = CASES[0][1:]
    bare, framed = (
        at_centre(kind.create(1.0, bits), dark, side=32, border=border, size=32)
        for border in (0, FRAME)
    )
    assert np.array_equal(beblid_256().describe(dark), framed)
    assert 0 < np.unpackbits(bare ^ framed).mean() < 0.01
