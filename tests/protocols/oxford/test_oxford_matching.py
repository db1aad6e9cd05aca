"""Matching of two images' vectors: the same as sorting all pairs, without sorting them."""

import tracemalloc

import numpy as np
import pytest
from near_ties import all_pairs, nearly_tied

from harness.distances import ANGLE, HAMMING, L2
from protocols.oxford import matching
from protocols.oxford.matching import count_nearer, greedy, mutual, nearest, one_to_one, ratio


def whole_numbers(seed, n, m, dim=2, values=3):
    """Vectors that tie often."""
    rng = np.random.default_rng(seed)
    return (rng.integers(0, values, (k, dim)).astype(np.float32) for k in (n, m))


def normal(seed, n, m, dim=8):
    rng = np.random.default_rng(seed)
    return (rng.standard_normal((k, dim), dtype=np.float32) for k in (n, m))


def near_ties(seed, n, m):
    both = nearly_tied(seed, n + m)
    return both[:n], both[n:]


def pairs(matches):
    return set(zip(matches.a.tolist(), matches.b.tolist(), matches.distance.tolist(), strict=True))


def by_sorting(distance, a, b):
    """Slow twin: every pair in its order, one by one."""
    crossed, n = all_pairs(distance, a, b), max(len(a), len(b))
    order = sorted(np.ndindex(crossed.shape), key=lambda p: (crossed[p], (p[1] - p[0]) % n))
    taken, rows, columns = set(), set(), set()
    for row, column in order:
        if row not in rows and column not in columns:
            rows.add(row)
            columns.add(column)
            taken.add((row, column, float(crossed[row, column])))
    return taken


# ---- greedy


@pytest.mark.parametrize("held", [1, 2, 32])
@pytest.mark.parametrize("make", [whole_numbers, normal, near_ties])
def test_greedy_is_what_sorting_all_pairs_gives(monkeypatch, make, held):
    monkeypatch.setattr(matching, "HELD", held)
    rng = np.random.default_rng(0)
    for seed in range(25):
        a, b = make(seed, *rng.integers(1, 40, 2))
        assert pairs(greedy(L2, a, b)) == by_sorting(L2, a, b), seed


def test_greedy_does_not_depend_on_chunks(monkeypatch):
    a, b = whole_numbers(0, 150, 120, dim=3)
    wanted = pairs(greedy(L2, a, b))
    monkeypatch.setattr("harness.distances.CROSSED", 500)
    monkeypatch.setattr(matching, "HELD", 2)
    assert pairs(greedy(L2, a, b)) == wanted == by_sorting(L2, a, b)


def test_bits_and_angles_are_matched_alike():
    bits = np.random.default_rng(0).integers(0, 256, (70, 2), dtype=np.uint8)
    assert pairs(greedy(HAMMING, bits[:40], bits[40:])) == by_sorting(HAMMING, bits[:40], bits[40:])
    a, b = normal(0, 30, 40)
    a, b = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in (a, b))
    assert pairs(greedy(ANGLE, a, b)) == by_sorting(ANGLE, a, b)


def test_the_smaller_side_is_matched_whole():
    for n, m in ((30, 50), (50, 30), (1, 1), (0, 5), (5, 0)):
        a, b = normal(1, n, m)
        found = greedy(L2, a, b)
        assert len(found.a) == len(set(found.a)) == len(set(found.b)) == min(n, m)


def test_ties_serve_all_rows_alike(monkeypatch):
    """And soon: of vectors that are all the same, few pairs have to be looked at."""
    monkeypatch.setattr(matching, "HELD", 1)
    same = np.ones((300, 4), np.float32)
    found = greedy(L2, same, same[:200])
    assert sorted(zip(found.a.tolist(), found.b.tolist(), strict=True)) == [
        (i, i) for i in range(200)
    ]


def test_pairs_are_not_held():
    a, b = normal(0, 3000, 3000, dim=16)
    tracemalloc.start()
    greedy(L2, a, b)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * len(a) * len(b)  # half of what a key for each pair would take


def test_each_row_and_column_serves_the_first_that_asks():
    a, b = np.array([0, 0, 1, 1, 2]), np.array([1, 0, 1, 0, 2])
    assert one_to_one(a, b, 3, 3).tolist() == [0, 3, 4]
    assert one_to_one(a, b, 2, 2).tolist() == [0, 3]


# ---- what else people use


@pytest.mark.parametrize("make", [whole_numbers, normal, near_ties])
def test_nearest_mutual_and_ratio_are_what_they_say(make):
    for seed in range(20):
        a, b = make(seed, 17, 23)
        d = all_pairs(L2, a, b)
        there, back = d.argmin(axis=1), d.argmin(axis=0)
        found = nearest(L2, a, b)
        assert np.array_equal(found.a, np.arange(17)) and np.array_equal(found.b, there)
        assert np.array_equal(found.distance, d.min(axis=1))
        both = mutual(L2, a, b)
        assert both.a.tolist() == [i for i in range(17) if back[there[i]] == i]
        assert np.array_equal(both.b, there[both.a])
        first, second = np.sqrt(np.sort(d, axis=1)[:, :2].T)
        wanted = [x / y if y else 1 for x, y in zip(first, second, strict=True)]
        assert ratio(L2, a, b).distance == pytest.approx(wanted, rel=1e-15)
        assert np.array_equal(ratio(L2, a, b).b, there)


def test_a_ratio_needs_a_second():
    with pytest.raises(ValueError, match="only one region"):
        ratio(L2, *normal(0, 3, 1))


@pytest.mark.parametrize("make", [whole_numbers, normal, near_ties])
def test_counts_are_those_of_all_pairs(monkeypatch, make):
    monkeypatch.setattr("harness.distances.CROSSED", 100)
    a, b = make(0, 31, 27)
    d = all_pairs(L2, a, b)
    row, column = np.array([0, 0, 7, 30]), np.array([3, 9, 26, 0])
    value, below, upto = count_nearer(L2, a, b, row, column)
    assert value.tolist() == sorted(d[row, column].tolist())
    assert below.tolist() == [np.count_nonzero(d < v) for v in value]
    assert upto.tolist() == [np.count_nonzero(d <= v) for v in value]
