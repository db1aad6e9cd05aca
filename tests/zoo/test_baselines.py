"""The baselines: what they must not know, and that they are what they say."""

import numpy as np
import pytest

from harness import Descriptor
from zoo import baselines

ALL = [
    baselines.constant, baselines.pixels, baselines.random, baselines.meanstd, baselines.resize,
]  # fmt: skip


def patches(n: int, side: int = 65) -> np.ndarray:
    found = np.random.default_rng(n).integers(0, 256, (n, side, side), np.uint8)
    found.flags.writeable = False
    return found


@pytest.fixture(params=ALL, ids=lambda maker: maker.__name__)
def descriptor(request: pytest.FixtureRequest) -> Descriptor:
    return request.param()


@pytest.mark.parametrize("n", [0, 1, 5])
@pytest.mark.parametrize("side", [8, 32, 64, 65])
def test_every_patch_gets_one_row(descriptor: Descriptor, n: int, side: int) -> None:
    vectors = descriptor.describe(patches(n, side))
    assert vectors.shape == (n, descriptor.dim) and vectors.dtype == descriptor.distance.dtype


def test_a_row_does_not_depend_on_its_batch(descriptor: Descriptor) -> None:
    some = patches(50)
    one_by_one = np.concatenate([descriptor.describe(some[i : i + 1]) for i in range(50)])
    assert np.array_equal(descriptor.describe(some), one_by_one)


def test_constant_gives_one_vector() -> None:
    assert len(np.unique(baselines.constant().describe(patches(9)), axis=0)) == 1


def test_pixels_have_zero_mean_and_unit_norm() -> None:
    vectors = baselines.pixels().describe(patches(9))
    assert np.allclose(vectors.mean(axis=1), 0, atol=1e-7)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)


@pytest.mark.parametrize("side", [16, 32, 65, 200])
@pytest.mark.parametrize("grey", [0, 77, 255])
def test_a_flat_patch_is_the_zero_vector_of_pixels(side: int, grey: int) -> None:
    flat = np.full((3, side, side), grey, np.uint8)
    assert not baselines.pixels().describe(flat).any()


def test_pixels_average_by_area() -> None:
    some = patches(4, 65)
    fine = some.repeat(16, axis=1).repeat(16, axis=2)  # each pixel 16 times: 65 of them a cell
    cells = fine.reshape(4, 16, 65, 16, 65).mean(axis=(2, 4)).reshape(4, 256)
    cells -= cells.mean(axis=1, keepdims=True)
    cells /= np.linalg.norm(cells, axis=1, keepdims=True)
    assert np.allclose(baselines.pixels().describe(some), cells, atol=1e-6)


def test_pixels_do_not_see_brightness_and_contrast() -> None:
    dark = patches(4) // 2
    pixels = baselines.pixels()
    assert np.allclose(pixels.describe(dark), pixels.describe(2 * dark + 1), atol=1e-6)


def test_equal_patches_get_equal_random_vectors() -> None:
    some = patches(3)
    vectors = baselines.random().describe(some[[0, 1, 0, 2]])
    assert np.array_equal(vectors[0], vectors[2]) and not np.array_equal(vectors[0], vectors[1])


def test_one_grey_level_changes_the_whole_random_vector() -> None:
    some = patches(1).repeat(200, axis=0)
    some[:, 0, 0] = np.arange(200)
    vectors = baselines.random().describe(some)
    inner = (vectors @ vectors.T)[np.triu_indices(200, 1)]
    assert abs(inner).max() < 6 / np.sqrt(128)


def test_random_vectors_are_unit_and_in_no_preferred_direction() -> None:
    vectors = baselines.random().describe(patches(4000, 8))
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    covariance = vectors.T @ vectors / 4000 * 128
    assert abs(vectors.mean(axis=0)).max() < 5 / np.sqrt(4000 * 128)
    assert abs(covariance - np.eye(128)).max() < 6 * np.sqrt(2 / 4000)


def test_random_vectors_stay_what_they_were() -> None:
    # Computed once; a change would silently end the comparison with stored results.
    vector = baselines.random().describe(np.zeros((1, 65, 65), np.uint8))[0]
    assert np.allclose(vector[:3], [0.01852272, -0.10429337, -0.10636796], atol=1e-6)


def test_meanstd_are_the_moments_of_the_benchmarks_code() -> None:
    some = patches(9)
    expected = [[p.mean(), np.sqrt(((p - p.mean()) ** 2).sum() / (65**2 - 1))] for p in some]
    assert np.allclose(baselines.meanstd().describe(some), expected, rtol=1e-6)


def keys(x: float) -> float:
    """R. Keys' bicubic kernel, as MATLAB's imresize takes it."""
    x = abs(x)
    if x <= 1:
        return 1.5 * x**3 - 2.5 * x**2 + 1
    return -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2 if x < 2 else 0.0


@pytest.mark.parametrize("side", [6, 9, 64, 65])
def test_resize_samples_bicubically_without_antialiasing(side: int) -> None:
    (patch,) = patches(1, side)
    standard = (patch - patch.mean()) / patch.std(ddof=1)
    wide = np.pad(standard, 2, "symmetric")
    cells = np.zeros((6, 6))
    for i in range(6):
        for k in range(6):
            y, x = ((place + 0.5) * side / 6 - 0.5 for place in (i, k))
            for row in range(-2, side + 2):
                for column in range(-2, side + 2):
                    share = keys(y - row) * keys(x - column)
                    cells[i, k] += share * wide[row + 2, column + 2]
    expected = cells.ravel() / np.linalg.norm(cells)
    assert np.allclose(baselines.resize().describe(patch[None])[0], expected, atol=1e-6)


def test_resize_of_a_flat_patch_is_zero() -> None:
    assert not baselines.resize().describe(np.full((2, 65, 65), 7, np.uint8)).any()
