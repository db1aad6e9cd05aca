"""ORB: equality with OpenCV's default extractor on a larger image."""

import cv2
import numpy as np
from bit_oracle import described
from described_patches import smooth_patches as patches

from zoo.binary.orb import orb


def test_orb_is_that_of_the_centre_pixel_of_a_framed_patch() -> None:
    some = patches(40, 31)
    expected = [described(cv2.ORB.create(), patch, size=31) for patch in some]
    assert np.array_equal(orb().describe(some), expected)


def test_the_angle_of_a_keypoint_would_turn_the_tests() -> None:
    patch = np.pad(patches(1, 31)[0], 40, mode="edge")
    upright, default = (
        cv2.ORB.create().compute(patch, [cv2.KeyPoint(55, 55, 31, angle)])[1] for angle in (0, 90)
    )
    assert not np.array_equal(upright, default)


def test_orb_reads_one_pixel_over_the_border() -> None:
    large = np.random.default_rng(0).integers(0, 256, (20, 131, 131), dtype=np.uint8)
    for reach, equal in ((15, False), (16, True)):
        inner = [patch[65 - reach : 66 + reach, 65 - reach : 66 + reach] for patch in large]
        extractor = cv2.ORB.create()
        found = [described(extractor, patch, size=31) for patch in inner]
        keypoint = cv2.KeyPoint(65, 65, 31, 0)
        wanted = [extractor.compute(patch, [keypoint])[1][0] for patch in large]
        assert np.array_equal(found, wanted) == equal
