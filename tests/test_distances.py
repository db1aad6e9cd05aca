import numpy as np
import pytest

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
    np.testing.assert_allclose(cross, paired.reshape(20, 40), rtol=1e-5)


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
    assert ANGLE.cross(a, b)[0, 0] == pytest.approx(np.pi / 2)


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
