import doctest
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import protocols.phototour.fpr95
from harness.metrics import (
    average_precision,
    fpr_at_95,
    precision_recall_curve,
    rank,
    roc_auc,
    roc_curve,
)
from protocols.phototour.fpr95 import fpr_at_95_hardnet, fpr_at_95_tian


def pairs(seed, n=200, values=30):
    rng = np.random.default_rng(seed)
    match = np.arange(n) % 2 == 0
    distance = rng.integers(0, values, n) + np.where(match, 0, values // 3)
    return match, distance.astype(np.float32)


def hardnet_slow(match, distance):
    """One pair after the other, the first given first among equal ones."""
    order = sorted(range(len(match)), key=lambda i: distance[i])
    right = wrong = 0
    for i in order:
        right += match[i]
        if right >= 0.95 * match.sum():
            return wrong / (~match).sum()
        wrong += not match[i]


def tian_slow(match, distance):
    threshold = sorted(distance[match])[math.ceil(0.95 * match.sum())]
    return sum(distance[~match] <= threshold) / (~match).sum()


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("n", [60, 101, 200])
def test_both_variants_equal_their_slow_twins(seed, n):
    match, distance = pairs(seed, n)
    assert fpr_at_95_hardnet(match, distance) == hardnet_slow(match, distance)
    assert fpr_at_95_tian(rank(match, distance)) == tian_slow(match, distance)


@pytest.mark.parametrize("seed", range(10))
def test_without_ties_hardnet_is_the_harness_own_and_tian_one_match_beyond(seed):
    rng = np.random.default_rng(seed)
    match = np.arange(400) % 2 == 0
    distance = rng.permutation(400) + np.where(match, 0.0, 100.5)
    own = fpr_at_95(rank(match, distance))
    assert fpr_at_95_hardnet(match, distance) == own
    beyond = np.sort(distance[match])[190]  # own stops at number 190 of 200, this is 191
    assert fpr_at_95_tian(rank(match, distance)) == np.mean(distance[~match] <= beyond) >= own


def test_only_hardnet_depends_on_the_order_of_ties():
    match = np.arange(100) < 50
    distance = np.zeros(100)
    assert fpr_at_95_hardnet(match, distance) == 0
    assert fpr_at_95_hardnet(match[::-1], distance) == 1
    for metric in (fpr_at_95, fpr_at_95_tian):
        assert metric(rank(match, distance)) == metric(rank(match[::-1], distance)) == 1


def test_tian_needs_twenty_matches():
    match = np.arange(40) < 20
    assert fpr_at_95_tian(rank(match, np.arange(40.0))) == 0
    with pytest.raises(ValueError, match="19 matches"):
        fpr_at_95_tian(rank(match[1:], np.arange(39.0)))


@pytest.mark.parametrize("kind", [True, False])
def test_pairs_of_one_kind_are_an_error(kind):
    match, distance = np.full(30, kind), np.arange(30.0)
    with pytest.raises(ValueError, match=r"among 30|all 30"):
        fpr_at_95_hardnet(match, distance)
    with pytest.raises(ValueError, match=r"among 30|all 30"):
        fpr_at_95_tian(rank(match, distance))


def test_a_distance_that_is_not_finite_is_an_error():
    with pytest.raises(ValueError, match="1 distances are not finite"):
        fpr_at_95_hardnet(np.array([True, False]), np.array([0.0, np.nan]))


def test_examples_in_docstrings():
    assert doctest.testmod(protocols.phototour.fpr95).failed == 0


# ---- curves


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 9)), min_size=2, max_size=60))
def test_areas_under_the_curves_are_the_metrics(drawn):
    match = np.array([m for m, _ in drawn])
    match[:2] = True, False
    ranking = rank(match, np.array([d for _, d in drawn], float))
    wrong, right = roc_curve(ranking)
    assert np.trapezoid(right, wrong) == pytest.approx(roc_auc(ranking), abs=1e-12)
    recall, precision = precision_recall_curve(ranking)
    steps = np.diff(recall, prepend=0) @ precision
    assert steps == pytest.approx(average_precision(ranking), abs=1e-12)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 9)), min_size=2, max_size=60))
def test_the_roc_curve_has_a_corner_for_every_threshold(drawn):
    match = np.array([m for m, _ in drawn])
    match[:2] = True, False
    distance = np.array([d for _, d in drawn], float)
    wrong, right = roc_curve(rank(match, distance))
    assert (wrong[0], right[0], wrong[-1], right[-1]) == (0, 0, 1, 1)
    assert (np.diff(wrong) >= 0).all() and (np.diff(right) >= 0).all()
    for threshold in np.unique(distance):
        accepted = distance <= threshold
        x, y = accepted[~match].mean(), accepted[match].mean()
        assert any(  # on the segment between two corners
            abs((x - a) * (d - b) - (y - b) * (c - a)) < 1e-9 and a <= x <= c and b <= y <= d
            for a, b, c, d in zip(wrong, right, wrong[1:], right[1:], strict=False)
        )
