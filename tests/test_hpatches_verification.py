import numpy as np
import pandas as pd
import pytest
from hpatches_files import LENGTHS, SPLITS, write_set

from harness import Descriptions
from harness.distances import L2
from protocols.hpatches import tasks
from protocols.hpatches.reader import NOISES, open_set
from protocols.hpatches.verification import _paired, verification


@pytest.fixture
def root(tmp_path):
    root = write_set(tmp_path / "own", LENGTHS, splits=SPLITS)
    tasks.make(root)
    return root


def described(dataset, *, seed=0, noise=0.0):
    """Vectors of points, more or less; those of image 0 to 15, sequence v_one, exactly."""
    rng = np.random.default_rng(seed)
    vectors = np.eye(16, dtype=np.float32)[dataset.point]
    others = dataset.image >= 16
    vectors[others] += noise * rng.normal(size=(int(others.sum()), 16)).astype(np.float32)
    return Descriptions(dataset, vectors, L2)


@pytest.mark.parametrize("noise", [1.0, 3.0])
def test_an_interval_is_one_of_fractions(root, noise):
    protocol = verification(data=root)
    found = protocol.score(described(protocol.dataset, noise=noise))
    low, high = found.intervals["verification/map"]
    assert 0 <= low <= found.values["verification/map"] <= high <= 1


def test_an_interval_takes_draws_with_matches_alone(root):
    """Sorted files: the first fifth, all positives that count, are of one sequence."""
    for name in tasks.VERIFICATION:
        file = root / "tasks" / name.format("a")
        pd.read_csv(file).sort_values("s1", kind="stable").to_csv(file, index=False)
    protocol = verification(data=root)
    found = protocol.score(described(protocol.dataset, noise=1.0))
    assert set(found.scenes) == {"v_one", "i_one"} and not found.scenes["v_one"]
    low, high = found.intervals["verification/map"]
    assert 0 <= low <= high <= 1


@pytest.mark.parametrize("pairs", [1, 7, 1000])
def test_distances_are_measured_in_slices_without_gaps(root, pairs):
    opened = open_set(root, "a")
    vectors = described(opened.dataset, noise=1.0).vectors
    a, b = np.random.default_rng(0).integers(0, len(vectors), (2, 3, pairs))
    found = _paired(Descriptions(opened.dataset, vectors, L2), a[0], b)
    expected = np.square(vectors[a[0]] - vectors[b]).sum(axis=-1)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert found.shape == (len(NOISES), pairs)
