import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from zoo.l2net import progressive
from zoo.training.groups import Groups
from zoo.training.pairs import every_point, random_pairs, strangers

RNG = np.random.default_rng(0)


def made_groups(points=60, images=5, most=4):
    """Points with 2 to `most` rows, in no order; image i of row i by chance."""
    point = np.repeat(np.arange(points) * 7, RNG.integers(2, most + 1, points))
    RNG.shuffle(point)
    return Groups.of(point, RNG.integers(0, images, len(point))), point


GROUPS, POINT = made_groups()
SAMPLERS = {
    "random": lambda groups, seed: random_pairs(groups, 16, seed),
    "few images": lambda groups, seed: random_pairs(groups, 16, seed, images=2),
    "every point": lambda groups, seed: every_point(groups, 16, seed),
    "progressive": lambda groups, seed: progressive(groups, 8, 8, seed),
}
every = pytest.mark.parametrize("make", SAMPLERS.values(), ids=SAMPLERS)


@every
def test_a_batch_is_n_different_points_and_two_different_patches_of_each(make):
    sampler = make(GROUPS, 0)
    for step in range(50):
        batch = sampler(step)
        a, p = np.split(batch.rows, 2)
        assert len(a) == 16
        assert (POINT[a] == POINT[p]).all()
        assert (a != p).all()
        assert len(np.unique(POINT[a])) == 16
        np.testing.assert_array_equal(*np.split(batch.point, 2))
        _, ours = np.unique(batch.point, return_inverse=True)
        _, truth = np.unique(POINT[batch.rows], return_inverse=True)
        np.testing.assert_array_equal(ours[:, None] == ours, truth[:, None] == truth)


@every
def test_seed_and_step_decide_the_batch_and_nothing_else(make):
    one, same, other = make(GROUPS, 3), make(GROUPS, 3), make(GROUPS, 4)
    backwards = [one(step) for step in range(19, -1, -1)][::-1]
    forwards = [same(step) for step in range(20)]
    for a, b in zip(backwards, forwards, strict=True):
        np.testing.assert_array_equal(a.rows, b.rows)
    assert len({tuple(batch.rows) for batch in forwards}) == 20
    assert any((other(step).rows != forwards[step].rows).any() for step in range(20))


@every
def test_every_patch_of_every_point_comes_up_on_either_side(make):
    sampler = make(GROUPS, 0)
    a, p = np.split(np.stack([sampler(step).rows for step in range(400)]), 2, axis=1)
    assert set(a.ravel()) == set(p.ravel()) == set(range(len(POINT)))


@every
def test_more_points_than_there_are_is_refused_at_once(make):
    groups, _ = made_groups(points=15)
    with pytest.raises(ValueError, match=r"a step needs 16 points, but .* has 15"):
        make(groups, 0)


@every
def test_a_point_of_one_patch_is_refused_by_name(make):
    point = np.r_[POINT, 1]
    groups = Groups.of(point, np.zeros(len(point), int))
    with pytest.raises(ValueError, match=f"1 of 61 points have one patch, .* row {len(POINT)} "):
        make(groups, 0)


@every
def test_as_many_points_as_there_are_is_enough(make):
    groups, _ = made_groups(points=16)
    assert len(np.unique(make(groups, 0)(5).point)) == 16


def test_pairs_are_drawn_evenly():
    groups = Groups.of(np.repeat(np.arange(2), 3), np.zeros(6, int))
    sampler = random_pairs(groups, 2, 0)
    drawn = np.stack([sampler(step).rows for step in range(1200)])  # a a p p
    both = np.sort(drawn.reshape(-1, 2, 2), axis=1)  # anchor and positive, of two points
    _, count = np.unique(both[:, 0] * 6 + both[:, 1], return_counts=True)
    assert len(count) == 6
    assert count.min() > 320  # of 400 on average


def test_an_epoch_has_every_point_once_but_a_rest_smaller_than_a_batch():
    sampler = every_point(GROUPS, 16, 0)
    for epoch in range(4):
        points = np.concatenate([sampler(3 * epoch + i).point[:16] for i in range(3)])
        assert len(np.unique(points)) == 48
    epochs = [sampler(3 * epoch).point[:16] for epoch in range(100)]
    assert set(np.concatenate(epochs)) == set(range(60))


def test_progressive_sampling_goes_through_all_points_in_one_order():
    sampler = progressive(GROUPS, 7, 3, 0)
    passes = np.concatenate([sampler(step).point[:7] for step in range(60)]).reshape(7, 60)
    assert set(passes[0]) == set(range(60)) and (passes == passes[0]).all()
    assert (np.diff(passes[0]) == 1).mean() < 0.2  # not that of the files


def test_the_rest_of_progressive_sampling_is_of_few_images_where_asked():
    groups, _ = made_groups(points=500, images=20)
    sampler = progressive(groups, 40, 40, 0, images=2, share=0.5)
    for step in range(50):
        batch = sampler(step)
        assert len(set(batch.point[:80])) == 80
        near = groups.image[batch.rows[40:54]]  # at most six of the twenty are of the first half
        assert len(np.unique(near)) <= 2, step


def test_the_rest_of_progressive_sampling_is_drawn_evenly():
    sampler = progressive(GROUPS, 1, 20, 0)
    first = sampler(0).point[0]
    count = np.bincount(np.concatenate([sampler(60 * i).point[1:21] for i in range(800)]))
    assert count[first] == 0  # the one taken in order
    assert np.delete(count, first).min() > 210  # of 271 on average
    assert count.max() < 340


def test_half_of_the_anchors_are_from_few_images():
    groups, _ = made_groups(points=500, images=20)
    sampler = random_pairs(groups, 40, 0, images=2)
    seen = set()
    for step in range(150):
        near = groups.image[sampler(step).rows[:20]]
        assert len(np.unique(near)) <= 2
        seen |= set(near)
    assert seen == set(range(20))


def uneven_images():
    """Points of two patches, of 40 images that show 10 of them each and of one that shows 400."""
    image = np.repeat(np.concatenate([np.arange(400) // 10, np.full(400, 40)]), 2)
    return Groups.of(np.repeat(np.arange(800), 2), image)


def test_few_images_give_equal_portions_or_all_that_they_show():
    sampler = random_pairs(uneven_images(), 60, 0, images=3, share=1.0)
    portions = []
    for step in range(50):
        count = np.bincount(np.minimum(sampler(step).point[:60] // 10, 40), minlength=41)
        assert set(count[:40]) <= {0, 10}  # all that a small one shows
        portions.append(count[40])
    assert set(portions) <= {0, 10, 20, 30, 40, 50, 60}  # of 20 each, the last one cut
    assert portions.count(20) > 10 and portions.count(60) < 5


def test_points_of_large_and_small_images_are_drawn_as_often():
    sampler = random_pairs(uneven_images(), 60, 0, images=3, share=1.0)
    count = np.bincount(np.concatenate([sampler(i).point[:60] for i in range(600)]), minlength=800)
    small, large = count[:400].mean(), count[400:].mean()
    assert small + large == 2 * 600 * 60 / 800
    assert 0.75 < small / large < 1.35


def test_a_share_that_rounds_to_none_is_from_anywhere():
    assert len(random_pairs(uneven_images(), 16, 0, images=2, share=0.01)(0)) == 32


def test_the_share_from_few_images_is_as_asked():
    groups, _ = made_groups(points=500, images=20)
    sampler = random_pairs(groups, 40, 0, images=1, share=0.25)
    assert np.ptp(groups.image[sampler(0).rows[:10]]) == 0
    assert np.ptp(groups.image[sampler(0).rows[10:40]]) > 0


def test_images_that_show_too_little_are_joined_by_others():
    groups = Groups.of(np.repeat(np.arange(50), 2), np.repeat(np.arange(50), 2))
    batch = random_pairs(groups, 40, 0, images=2)(0)
    assert len(np.unique(batch.point)) == 40


def test_more_images_than_there_are_is_refused_at_once():
    with pytest.raises(ValueError, match="from 6 images, but the training set has 5"):
        random_pairs(GROUPS, 16, 0, images=6)


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 12), st.integers(0, 2**32), st.integers(0, 2**40))
def test_any_seed_and_step_give_a_batch(n, seed, step):
    assert len(np.unique(random_pairs(GROUPS, n, seed, images=1)(step).point)) == n


@pytest.mark.parametrize("n", [2, 3, 33])
def test_a_stranger_is_the_patch_of_another_pair(n):
    vectors = torch.arange(n)[:, None].float()
    random = torch.Generator().manual_seed(0)
    found = torch.stack([strangers(vectors, random)[:, 0] for _ in range(200)])
    assert (found != vectors[:, 0]).all()
    assert set(found[:, 0].tolist()) == set(range(1, n))
