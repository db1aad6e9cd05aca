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


def described(dataset):
    rng = np.random.default_rng(0)
    return Descriptions(dataset, rng.normal(size=(len(dataset), 8)).astype(np.float32), L2)


def test_an_interval_ends_where_fractions_end(root):
    """One sequence scores 1, the other chance: a value between, and two scenes tell little."""
    place = np.arange(20)
    pairs = {"s1": np.array(["v_one", "i_one"])[place % 2], "t1": 0, "idx1": place % 7}
    seconds = {"pos": place % 7, "neg_intra": (place + 1) % 7, "neg_inter": (place + 1) % 7}
    for name, idx2 in zip(tasks.VERIFICATION, seconds.values(), strict=True):
        table = pd.DataFrame({**pairs, "s2": pairs["s1"], "t2": 1, "idx2": idx2})
        table.to_csv(root / "tasks" / name.format("a"), index=False)
    protocol = verification(data=root)
    vectors = np.eye(16, dtype=np.float32)[protocol.dataset.point]
    vectors[protocol.dataset.image >= 16] = 1  # images 0 to 15 are those of v_one
    found = protocol.score(Descriptions(protocol.dataset, vectors, L2))
    assert found.intervals["verification/map"] == (0, 1)


def test_there_is_no_interval_where_one_sequence_has_all_matches(root):
    """Sorted files: the first fifth, all positives that count, are of one sequence."""
    for name in tasks.VERIFICATION:
        file = root / "tasks" / name.format("a")
        pd.read_csv(file).sort_values("s1", kind="stable").to_csv(file, index=False)
    protocol = verification(data=root)
    found = protocol.score(described(protocol.dataset))
    assert set(found.scenes) == {"v_one", "i_one"} and not found.scenes["v_one"]
    assert not found.intervals and found.values["verification/map"] > 0


def test_an_interval_is_of_the_scores_without_one_sequence_each(root):
    """A slow twin: the files without a sequence's pairs, and Student's t of what they score."""

    def value(protocol):
        found = protocol.score(described(protocol.dataset))
        return found.values["verification/map"], found.intervals.get("verification/map")

    files = [root / "tasks" / name.format("a") for name in tasks.VERIFICATION]
    tables = [pd.read_csv(file) for file in files]
    place = np.random.default_rng(5).permutation(len(tables[0]))  # the first fifth is of both
    for file, table in zip(files, tables, strict=True):
        table.iloc[place].to_csv(file, index=False)
    score, (low, high) = value(verification(data=root))
    whole = [pd.read_csv(file) for file in files]
    fifth = int(0.2 * len(place))
    without = []
    for name in ("v_one", "i_one"):
        kept = whole[0]["s1"] != name
        count = np.arange(len(kept)) < fifth  # positives that count stay those that count
        rows = np.r_[np.flatnonzero(kept & count), np.flatnonzero(kept & ~count)]
        for file, table in zip(files, whole, strict=True):
            table.iloc[rows].to_csv(file, index=False)
        without.append(value(verification(data=root))[0])
    reach = 12.7062 * np.sqrt(np.var(without))
    assert (low, high) == pytest.approx((max(0, score - reach), min(1, score + reach)), abs=0.02)


@pytest.mark.parametrize("pairs", [1, 7, 1000])
def test_distances_are_measured_in_slices_without_gaps(root, pairs):
    opened = open_set(root, "a")
    vectors = described(opened.dataset).vectors
    a, b = np.random.default_rng(0).integers(0, len(vectors), (2, 3, pairs))
    found = _paired(Descriptions(opened.dataset, vectors, L2), a[0], b)
    expected = np.square(vectors[a[0]] - vectors[b]).sum(axis=-1)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert found.shape == (len(NOISES), pairs)
