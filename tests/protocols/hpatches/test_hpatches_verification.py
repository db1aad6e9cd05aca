from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hpatches_files import LENGTHS, SPLITS, write_set

from harness import Descriptions
from harness.distances import L2
from protocols.hpatches import tasks
from protocols.hpatches.reader import NOISES, open_set
from protocols.hpatches.verification import BINS, _histograms, _paired, verification

PAIRS = 20_000  # as many as there are of the smallest real set


@pytest.fixture
def root(tmp_path):
    root = write_set(tmp_path / "own", LENGTHS, splits=SPLITS)
    tasks.make(root)
    return root


def described(dataset):
    rng = np.random.default_rng(0)
    return Descriptions(dataset, rng.normal(size=(len(dataset), 8)).astype(np.float32), L2)


def test_two_sequences_are_too_few_for_an_interval(root):
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
    assert 0 < found.values["verification/map"] < 1 and not found.intervals


def test_there_is_no_interval_where_one_sequence_has_all_matches(root):
    """Sorted files: the first fifth, all positives that count, are of one sequence."""
    for name in tasks.VERIFICATION:
        file = root / "tasks" / name.format("a")
        pd.read_csv(file).sort_values("s1", kind="stable").to_csv(file, index=False)
    protocol = verification(data=root)
    found = protocol.score(described(protocol.dataset))
    assert set(found.scenes) == {"v_one", "i_one"} and not found.scenes["v_one"]
    assert not found.intervals and found.values["verification/map"] > 0


@pytest.mark.parametrize("without_pairs", [[], ["i_two"]])
def test_an_interval_is_of_the_scores_without_one_sequence_each(
    tmp_path, monkeypatch, without_pairs
):
    """A slow twin: the files without a sequence's pairs, every second, one by one."""
    test, train = (SPLITS["a"][of] for of in ("test", "train"))
    train = [one for one in train if one not in without_pairs]
    split = {"name": "a", "test": [*test, *without_pairs], "train": train}
    root = write_set(tmp_path / "own", LENGTHS, splits={"a": split})
    tasks.make(root)
    rng = np.random.default_rng(5)
    name = np.array(["v_one", "i_one"])[np.arange(PAIRS) % 2]
    tables = {}
    idx1 = rng.integers(0, 7, PAIRS)
    for one in tasks.VERIFICATION:
        file = root / "tasks" / one.format("a")
        second = (idx1 + len(tables) * rng.integers(1, 7, PAIRS)) % 7  # those of the first match
        columns = {"s1": name, "t1": 0, "idx1": idx1, "s2": name, "t2": 1, "idx2": second}
        tables[file] = pd.DataFrame(columns)
    asked = []
    monkeypatch.setattr(
        "protocols.hpatches.verification.interval", lambda *of, **_: asked.append(of)
    )

    def score(kept):
        for file, table in tables.items():
            table[kept].to_csv(file, index=False)
        protocol = verification(data=root)
        noise = np.random.default_rng(1).normal(size=(len(protocol.dataset), 8))
        vectors = np.eye(8)[protocol.dataset.point % 8] + noise
        vectors = vectors.astype(np.float32)
        found = protocol.score(Descriptions(protocol.dataset, vectors, L2))
        return found.values["verification/map"]

    whole = score(name != "")
    (value, without), *others = asked
    assert value == whole and not others
    left = [score(name != one) for one in ("v_one", "i_one")]
    assert abs(left[0] - left[1]) > 0.05
    assert sorted(without) == pytest.approx(sorted(left), abs=0.005)


@pytest.mark.parametrize("pairs", [1, 7, 1000])
def test_distances_are_measured_in_slices_without_gaps(root, pairs):
    opened = open_set(root, "a")
    vectors = described(opened.dataset).vectors
    a, b = np.random.default_rng(0).integers(0, len(vectors), (2, 3, pairs))
    found = _paired(Descriptions(opened.dataset, vectors, L2), a[0], b)
    expected = np.square(vectors[a[0]] - vectors[b]).sum(axis=-1)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert found.shape == (len(NOISES), pairs)


@pytest.mark.parametrize("values", [7, 1000])  # with few values, many distances are equal
def test_a_bin_counts_the_distances_of_a_sequence_between_two_edges(values):
    rng = np.random.default_rng(values)
    sequence = np.sort(rng.integers(0, 5, 600))
    sequence[sequence == 2] = 3  # a sequence without pairs
    matched, unmatched = rng.integers(0, values, (2, 600)).astype(float)
    first = rng.random(600) < 0.3
    hits, misses = _histograms(matched, unmatched, sequence, first, 5)
    quantiles = np.linspace(0, 1, BINS)
    some = np.concatenate([matched[::97], unmatched[::97]])
    edges = np.unique(np.quantile(some, quantiles))
    bounds = [-np.inf, *edges, np.inf]
    for number in range(5):
        for counts, distance, rows in (
            (hits, matched, first & (sequence == number)),
            (misses, unmatched, sequence == number),
        ):
            twin = [
                np.count_nonzero((distance[rows] > low) & (distance[rows] <= high))
                for low, high in pairwise(bounds)
            ]
            np.testing.assert_array_equal(counts[number], twin)
