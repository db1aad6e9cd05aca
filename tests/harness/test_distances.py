from dataclasses import replace

import numpy as np
import pytest
from near_ties import all_pairs, nearly_tied

from harness.distances import ANGLE, DISTANCES, HAMMING, L2

rng = np.random.default_rng(0)
UNIT = rng.normal(size=(60, 128)).astype(np.float32)
UNIT /= np.linalg.norm(UNIT, axis=1, keepdims=True)
VECTORS = {"l2": UNIT, "hamming": rng.integers(0, 256, (60, 32), dtype=np.uint8), "angle": UNIT}

every = pytest.mark.parametrize("distance", DISTANCES.values(), ids=lambda d: d.name)


@every
def test_its_shapes_agree(distance):
    a, b = VECTORS[distance.name][:20], VECTORS[distance.name][20:]
    cross = distance.cross(a, b)
    rows = np.arange(20)
    paired = distance.paired(
        np.concatenate([a, b]), rows.repeat(40), np.tile(np.arange(20, 60), 20)
    )
    np.testing.assert_allclose(cross, distance.crossed(paired).reshape(20, 40), rtol=1e-7)


@pytest.mark.parametrize("distance", [L2, HAMMING], ids=lambda one: one.name)  # angles by chords
def test_what_is_proposed_errs_within_its_rounding(distance):
    a, b = VECTORS[distance.name][:20], VECTORS[distance.name][20:]
    off = distance.propose(b)(a) - distance.cross(a, b)
    both = np.concatenate([a, b])
    assert np.ptp(off) <= distance.rounding(both) + 1e-6


@every
def test_several_sets_of_rows_are_paired_at_once(distance):
    v = VECTORS[distance.name]
    a, b = np.arange(20), np.stack([np.arange(20, 40), np.arange(40, 60)])
    together = distance.paired(v, a, b)
    np.testing.assert_array_equal(together, np.stack([distance.paired(v, a, one) for one in b]))


@every
def test_a_vector_is_at_distance_zero_from_itself(distance):
    v = VECTORS[distance.name]
    rows = np.arange(len(v))
    assert (distance.paired(v, rows, rows) == 0).all()
    assert (np.diag(distance.cross(v, v)) == 0).all()


@every
def test_equal_vectors_are_equally_far(distance):
    v = VECTORS[distance.name]
    across = distance.cross(v, np.repeat(v[:1], 33, axis=0))
    assert (across == across[:, :1]).all()


@every
def test_the_nearest_are_found_exactly(distance):
    v = VECTORS[distance.name]
    a, b = v[:30], np.concatenate([v[30:], v[30:40]])  # ten rows of b stand there twice
    nearest = distance.nearest(a, b)
    both = np.concatenate([a, b])
    n = len(b)
    measured = distance.paired(both, np.arange(30).repeat(n), np.tile(np.arange(30, 30 + n), 30))
    measured = measured.reshape(30, n)
    expected = np.nonzero(measured == measured.min(axis=1, keepdims=True))
    np.testing.assert_array_equal((nearest.row, nearest.column), expected)
    np.testing.assert_array_equal(nearest.distance, measured.min(axis=1))


def test_the_nearest_do_not_depend_on_how_many_are_searched_at_a_time(monkeypatch):
    a, b = UNIT[:30], UNIT[30:]
    whole = L2.nearest(a, b)
    monkeypatch.setattr("harness.distances.CROSSED", 100)
    parts = L2.nearest(a, b)
    np.testing.assert_array_equal(whole.column, parts.column)
    np.testing.assert_array_equal(whole.distance, parts.distance)


def test_every_row_of_equal_vectors_ties_with_all():
    vectors = np.full((7, 128), 0.0883, np.float32)
    nearest = L2.nearest(vectors, vectors)
    assert len(nearest.row) == 49


def test_nothing_to_search_is_an_error():
    with pytest.raises(ValueError, match="no rows to search"):
        L2.nearest(UNIT, UNIT[:0])


def test_nothing_to_search_for_gives_nothing():
    assert L2.nearest(UNIT[:0], UNIT).column.size == 0


def test_hamming_counts_bits():
    a = np.array([[0b1010_0000]], np.uint8)
    b = np.array([[0b0110_0001]], np.uint8)
    assert HAMMING.cross(a, b)[0, 0] == 3


def test_l2_is_kept_squared():
    a, b = np.array([[3, 0]], np.float32), np.array([[0, 4]], np.float32)
    assert L2.cross(a, b)[0, 0] == 25
    assert L2.unsquared(L2.cross(a, b))[0, 0] == 5


def test_angles_are_in_radians():
    a, b = np.array([[1, 0]], np.float32), np.array([[0, 1]], np.float32)
    both = np.concatenate([a, b])
    assert ANGLE.paired(both, np.array([0]), np.array([1]))[0] == pytest.approx(np.pi / 2)
    assert ANGLE.cross(a, b)[0, 0] == pytest.approx(2)  # the squared chord, in the same order


def test_lengths_that_are_nearly_1_do_not_hide_the_nearest_angle():
    a = np.array([[0.999, 0]], np.float32)
    at = np.float32(0.05)
    b = np.array([[0.999, 0], [1.001 * np.cos(at), 1.001 * np.sin(at)]], np.float32)
    assert ANGLE.nearest(a, b).column == 0


@every
def test_no_rows_have_no_distances(distance):
    none = np.empty(0, np.intp)
    assert distance.paired(VECTORS[distance.name], none, none).shape == (0,)


def test_a_far_outlier_does_not_swallow_small_distances():
    v = np.concatenate([UNIT[:20], 1e6 * UNIT[20:21]])
    np.testing.assert_allclose(L2.cross(v, v)[:20, :20], L2.cross(v[:20], v[:20]), rtol=1e-5)


# ---- order that float32 can't tell


def test_paired_distances_are_exact():
    vectors = nearly_tied(0, 60, dim=128)
    exact = np.square(vectors[:30, None].astype(float) - vectors[30:]).sum(axis=2)
    np.testing.assert_allclose(all_pairs(L2, vectors[:30], vectors[30:]), exact, rtol=1e-14)
    assert len(np.unique(exact)) > 2 * len(np.unique(exact.astype(np.float32)))  # ties in float32


def test_distances_of_float64_vectors_are_not_rounded_to_float32():
    vectors = np.random.default_rng(0).normal(size=(40, 8))
    exact = np.square(vectors[:20, None] - vectors[20:]).sum(axis=2)
    np.testing.assert_allclose(all_pairs(L2, vectors[:20], vectors[20:]), exact, rtol=1e-14)
    assert np.array_equal(L2.nearest(vectors[:20], vectors[20:]).column, exact.argmin(axis=1))


@pytest.mark.parametrize("seed", range(5))
@every
def test_the_nearest_of_near_ties_is_found(distance, seed):
    a, b = near_ties_of(distance, seed)
    exact = all_pairs(distance, a, b)
    found = distance.nearest(a, b)
    wanted = np.nonzero(exact == exact.min(axis=1, keepdims=True))
    np.testing.assert_array_equal((found.row, found.column), wanted)


@pytest.mark.parametrize("seed", range(5))
@every
def test_near_ties_are_counted_on_the_right_side(distance, seed):
    a, b = near_ties_of(distance, seed)
    exact = all_pairs(distance, a, b)
    value = exact[:, ::9]
    nearer, upto = distance.count_nearer(a, b, value)
    np.testing.assert_array_equal(nearer, (exact[:, None] < value[:, :, None]).sum(axis=2))
    np.testing.assert_array_equal(upto, (exact[:, None] <= value[:, :, None]).sum(axis=2))


def test_counts_do_not_depend_on_how_many_are_searched_at_a_time(monkeypatch):
    a, b = near_ties_of(L2, 0)
    value = all_pairs(L2, a, b)[:, :3]
    whole = L2.count_nearer(a, b, value)
    monkeypatch.setattr("harness.distances.CROSSED", 100)
    np.testing.assert_array_equal(L2.count_nearer(a, b, value), whole)


def test_few_pairs_are_measured_where_few_are_near_a_tie(monkeypatch):
    """Else the exact count would take as long as measuring all."""
    measured = []
    paired = L2.paired
    counting = replace(L2, paired=lambda v, a, b: (measured.append(len(a)), paired(v, a, b))[1])
    vectors = np.random.default_rng(0).standard_normal((2200, 64), dtype=np.float32)
    a, b = vectors[:200], vectors[200:]
    counting.count_nearer(a, b, all_pairs(L2, a, b)[:, :5])
    assert sum(measured) < 200 * 5 * 1.2  # each value ties with itself


def near_ties_of(distance, seed):
    both = nearly_tied(seed, 70)
    if distance is HAMMING:
        both = np.packbits(both[:, :16] > 0, axis=1)
    elif distance is ANGLE:
        both /= np.linalg.norm(both, axis=1, keepdims=True)
    return both[:30], both[30:]
