"""AKAZE's M-LDB: equality with OpenCV's extractors that compute all levels."""

import cv2
import numpy as np
from bit_oracle import described
from described_patches import smooth_patches as patches

from zoo.binary.akaze import SIZE, akaze

FIRST = {"octave": 0, "class_id": 0}  # the level of the keypoint


def test_akaze_is_the_upright_descriptor_of_opencv_in_the_order_of_its_comparisons() -> None:
    some = patches(10, 41)
    extractor = cv2.xfeatures2d.AKAZE.create(cv2.xfeatures2d.AKAZE_DESCRIPTOR_MLDB_UPRIGHT)
    rows = np.array([described(extractor, patch, SIZE, **FIRST) for patch in some])
    bits = (rows[:, :, None] >> np.arange(8) & 1).reshape(len(rows), -1)
    assert not bits[:, 486:].any()
    found = np.unpackbits(akaze().describe(some), axis=1, count=486)
    assert np.array_equal(found, bits[:, :486])


def test_akaze_has_the_bits_of_the_default_descriptor_at_angle_0_in_another_order() -> None:
    some = patches(400, 41)
    default = cv2.xfeatures2d.AKAZE.create()
    rows = np.array([described(default, patch, SIZE, **FIRST) for patch in some])
    theirs = np.unpackbits(rows, axis=1, bitorder="little", count=486)
    ours = np.unpackbits(akaze().describe(some), axis=1, count=486)
    columns = [sorted(column.tobytes() for column in bits.T) for bits in (ours, theirs)]
    assert columns[0] == columns[1]


def test_the_size_of_the_keypoint_is_that_of_the_detector_on_the_first_level() -> None:
    image = np.pad(patches(1, 200)[0], 50, mode="reflect")
    found = cv2.xfeatures2d.AKAZE.create().detect(image)
    sizes = {k.size / 2 ** (k.class_id / 4) for k in found if k.octave == 0}  # 4 levels an octave
    assert sizes and np.allclose([*sizes], SIZE)
