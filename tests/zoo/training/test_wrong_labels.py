"""Wrong labels in a training set: how many there are, and which patches they reach."""

import numpy as np
import pytest
import small_training
import torch
from hypothesis import given
from hypothesis import strategies as st

from zoo.training import recipe
from zoo.training.loop import prepare
from zoo.training.wrong_labels import with_wrong_labels

shares = st.floats(0, 0.95)


@given(
    sizes=st.lists(st.integers(1, 5), min_size=40, max_size=60),
    share=shares,
    seed=st.integers(0, 99),
)
def test_exactly_the_share_is_wrong_and_each_point_keeps_its_number_of_patches(sizes, share, seed):
    point = np.random.default_rng(1).permutation(np.repeat(np.arange(len(sizes)), sizes))
    rows = np.flatnonzero(point % 4 != 0)
    before = point.copy()
    k = round(share * len(rows))
    try:
        changed = with_wrong_labels(point, rows, share, seed)
    except ValueError as error:
        assert "they can't all get the label of another point" in str(error)
        assert k < 10  # so few that half of them may show one point
        return
    assert np.array_equal(point, before)
    assert np.count_nonzero(changed != point) == k
    held_out = np.setdiff1d(np.arange(len(point)), rows)
    assert np.array_equal(changed[held_out], point[held_out])
    assert np.array_equal(np.bincount(changed), np.bincount(point))
    assert np.array_equal(changed, with_wrong_labels(point, rows, share, seed))


def test_every_row_is_wrong_as_often_and_every_label_is_given_as_often():
    point = np.repeat(np.arange(30), 3)
    rows, draws = np.arange(90), 4000
    wrong, given_to_first = np.zeros(90), np.zeros(30)
    for seed in range(draws):
        changed = with_wrong_labels(point, rows, 0.1, seed)
        wrong += changed != point
        given_to_first[changed[0]] += changed[0] != 0
    expected = draws * 0.1
    assert np.abs(wrong - expected).max() < 4.5 * np.sqrt(expected * 0.9)
    assert given_to_first[0] == 0
    each = expected / 29
    assert np.abs(given_to_first[1:] - each).max() < 4.5 * np.sqrt(each)


def test_another_seed_draws_other_rows_and_none_changes_nothing():
    point = np.repeat(np.arange(100), 2)
    one, other = (with_wrong_labels(point, np.arange(200), 0.05, seed) for seed in (0, 1))
    assert np.count_nonzero(one != point) == np.count_nonzero(other != point) == 10
    assert not np.array_equal(one, other)
    assert with_wrong_labels(point, np.arange(200), 0.0, 0) is point


def test_a_label_that_most_chosen_rows_have_is_refused():
    point = np.repeat([0, 1], [95, 5])
    with pytest.raises(ValueError, match=r"50 of 100 patches, and .* of them show one point"):
        with_wrong_labels(point, np.arange(100), 0.5, 0)


def prepared(**settings):
    dataset, patches = small_training.dataset()
    wanted = recipe.checked(small_training.TABLE | settings, "a test")
    cpu = torch.device("cpu")
    return prepare(wanted, dataset, lambda side: patches, device=cpu, precision=torch.float32)


def test_a_recipe_trains_on_wrong_labels_and_validates_on_true_ones():
    right, wrong = prepared(), prepared(wrong_labels=0.2)
    point = right.dataset.point
    pairs = [run.sampler(0) for run in (right, wrong)]
    same = [point[one.rows[:16]] == point[one.rows[16:]] for one in pairs]
    assert same[0].all() and not same[1].all()
    assert np.array_equal(right.split.a, wrong.split.a)
    assert (point[wrong.split.a] == point[wrong.split.b]).all()


def test_the_share_decides_the_weights_unless_it_is_zero():
    older = recipe.checked(small_training.TABLE, "a test")
    zero = recipe.checked(small_training.TABLE | {"wrong_labels": 0.0}, "a test")
    some = recipe.checked(small_training.TABLE | {"wrong_labels": 0.05}, "a test")
    assert "wrong_labels" not in recipe.identity(older)
    assert recipe.identity(older) == recipe.identity(zero) != recipe.identity(some)
    assert recipe.differences(older, some) == {"wrong_labels": (0.0, 0.05)}
