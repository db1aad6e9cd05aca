"""DAISY: OpenCV's keypoint, and what it sees of a patch."""

import cv2
import numpy as np
from described_patches import smooth_patches as patches

from zoo.handcrafted import daisy


def test_daisy_is_that_of_a_keypoint_in_the_middle_of_35_pixels() -> None:
    patch = patches(1, 70)[0]
    small = cv2.resize(patch, (35, 35), interpolation=cv2.INTER_AREA)
    extractor = cv2.xfeatures2d.DAISY_create(
        15, 3, 8, 8, cv2.xfeatures2d.DAISY_NRM_PARTIAL, None, True, False
    )
    _, expected = extractor.compute(small, [cv2.KeyPoint(17, 17, 1)])
    assert np.array_equal(daisy.daisy().describe(patch[None]), expected)


def test_each_histogram_has_unit_length() -> None:
    histograms = daisy.daisy().describe(patches(9)).reshape(9, 25, 8)
    assert np.allclose(np.linalg.norm(histograms, axis=2), 1, atol=1e-5)


def test_a_spot_is_seen_by_the_histogram_at_its_place() -> None:
    centre, radius = 17, 15
    for number, (ring, angle) in {0: (0, 0), 17: (3, 0), 19: (3, 90), 21: (3, 180)}.items():
        at = centre + radius * ring / 3 * np.array(
            [np.sin(np.radians(angle)), np.cos(np.radians(angle))]
        )
        y, x = np.clip(np.round(at).astype(int), 1, 33)
        patch = np.full((35, 35), 100, np.uint8)
        patch[y - 1 : y + 2, x - 1 : x + 2] = 200
        raw = cv2.xfeatures2d.DAISY_create(15, norm=cv2.xfeatures2d.DAISY_NRM_NONE)
        _, row = raw.compute(patch, [cv2.KeyPoint(centre, centre, 1)])
        outer = row.reshape(25, 8).sum(axis=1)[[0, *range(17, 25)]]
        assert [0, *range(17, 25)][int(outer.argmax())] == number


def test_every_border_pixel_of_the_small_patch_matters() -> None:
    (patch,) = patches(1, 35)
    before = daisy.daisy().describe(patch[None])
    border = [(0, i) for i in range(0, 35, 2)] + [(34, i) for i in range(0, 35, 2)]
    for y, x in border + [(x, y) for y, x in border]:
        changed = patch.copy()
        changed[y, x] ^= 128
        assert not np.array_equal(daisy.daisy().describe(changed[None]), before), (y, x)
