"""LATCH: equality with OpenCV's default extractor at angle 0."""

import cv2
import numpy as np
from bit_oracle import described
from described_patches import smooth_patches as patches

from zoo.binary.latch import SIZE, latch


def test_latch_is_that_of_the_centre_pixel_of_a_framed_patch() -> None:
    some = patches(10, 55)
    default = cv2.xfeatures2d.LATCH.create()  # it turns the arrangement by the angle 0
    assert np.array_equal(latch().describe(some), [described(default, p, SIZE) for p in some])


def test_latch_reads_one_pixel_outside_its_patch() -> None:
    large = np.random.default_rng(0).integers(0, 256, (20, 101, 101), dtype=np.uint8)
    default = cv2.xfeatures2d.LATCH.create()
    wanted = [default.compute(patch, [cv2.KeyPoint(50, 50, SIZE, 0)])[1][0] for patch in large]
    for reach, equal in ((27, False), (28, True)):
        inner = large[:, 50 - reach : 51 + reach, 50 - reach : 51 + reach]
        found = [described(default, patch, SIZE) for patch in inner]
        assert np.array_equal(found, wanted) == equal
