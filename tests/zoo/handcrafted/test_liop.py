"""LIOP: equality with VLFeat."""

from pathlib import Path

import cv2
import numpy as np
import pytest
import vlfeat
from described_patches import smooth_patches as patches

from zoo.handcrafted import liop


def test_liop_is_that_of_vlfeat() -> None:
    expected = np.load(vlfeat.FOLDER / "liop.npy")
    assert np.abs(liop.order_patterns(vlfeat.liop_patches()) - expected).max() < 1e-6


@pytest.mark.data
def test_liop_is_that_of_vl_covdet_on_patches_cut_nearly_as_it_cuts(shared: Path) -> None:
    cut = np.array([*vlfeat.cut_frames(shared, 41, extent=4, smoothing=0.3)])
    found = liop.order_patterns(np.ascontiguousarray(cut.transpose(0, 2, 1)))
    cosine = np.einsum("nd,nd->n", found, vlfeat.of_frames(shared, "liop"))
    assert np.median(cosine) > 0.96 and cosine.min() > 0.75  # not transposed: 0.7, the median


def test_the_patch_is_resized_to_41x41() -> None:
    some = patches(5, 82)
    small = np.array([cv2.resize(p, (41, 41), interpolation=cv2.INTER_AREA) for p in some])
    expected = liop.order_patterns(small.astype(np.float32))
    assert np.array_equal(liop.liop().describe(some), expected)


def test_brightness_and_contrast_do_not_matter() -> None:
    some = (patches(9, 41) // 2).astype(np.float32)
    assert np.array_equal(liop.order_patterns(some), liop.order_patterns(2 * some + 8))


def test_other_monotonic_changes_hardly_matter() -> None:  # they change the range of the circle
    some = (patches(9, 41) // 2).astype(np.float32)
    found = liop.order_patterns(some), liop.order_patterns((some + 1) ** 2)
    assert np.einsum("nd,nd->n", *found).min() > 0.98


def test_a_turn_of_the_patch_does_not_matter() -> None:
    some = vlfeat.liop_patches()[:20]  # no two pixels are equal
    turned = np.ascontiguousarray(np.rot90(some, axes=(1, 2)))
    cosine = np.einsum("nd,nd->n", liop.order_patterns(some), liop.order_patterns(turned))
    assert cosine.min() > 0.999


def test_a_flat_patch_is_zero() -> None:
    for grey in (0, 128, 255):
        assert not liop.liop().describe(np.full((2, 65, 65), grey, np.uint8)).any()
