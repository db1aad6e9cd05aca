"""VGG: OpenCV sees the patch, the whole patch and nothing else."""

import cv2
import numpy as np
import pytest
from described_patches import smooth_patches as patches

from zoo.handcrafted import vgg

MAKERS = {120: vgg.vgg_120, 80: vgg.vgg_80, 64: vgg.vgg_64, 48: vgg.vgg_48}


@pytest.mark.parametrize("length", MAKERS)
def test_vgg_has_the_length_of_its_name(length: int) -> None:
    made = MAKERS[length]()
    assert made.dim == length and made.describe(patches(2)).shape == (2, length)


def test_vgg_reads_each_pixel_where_it_is() -> None:
    (patch,) = patches(1, 64)
    alone = vgg.vgg_120().describe(patch[None])
    # The same pixels in a larger image, whose surroundings are those that OpenCV imagines.
    around = cv2.copyMakeBorder(patch, 20, 20, 20, 20, cv2.BORDER_REPLICATE)
    extractor = cv2.xfeatures2d.VGG_create(100, use_scale_orientation=False)
    for shift in (0, 1):
        keypoint = cv2.KeyPoint(51.5 + shift, 51.5, 1)
        _, inside = extractor.compute(around, [keypoint])
        assert np.allclose(inside, alone, atol=1e-4) == (shift == 0)


def test_every_border_pixel_matters() -> None:
    (patch,) = patches(1, 64)
    before = vgg.vgg_120().describe(patch[None])
    for y, x in ((0, 20), (63, 20), (20, 0), (20, 63), (0, 0), (63, 63)):
        changed = patch.copy()
        changed[y, x] ^= 128
        assert not np.array_equal(vgg.vgg_120().describe(changed[None]), before), (y, x)


def test_larger_patches_are_resized_to_64x64() -> None:
    some = patches(3, 128)
    small = np.array([cv2.resize(p, (64, 64), interpolation=cv2.INTER_AREA) for p in some])
    assert np.array_equal(vgg.vgg_48().describe(some), vgg.vgg_48().describe(small))


def test_contrast_does_not_matter() -> None:
    dark = patches(3, 64) // 4
    assert np.allclose(vgg.vgg_80().describe(dark), vgg.vgg_80().describe(2 * dark), atol=1e-4)
