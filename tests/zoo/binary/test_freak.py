"""FREAK: equality with OpenCV's extractor on a larger image, and no turning."""

import cv2
import numpy as np
from bit_oracle import described
from described_patches import smooth_patches as patches

from zoo.binary.freak import SIZE, freak


def test_freak_is_that_of_the_centre_pixel_of_a_framed_patch() -> None:
    some = patches(10, 45)
    extractor = cv2.xfeatures2d.FREAK.create(False, True, 22.0, 4)
    assert np.array_equal(freak().describe(some), [described(extractor, p, SIZE) for p in some])


def test_freak_reads_nothing_outside_its_patch() -> None:
    large = np.random.default_rng(0).integers(0, 256, (20, 101, 101), dtype=np.uint8)
    extractor = cv2.xfeatures2d.FREAK.create(orientationNormalized=False)
    wanted = [extractor.compute(patch, [cv2.KeyPoint(50, 50, SIZE)])[1][0] for patch in large]
    assert np.array_equal(freak().describe(large[:, 28:73, 28:73]), wanted)


def test_a_smaller_keypoint_gives_the_same_row() -> None:
    patch = patches(1, 45)[0]
    extractor = cv2.xfeatures2d.FREAK.create(orientationNormalized=False)
    assert np.array_equal(described(extractor, patch, SIZE), described(extractor, patch, SIZE / 2))


def test_freak_would_turn_its_pattern() -> None:
    patch = patches(1, 45)
    turning = cv2.xfeatures2d.FREAK.create()
    assert not np.array_equal(freak().describe(patch)[0], described(turning, patch[0], SIZE))
