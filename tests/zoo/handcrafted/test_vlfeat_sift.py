"""SIFT by VLFeat's conventions: equality with VLFeat."""

from pathlib import Path

import golden_values
import numpy as np
import pytest
import vlfeat
from described_patches import smooth_patches as patches

from zoo.handcrafted import sift as opencv
from zoo.handcrafted import vlfeat_sift


def test_sift_is_that_of_vlfeat() -> None:
    expected = np.load(vlfeat.FOLDER / "sift.npy")
    found = vlfeat_sift.sift().describe(golden_values.patches())
    assert np.abs(found - expected).max() < 5e-6


@pytest.mark.data
def test_sift_is_that_of_vl_covdet_on_patches_cut_nearly_as_it_cuts(shared: Path) -> None:
    cut = np.array([*vlfeat.cut_frames(shared, 31, extent=7.5, smoothing=0.5)])
    found = vlfeat_sift.normalised(vlfeat_sift.histograms(cut), 0.2)
    cosine = np.einsum("nd,nd->n", found, vlfeat.of_frames(shared, "sift"))
    assert np.median(cosine) > 0.99 and cosine.min() > 0.9  # transposed patches: 0.4


def test_directions_are_counted_the_other_way_round_than_opencvs() -> None:
    some = patches(20)
    found, other = vlfeat_sift.rootsift().describe(some), opencv.rootsift().describe(some)
    other = other.reshape(20, 16, 8)[:, :, -np.arange(8)].reshape(20, 128)
    assert np.array_equal((found @ other.T).argmax(axis=1), np.arange(20))


def test_sift_has_unit_norm_and_a_flat_patch_is_zero() -> None:
    assert np.allclose(np.linalg.norm(vlfeat_sift.sift().describe(patches(9)), axis=1), 1)
    assert not vlfeat_sift.sift().describe(np.full((2, 65, 65), 128, np.uint8)).any()
    assert not vlfeat_sift.rootsift().describe(np.full((2, 65, 65), 128, np.uint8)).any()


def test_rootsift_is_the_root_of_normalised_sift() -> None:
    sift = vlfeat_sift.sift().describe(patches(9)).astype(np.float64)
    expected = np.sqrt(sift / sift.sum(axis=1, keepdims=True))
    assert np.allclose(vlfeat_sift.rootsift().describe(patches(9)), expected, atol=1e-7)


def test_contrast_does_not_matter() -> None:
    dark = patches(9) // 4
    found = vlfeat_sift.sift().describe(dark), vlfeat_sift.sift().describe(2 * dark + 30)
    assert np.allclose(*found, atol=1e-6)


def test_a_turn_of_the_patch_turns_cells_and_directions() -> None:
    some = patches(9)
    upright = vlfeat_sift.sift().describe(some).reshape(9, 4, 4, 8)
    turned = vlfeat_sift.sift().describe(np.rot90(some, axes=(1, 2)).copy())
    expected = np.roll(np.rot90(upright, axes=(1, 2)), -2, axis=3)
    assert np.allclose(turned.reshape(9, 4, 4, 8), expected, atol=0.02)  # the arc tangent's error
