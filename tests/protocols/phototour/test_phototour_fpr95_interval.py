import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtri

from harness.metrics import fpr_at_95, rank
from protocols.phototour.fpr95_interval import _slope, _variance, interval_of_fpr95

PAIRS = 50_000  # half of them matches


def drawn(rng, rate, points, *, shared=0.3, pareto=False):
    """Pairs whose false positive rate at 95 % recall is `rate`, and the points that they show.

    Points that are blurred, say, are near to everything: a share of the variance of distances is of
    points. Where their popularity is Pareto-distributed, some show in hundreds of pairs, as in
    Notre Dame.
    """
    weight = rng.pareto(1.5, points) + 1 if pareto else np.ones(points)
    upto = np.cumsum(weight / weight.sum())
    n = PAIRS // 2
    point, a, b = np.minimum(np.searchsorted(upto, rng.random((3, n))), points - 1)
    effect, noise = rng.standard_normal(points), rng.standard_normal((2, n))
    matched = np.sqrt(shared) * effect[point] + np.sqrt(1 - shared) * noise[0]
    apart = np.sqrt(shared / 2) * (effect[a] + effect[b]) + np.sqrt(1 - shared) * noise[1]
    distance = np.concatenate([matched, apart + ndtri(0.95) - ndtri(rate)])
    match = np.arange(2 * n) < n
    return match, distance.astype(np.float32), np.append(point, a), np.append(point, b)


@pytest.mark.parametrize(
    ("rate", "points", "pareto"),
    [*((rate, 10_000, True) for rate in (0.05, 0.01, 0.0022, 0.0004)), (0.0004, 40_000, False)],
)
def test_the_interval_covers_the_true_rate(rate, points, pareto):
    rng = np.random.default_rng(0)
    below = above = 0
    draws = 100
    for _ in range(draws):
        pairs = drawn(rng, rate, points, pareto=pareto)
        value = fpr_at_95(rank(*pairs[:2]))
        low, high = interval_of_fpr95(value, *pairs)
        assert low <= value <= high
        below += high < rate
        above += low > rate
    assert 1 - (below + above) / draws >= 0.9  # the standard error is 2 %
    assert max(below, above) / draws <= 0.07


def test_without_a_false_positive_the_interval_says_how_many_there_may_be():
    """Nine points: with no more to see, a rate of 10 % would show none just as well."""
    match = np.arange(40) < 20
    distance = np.where(match, 0.0, 1.0).astype(np.float32)
    a = np.arange(40) % 9
    low, high = interval_of_fpr95(0.0, match, distance, a, np.where(match, a, (a + 1) % 9))
    t = stats.t.ppf(0.975, 8)
    assert (low, high) == pytest.approx((0, t**2 / (9 + t**2)))


def test_a_constant_distance_has_an_interval_that_ends_at_1():
    match = np.arange(40) < 20
    a = np.arange(40)
    b = np.where(match, a, a[::-1])
    low, high = interval_of_fpr95(1.0, match, np.zeros(40, np.float32), a, b)
    assert 0.8 < low < high == 1


def test_no_interval_comes_of_one_point():
    rows = np.zeros(4, int)
    distance = np.arange(4, dtype=np.float32)
    assert interval_of_fpr95(0.5, np.arange(4) < 2, distance, rows, rows) is None


def test_the_variance_is_the_sum_over_all_two_pairs_that_share_a_point():
    """A slow twin, with pairs of the same two points and matches among them."""
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 12, (2, 60))
    b[:20] = a[:20]
    influence = np.abs(rng.normal(size=60))
    ends = [{*pair} for pair in zip(a.tolist(), b.tolist(), strict=True)]
    wanted = sum(
        influence[i] * influence[j] for i in range(60) for j in range(60) if ends[i] & ends[j]
    )
    assert _variance(influence, a, b) == pytest.approx(wanted)


def test_the_variance_is_never_less_than_that_of_independent_pairs():
    influence = np.array([1.0, -1.0, 1.0, -1.0])
    assert _variance(influence, np.zeros(4, int), np.arange(4) + 1) == 4


def test_the_slope_is_that_of_the_roc_curve():
    """Normal distances: the ratio of two densities at the threshold."""
    rng = np.random.default_rng(0)
    matched, others = np.sort(rng.normal([[0.0], [4.0]], 1, (2, 1_000_000)).astype(np.float32))
    at = stats.norm.ppf(0.95)
    wanted = stats.norm.pdf(at, 4) / stats.norm.pdf(at)
    assert _slope(matched, others) == pytest.approx(wanted, rel=0.05)
    assert _slope(matched[:1], others) == 0
