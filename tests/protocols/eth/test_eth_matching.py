import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from harness.distances import ANGLE, DISTANCES, HAMMING, L2
from protocols.eth import matching
from protocols.eth.matching import LEAST, Axes, axes, match

every = pytest.mark.parametrize("distance", DISTANCES.values(), ids=lambda d: d.name)


def twin(a, b, distance, least=LEAST, ratio=0.8):
    """The definition, row by row."""
    if distance is HAMMING:
        a, b = (np.unpackbits(v, axis=1).astype(np.float32) for v in (a, b))
    both = np.concatenate([a, b])
    n, m = len(a), len(b)
    i, j = np.divmod(np.arange(n * m), max(m, 1))
    squares = L2.paired(both, i, n + j).astype(np.float64).reshape(n, m)
    found = []
    for row in range(n if m else 0):
        order = np.argsort(squares[row], kind="stable")
        first = np.sqrt(squares[row, order[0]])
        second = np.sqrt(squares[row, order[1]]) if m > 1 else np.inf
        near = second > 0 and first <= ratio * second
        if near and squares[:, order[0]].argmin() == row:
            found.append((row, order[0]))
    return found if len(found) >= least else []


def matched(a, b, distance, **options):
    return [tuple(pair) for pair in match(a, b, axes([a, b], distance), **options).tolist()]


def alike(distance, n=80, m=90, dim=32, noise=0.4, seed=0):
    """Two images that share most of their points; directions of unlike variance, as in life."""
    rng = np.random.default_rng(seed)
    scale = 0.9 ** np.arange(dim)
    points = rng.normal(size=(n, dim)) * scale
    other = np.concatenate([points, rng.normal(size=(m, dim)) * scale])[rng.permutation(m)]
    a, b = (v + noise * scale * rng.normal(size=v.shape) for v in (points, other))
    if distance is HAMMING:
        return np.packbits(a > 0, axis=1), np.packbits(b > 0, axis=1)
    if distance is ANGLE:
        a, b = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in (a, b))
    return a.astype(np.float32), b.astype(np.float32)


@every
def test_matches_are_those_of_the_definition(distance):
    a, b = alike(distance)
    found = matched(a, b, distance)
    assert found == twin(a, b, distance)
    assert len(found) > 20


@every
def test_a_larger_ratio_matches_more(distance):
    a, b = alike(distance)
    found = [matched(a, b, distance, ratio=ratio) for ratio in (0.6, 0.9, 1.0)]
    assert found == [twin(a, b, distance, ratio=ratio) for ratio in (0.6, 0.9, 1.0)]
    assert set(found[0]) < set(found[1]) < set(found[2])


@every
@pytest.mark.parametrize("energy", [0.3, 0.9, 1.0])
def test_how_much_is_compared_first_changes_nothing(distance, energy, monkeypatch):
    monkeypatch.setattr(matching, "ENERGY", energy)
    a, b = alike(distance, dim=64)
    by = axes([a, b], distance)
    assert (by.directions.shape[1] < 64) == (energy < 1)
    assert matched(a, b, distance) == twin(a, b, distance)


@every
def test_any_axes_give_the_same_matches(distance):
    a, b = alike(distance)
    others = axes(alike(distance, seed=1), distance)
    np.testing.assert_array_equal(match(a, b, others), matched(a, b, distance))


def test_bounds_that_do_not_tell_vectors_apart_decide_nothing(monkeypatch):
    """Two of these are the same, the third only looks so in what is compared first."""
    monkeypatch.setattr(matching, "LEAST", 1)
    one, other = np.eye(16, dtype=np.float32)[[9, 10]]
    by = Axes(L2, np.zeros(16), np.eye(16)[:, :8])
    for b in ([one, other, one], [other, one, one], [one, one, other]):
        assert match(one[None], np.array(b), by).tolist() == []
    assert match(one[None], np.array([other, one]), by).tolist() == [[0, 1]]


def test_chunks_change_nothing(monkeypatch):
    a, b = alike(L2)
    whole = matched(a, b, L2)
    monkeypatch.setattr("harness.distances.CROSSED", 300)
    assert matched(a, b, L2) == whole


few_values = st.integers(0, 3)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_ties_are_decided_as_defined(data):
    n, m, dim = (data.draw(st.integers(1, k)) for k in (12, 12, 3))
    a, b = (data.draw(hnp.arrays(np.float32, (rows, dim), elements=few_values)) for rows in (n, m))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(matching, "LEAST", 1)
        for ratio in (0.8, 1.0):
            found = matched(a, b, L2, ratio=ratio)
            assert found == twin(a, b, L2, least=1, ratio=ratio)


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_ties_of_bits_are_decided_as_defined(data):
    a, b = (data.draw(hnp.arrays(np.uint8, (data.draw(st.integers(1, 15)), 2))) for _ in range(2))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(matching, "LEAST", 1)
        assert matched(a, b, HAMMING) == twin(a, b, HAMMING, least=1)


def test_the_first_of_rows_that_tie_for_a_column_matches(monkeypatch):
    monkeypatch.setattr(matching, "LEAST", 1)
    a = np.array([[9, 9], [1, 0], [1, 0]], np.float32)
    b = np.array([[0, 0], [5, 5]], np.float32)
    assert matched(a, b, L2) == [(0, 1), (1, 0)]


def test_a_match_needs_to_be_mutual(monkeypatch):
    monkeypatch.setattr(matching, "LEAST", 1)
    a, b = np.array([[0.0], [1.0]], np.float32), np.array([[1.1], [9.0]], np.float32)
    assert matched(a, b, L2) == [(1, 0)]  # 1.1 is nearest to 0, too


def test_the_ratio_is_of_distances_and_may_be_reached(monkeypatch):
    monkeypatch.setattr(matching, "LEAST", 1)
    a = np.zeros((1, 1), np.float32)
    assert matched(a, np.array([[4.0], [-5.0]], np.float32), L2) == [(0, 0)]
    assert matched(a, np.array([[4.001], [-5.0]], np.float32), L2) == []


def test_the_ratio_is_that_of_one_direction(monkeypatch):
    monkeypatch.setattr(matching, "LEAST", 1)
    a, b = np.array([[0.0], [0.1]], np.float32), np.array([[0.046]], np.float32)
    assert matched(a, b, L2) == [(0, 0)]
    assert matched(b, a, L2) == []  # 0.046 and 0.054 are too much alike


def test_one_candidate_passes(monkeypatch):
    monkeypatch.setattr(matching, "LEAST", 1)
    a = np.array([[3.0], [1.0]], np.float32)
    assert matched(a, np.zeros((1, 1), np.float32), L2) == [(1, 0)]


@every
def test_equal_vectors_match_nothing(distance):
    vectors = np.ones((40, 8), distance.dtype) if distance is not ANGLE else np.eye(8)[[0] * 40]
    vectors = vectors.astype(distance.dtype)
    assert matched(vectors, vectors, distance) == []


def test_an_image_matched_with_itself_matches_throughout():
    a, _ = alike(L2)
    assert matched(a, a, L2) == [(i, i) for i in range(len(a))]


@pytest.mark.parametrize(("n", "m"), [(0, 0), (0, 5), (5, 0)])
def test_images_without_keypoints_have_no_matches(n, m):
    a, b = (np.zeros((k, 8), np.float32) for k in (n, m))
    found = match(a, b, axes([a, b], L2))
    assert found.shape == (0, 2)
    assert found.dtype == np.uint32


def test_fewer_than_15_are_none():
    a = 10 * np.eye(16, dtype=np.float32)
    assert len(matched(a[:15], a, L2)) == 15
    assert matched(a[:14], a, L2) == []


def test_axes_of_no_vectors_are_defined():
    assert axes([np.empty((0, 4), np.float32)], L2).directions.shape == (4, 4)


@pytest.mark.parametrize("offset", [0.0, 1000.0])
@pytest.mark.parametrize("outlier", [1.0, 1e4])
def test_a_common_offset_and_outliers_do_no_harm(offset, outlier):
    a, b = alike(L2)
    a, b = a + np.float32(offset), b + np.float32(offset)
    a[0] *= outlier
    assert matched(a, b, L2) == twin(a, b, L2)


def test_memory_is_bounded():
    n, dim = 5000, 16
    a, b = np.random.default_rng(0).normal(size=(2, n, dim)).astype(np.float32)
    by = axes([a, b], L2)
    tracemalloc.start()
    match(a, b, by)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * n * n / 4  # a quarter of all distances
