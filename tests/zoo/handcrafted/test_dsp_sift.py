"""DSP-SIFT: pooling over domains, compared with a slow twin."""

import numpy as np
import pytest
from described_patches import smooth_patches as patches

from zoo.handcrafted import dsp_sift, vlfeat_sift


def grey_at(patch: np.ndarray, y: float, x: float) -> float:
    """A patch whose border goes on, interpolated bilinearly."""
    last = len(patch) - 1
    top, left = int(np.floor(y)), int(np.floor(x))
    four = [
        [patch[min(max(top + i, 0), last), min(max(left + k, 0), last)] for k in (0, 1)]
        for i in (0, 1)
    ]
    return float(np.array([1 - y + top, y - top]) @ four @ [1 - x + left, x - left])


def mean_around(patch: np.ndarray, y: float, x: float, scale: float) -> float:
    """Mean of a square of a patch whose pixels are squares, and whose border goes on."""
    last = len(patch) - 1
    total = 0.0
    for row in range(int(y - scale) - 2, int(y + scale) + 3):
        high = min(row + 0.5, y + scale / 2) - max(row - 0.5, y - scale / 2)
        for column in range(int(x - scale) - 2, int(x + scale) + 3):
            wide = min(column + 0.5, x + scale / 2) - max(column - 0.5, x - scale / 2)
            if high > 0 and wide > 0:
                value = patch[min(max(row, 0), last), min(max(column, 0), last)]
                total += high * wide * float(value)
    return total / scale**2


def domain(patch: np.ndarray, scale: float) -> np.ndarray:
    side = len(patch)
    at = (np.arange(side) - (side - 1) / 2) * scale + (side - 1) / 2
    if scale > 1:
        return np.array([[mean_around(patch, y, x, scale) for x in at] for y in at], np.float32)
    return np.array([[grey_at(patch, y, x) for x in at] for y in at], np.float32)


@pytest.mark.parametrize("side", [16, 17])
def test_dsp_sift_is_that_of_a_slow_twin(side: int) -> None:
    (patch,) = patches(1, side)
    scales = [1 / 6 + i * (3 - 1 / 6) / 9 for i in range(10)]
    domains = np.array([domain(patch, scale) for scale in scales])
    mean = vlfeat_sift.histograms(domains).astype(np.float64).mean(axis=0)
    cut = np.minimum(mean / np.linalg.norm(mean), 0.067)
    found = dsp_sift.dsp_sift().describe(patch[None])[0]
    assert np.allclose(found, cut / np.linalg.norm(cut), atol=1e-4)


@pytest.mark.parametrize("scale", [1 / 6, 0.5, 1, 1.3, 2, 3])
@pytest.mark.parametrize("side", [16, 65])
def test_a_domain_is_a_mean_of_pixels(side: int, scale: float) -> None:
    weights = dsp_sift.resampling(side, scale)
    assert (weights >= 0).all()
    assert np.allclose(weights.sum(axis=1), 1)
    assert np.allclose(weights, weights[::-1, ::-1])  # the centre stays where it is


def test_the_domain_of_scale_1_is_the_patch() -> None:
    assert np.array_equal(dsp_sift.resampling(65, 1), np.eye(65))


def test_one_domain_of_scale_1_is_vlfeats_sift(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dsp_sift, "SCALES", np.ones(1))
    monkeypatch.setattr(dsp_sift, "LIMIT", 0.2)
    some = patches(5)
    expected = vlfeat_sift.sift().describe(some)
    assert np.allclose(dsp_sift.dsp_sift().describe(some), expected, atol=1e-6)


def test_a_flat_patch_is_zero() -> None:
    for grey in (0, 77, 255):
        assert not dsp_sift.dsp_sift().describe(np.full((2, 65, 65), grey, np.uint8)).any()
