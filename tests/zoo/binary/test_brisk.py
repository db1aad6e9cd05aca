"""BRISK: OpenCV's default extractor gives the same row where it measures the angle 0."""

import cv2
import numpy as np
from bit_oracle import FRAME, described
from described_patches import smooth_patches as patches

from zoo.binary.brisk import NEVER, POINTS, RADII, SHORT, SIZE, brisk

STEP = 360 / 1024  # of angles that BRISK tells apart


def _default(patch: np.ndarray) -> tuple[float, np.ndarray]:
    """The angle that OpenCV's default extractor measures, in degrees, and its row."""
    middle = FRAME + len(patch) // 2
    extractor = cv2.xfeatures2d.BRISK.create()
    image = np.pad(patch, FRAME, mode="edge")
    (keypoint,), rows = extractor.compute(image, [cv2.KeyPoint(middle, middle, SIZE)])
    return (keypoint.angle + 180) % 360 - 180, rows[0]


def test_brisk_is_that_of_opencv_where_it_measures_no_angle() -> None:
    some = patches(12, 39)
    mirrored = np.maximum(some, some[:, ::-1])  # alike above and below: angle 0 or 180
    angles, rows = zip(*map(_default, mirrored), strict=True)
    upright = np.abs(angles) < STEP / 2
    assert upright.sum() >= 3
    assert np.array_equal(brisk().describe(mirrored[upright]), np.array(rows)[upright])


def test_opencv_turns_the_pattern_of_other_patches() -> None:
    some = patches(5, 39)
    angles, rows = zip(*map(_default, some), strict=True)
    turned = np.abs(angles) > 10 * STEP
    assert turned.any()
    same = (brisk().describe(some) == np.array(rows)).all(axis=1)
    assert not same[turned].any()


def test_brisk_is_that_of_the_centre_pixel_of_a_framed_patch() -> None:
    some = patches(10, 39)
    extractor = cv2.xfeatures2d.BRISK.create(RADII, POINTS, SHORT, NEVER)
    assert np.array_equal(brisk().describe(some), [described(extractor, p, SIZE) for p in some])


def test_brisk_reads_nothing_outside_its_patch() -> None:
    large = np.random.default_rng(0).integers(0, 256, (20, 101, 101), dtype=np.uint8)
    extractor = cv2.xfeatures2d.BRISK.create(RADII, POINTS, SHORT, NEVER)
    wanted = [extractor.compute(patch, [cv2.KeyPoint(50, 50, SIZE)])[1][0] for patch in large]
    assert np.array_equal(brisk().describe(large[:, 31:70, 31:70]), wanted)
