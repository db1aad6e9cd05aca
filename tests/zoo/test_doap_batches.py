"""DOAP's batches: points whole, two sequences at a time, and what is refused."""

import numpy as np
import pytest

from zoo.doap import DOAP
from zoo.doap_batches import sequences, two_sequences, whole_groups
from zoo.training.groups import Groups


def groups(sizes, image=None):
    """Points of these sizes; their rows are shuffled, and other rows stand between them."""
    point = np.repeat(np.arange(len(sizes)), sizes)
    order = np.random.default_rng(0).permutation(len(point))
    image = np.zeros(len(point), int) if image is None else np.asarray(image)
    return Groups.of(point[order], image[order])


def strips(*lengths, views=4):
    """Sequences of so many points, each seen in every one of the sequence's own images."""
    sizes = np.full(sum(lengths), views)
    of = np.repeat(np.arange(len(lengths)), lengths)
    image = (views * of[:, None] + np.arange(views)).ravel()
    return groups(sizes, image)


UNEVEN = groups(np.random.default_rng(1).integers(2, 6, 200))


@pytest.mark.parametrize("step", range(20))
@pytest.mark.parametrize("in_turn", [False, True])
def test_a_batch_is_whole_points_and_nearly_full(step, in_turn):
    batch = whole_groups(UNEVEN, 64, 0, in_turn=in_turn)(step)
    assert 64 - UNEVEN.size.max() < len(batch) <= 64
    drawn = list(dict.fromkeys(batch.point.tolist()))
    assert batch.rows.tolist() == [row for p in drawn for row in UNEVEN.rows(p)]
    assert batch.point.tolist() == [p for p in drawn for _ in UNEVEN.rows(p)]


def test_every_point_is_drawn_equally_often():
    draw = whole_groups(UNEVEN, 64, 0)
    seen = np.zeros(len(UNEVEN))
    for step in range(600):
        np.add.at(seen, np.unique(draw(step).point), 1)
    assert seen.min() > 0.6 * seen.mean() and seen.max() < 1.4 * seen.mean()


def test_in_turn_the_kth_batch_of_an_epoch_starts_with_the_kth_point():
    draw = whole_groups(UNEVEN, 64, 0, in_turn=True)
    assert [draw(step).point[0] for step in range(201)] == [*range(200), 0]


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_a_share_of_the_patches_is_of_points_that_few_images_show(share):
    found = strips(*[40] * 20)
    draw = whole_groups(found, 64, 0, images=1, share=share)
    for step in range(20):
        batch = draw(step)
        assert len(batch) == 64
        sequence = batch.point[::4] // 40
        assert sorted(batch.rows) == sorted(row for p in batch.point[::4] for row in found.rows(p))
        assert np.bincount(sequence).max() >= 16 * share
    assert len({draw(step).point[0] // 40 for step in range(20)}) > 5


def test_points_of_few_images_are_whole_and_fill_the_batch():
    rng = np.random.default_rng(2)
    uneven = groups(UNEVEN.size, rng.integers(0, 9, UNEVEN.size.sum()))
    for step in range(20):
        batch = whole_groups(uneven, 64, 0, images=3, share=1.0)(step)
        assert 64 - uneven.size.max() < len(batch) <= 64
        assert len(batch) == sum(len(uneven.rows(p)) for p in set(batch.point.tolist()))


def test_mined_labels_and_few_images_do_not_go_together():
    with pytest.raises(ValueError, match="leave images out"):
        DOAP(patches=64, bins=25, distractors="mined", images=3)


def test_a_training_set_as_large_as_the_batch_is_taken_whole():
    every = groups([3] * 10)
    assert sorted(whole_groups(every, 30, 0)(5).rows) == list(range(30))


@pytest.mark.parametrize("make", [whole_groups, two_sequences])
def test_the_seed_and_the_step_decide_all(make):
    found = strips(12, 15, 20)
    one, same, other = make(found, 64, 0), make(found, 64, 0), make(found, 64, 1)
    list(map(one, range(5)))  # what was drawn before is of no matter
    for step in (0, 7, 1000):
        assert np.array_equal(one(step).rows, same(step).rows)
    assert any(not np.array_equal(one(step).rows, other(step).rows) for step in range(4))
    assert not np.array_equal(one(0).rows, one(1).rows)


@pytest.mark.parametrize(
    ("sizes", "patches", "told"),
    [
        ([2, 1, 3], 6, r"1 of 3 points have one patch.*row 1 of"),
        ([2, 9, 3], 8, r"8 patches, but one point has 9 \(row \d+ shows it\)"),
        ([2, 2, 2], 7, "7 patches, but the training set has 6"),
    ],
)
def test_what_can_give_no_such_batch_is_refused_at_once(sizes, patches, told):
    with pytest.raises(ValueError, match=told):
        whole_groups(groups(sizes), patches, 0)


def test_images_with_a_point_in_common_are_of_one_sequence():
    # Points 0, 1, 2 are seen in images 0-1, 1-2, 3-4; the fourth in 4-5.
    found = sequences(groups([2, 2, 2, 2], [0, 1, 1, 2, 3, 4, 4, 5]))
    assert found[0] == found[1] != found[2] == found[3]
    assert sequences(strips(3, 1, 2)).tolist() == [0, 0, 0, 1, 2, 2]


@pytest.mark.parametrize("step", range(12))
def test_a_batch_has_as_many_points_of_each_of_two_sequences(step):
    found = strips(12, 15, 20, 9)
    batch = two_sequences(found, 70, 0)(step)
    of, count = np.unique(sequences(found)[batch.point], return_counts=True)
    assert len(of) == 2 and count.tolist() == [32, 32]  # eight points each, of four patches
    assert (np.unique(batch.point, return_counts=True)[1] == 4).all()


def test_an_epoch_is_all_pairs_of_sequences_in_an_order_of_its_own():
    found = strips(8, 8, 8, 8, 8)
    draw, of = two_sequences(found, 32, 0), sequences(found)
    pairs = [tuple(np.unique(of[draw(step).point])) for step in range(20)]
    assert len(set(pairs[:10])) == len(set(pairs[10:])) == 10
    assert pairs[:10] != pairs[10:]


@pytest.mark.parametrize(
    ("found", "patches", "told"),
    [
        (strips(20), 32, "has 1 of them"),
        (strips(20, 3), 32, r"4 points of each.*the smallest with 3 points \(row \d+ shows one\)"),
        (strips(20, 20), 6, "0 points of each"),
        (strips(20, 20), 3, "3 patches, but one point has 4"),
    ],
)
def test_sequences_that_can_give_no_such_batch_are_refused_at_once(found, patches, told):
    with pytest.raises(ValueError, match=told):
        two_sequences(found, patches, 0)
