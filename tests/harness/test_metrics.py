import doctest
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score

import harness.metrics
from harness.distances import count_below
from harness.metrics import (
    average_precision,
    fpr_at_95,
    rank,
    rank_apart,
    rank_counted,
    rank_uncertain,
    roc_auc,
    trapezoid_average_precision,
)

METRICS = [average_precision, trapezoid_average_precision, roc_auc, fpr_at_95]


def average_precision_slow(match, distance):
    ap = last_recall = 0.0
    for threshold in np.unique(distance):
        accepted = match[distance <= threshold]
        recall = accepted.sum() / match.sum()
        ap += (recall - last_recall) * accepted.mean()
        last_recall = recall
    return ap


def fpr_at_95_slow(match, distance):
    for threshold in np.unique(distance):
        accepted = distance <= threshold
        if match[accepted].sum() >= 0.95 * match.sum():
            return accepted[~match].mean()


def roc_auc_slow(match, distance):
    a, b = distance[match][:, None], distance[~match]
    return np.mean((a < b) + (a == b) / 2)


def trapezoid_in_order(match, positives):
    """The area of one order of pairs, point by point from (0, 1)."""
    area, precision, found = 0.0, 1.0, 0
    for place, hit in enumerate(match, start=1):
        found += hit
        area += hit / positives * (precision + found / place) / 2
        precision = found / place
    return area


def trapezoid_slow(match, distance, positives=None):
    """The mean over every order that sorts the distances."""
    areas = [
        trapezoid_in_order(match[list(order)], positives or match.sum())
        for order in itertools.permutations(range(len(match)))
        if (np.diff(distance[list(order)]) >= 0).all()
    ]
    return np.mean(areas)


def pairs(seed, n=60, values=12, matches=0.3):
    rng = np.random.default_rng(seed)
    match = rng.random(n) < matches
    match[:2] = True, False
    return match, rng.integers(0, values, n).astype(np.float32)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(
    ("fast", "slow"),
    [
        (average_precision, average_precision_slow),
        (fpr_at_95, fpr_at_95_slow),
        (roc_auc, roc_auc_slow),
    ],
)
def test_equals_its_slow_twin(fast, slow, seed):
    match, distance = pairs(seed)
    assert fast(rank(match, distance)) == pytest.approx(slow(match, distance), abs=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_the_trapezoid_is_the_mean_over_all_orders_of_ties(seed):
    match, distance = pairs(seed, n=7, values=3, matches=0.5)
    assert trapezoid_average_precision(rank(match, distance)) == pytest.approx(
        trapezoid_slow(match, distance), abs=1e-12
    )


@pytest.mark.parametrize("seed", range(8))
def test_uncertain_matches_are_averaged_over_what_may_be_true(seed):
    rng = np.random.default_rng(seed)
    chance = rng.choice([0.0, 0.25, 0.5, 1.0], 5)
    distance = rng.integers(0, 3, 5).astype(float)
    mean = 0.0
    for match in itertools.product([0, 1], repeat=5):
        probability = np.prod(np.where(match, chance, 1 - chance))
        if probability:
            mean += probability * trapezoid_slow(np.array(match), distance, positives=5)
    assert trapezoid_average_precision(rank_uncertain(chance, distance, 5)) == pytest.approx(mean)


@pytest.mark.parametrize(
    ("ours", "theirs"), [(average_precision, average_precision_score), (roc_auc, roc_auc_score)]
)
def test_agrees_with_scikit_learn(ours, theirs):
    match, distance = pairs(0, n=3000, values=700)
    assert ours(rank(match, distance)) == pytest.approx(theirs(match, -distance))


@pytest.mark.parametrize("metric", METRICS)
def test_order_of_pairs_does_not_matter(metric):
    match, distance = pairs(0, n=200, values=8)
    shuffled = np.random.default_rng(1).permutation(200)
    assert metric(rank(match, distance)) == metric(rank(match[shuffled], distance[shuffled]))


@pytest.mark.parametrize("metric", METRICS)
def test_only_the_order_of_distances_matters(metric):
    match, distance = pairs(0)
    assert metric(rank(match, distance)) == metric(rank(match, np.exp(distance / 4)))


@pytest.mark.parametrize("metric", METRICS)
def test_an_oracle_scores_best(metric):
    match, _ = pairs(0)
    best = 0 if metric is fpr_at_95 else 1
    assert metric(rank(match, (~match).astype(float))) == best


@pytest.mark.parametrize(
    ("metric", "chance"), [(average_precision, 0.25), (roc_auc, 0.5), (fpr_at_95, 1.0)]
)
def test_a_constant_distance_scores_chance(metric, chance):
    assert metric(rank(np.arange(100) < 25, np.zeros(100))) == chance


def test_a_constant_distance_scores_the_trapezoid_of_random_orders():
    match = np.arange(100) < 5
    rng = np.random.default_rng(0)
    areas = [trapezoid_in_order(rng.permutation(match), 5) for _ in range(4000)]
    constant = trapezoid_average_precision(rank(match, np.zeros(100)))
    assert constant == pytest.approx(np.mean(areas), abs=4 * np.std(areas) / 4000**0.5)


def test_ties_can_be_given_to_either_side():
    match, distance = np.array([True, False, True, False]), np.zeros(4)
    ranking = rank(match, distance)
    first = trapezoid_average_precision(ranking.with_ties("matches-first"))
    last = trapezoid_average_precision(ranking.with_ties("matches-last"))
    assert first == trapezoid_in_order([1, 1, 0, 0], 2)
    assert last == pytest.approx(trapezoid_in_order([0, 0, 1, 1], 2))


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=1, max_size=40))
def test_the_three_ways_to_rank_agree(drawn):
    match = np.array([m for m, _ in drawn])
    distance = np.array([d for _, d in drawn], float)
    if not match.any():
        match[0] = True
    one = trapezoid_average_precision(rank(match, distance))
    two = trapezoid_average_precision(
        rank_uncertain(match.astype(float), distance, int(match.sum()))
    )
    matched, others = np.sort(distance[match])[None], np.sort(distance[~match])[None]
    nearer = count_below(others, matched, "left")
    upto = count_below(others, matched, "right")
    three = trapezoid_average_precision(rank_counted(matched, nearer, upto - nearer))
    assert one == pytest.approx(two, abs=1e-12)
    assert one == pytest.approx(three[0], abs=1e-12)


@given(st.integers(0, 9), st.integers(0, 2**32 - 1))
def test_counts_below_are_those_of_searchsorted(n, seed):
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.integers(0, 6, (3, n)).astype(float), axis=1)
    values = rng.integers(-1, 7, (3, 4)).astype(float)
    for side in ("left", "right"):
        expected = [np.searchsorted(r, v, side) for r, v in zip(rows, values, strict=True)]
        np.testing.assert_array_equal(count_below(rows, values, side), expected)


def test_no_match_is_an_error_not_a_zero():
    with pytest.raises(ValueError, match="no match among 3 pairs"):
        rank(np.zeros(3, bool), np.zeros(3))


@pytest.mark.parametrize("metric", [roc_auc, fpr_at_95])
def test_nothing_but_matches_is_an_error(metric):
    with pytest.raises(ValueError, match="all 3 pairs are matches"):
        metric(rank(np.ones(3, bool), np.zeros(3)))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_distance_that_is_not_finite_is_an_error(bad):
    with pytest.raises(ValueError, match="1 of 2 distances are not finite"):
        rank_apart(np.array([0.0]), np.array([1.0, bad]))


def test_examples_in_docstrings():
    assert doctest.testmod(harness.metrics).failed == 0
