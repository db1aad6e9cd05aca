"""Label mining: HOG against its definition, clusters, and who is whose distractor."""

import math

import numpy as np
import pytest
import torch
from vectors import unit_rows

from zoo import doap_mining
from zoo.doap import DOAP
from zoo.doap_mining import appearance, clusters, hog, mine
from zoo.training.groups import Groups


def grey(n, seed=0):
    rng = np.random.default_rng(seed)
    coarse = torch.from_numpy(rng.random((n, 1, 12, 12)))
    large = torch.nn.functional.interpolate(coarse, (64, 64), mode="bicubic")
    return large[:, 0].clamp(0, 1).float()


def hog_in_loops(image):
    """P. Felzenszwalb et al. 2010 and VLFeat's manual, pixel after pixel and cell after cell."""
    h = np.zeros((8, 8, 18))
    for y in range(1, 63):
        for x in range(1, 63):
            dx, dy = image[y, x + 1] - image[y, x - 1], image[y + 1, x] - image[y - 1, x]
            scores = [
                dx * math.cos(o * math.pi / 9) + dy * math.sin(o * math.pi / 9) for o in range(18)
            ]
            o = int(np.argmax(np.round(scores, 9)))  # the first of two that tie
            cx, cy = (x + 0.5) / 8 - 0.5, (y + 0.5) / 8 - 0.5
            for i in (math.floor(cy), math.floor(cy) + 1):
                for j in (math.floor(cx), math.floor(cx) + 1):
                    if 0 <= i < 8 and 0 <= j < 8:
                        share = (1 - abs(cy - i)) * (1 - abs(cx - j))
                        h[i, j, o] += math.hypot(dx, dy) * share
    undirected = h[:, :, :9] + h[:, :, 9:]
    energy = (undirected**2).sum(axis=2)
    out = np.zeros((8, 8, 31))
    for i in range(8):
        for j in range(8):
            for corner, (di, dj) in enumerate([(-1, -1), (-1, 1), (1, -1), (1, 1)]):
                up, left = min(max(i + di, 0), 7), min(max(j + dj, 0), 7)
                block = energy[i, j] + energy[up, j] + energy[i, left] + energy[up, left]
                scale = 1 / math.sqrt(block + 1e-4)
                out[i, j, :18] += np.minimum(h[i, j] * scale, 0.2) / 2
                cut = np.minimum(undirected[i, j] * scale, 0.2)
                out[i, j, 18:27] += cut / 2
                out[i, j, 27 + corner] = cut.sum() / math.sqrt(18)
    return out


def test_hog_is_what_its_definition_says():
    some = grey(2).double()  # in float32, rounding decides between directions now and then
    for image, found in zip(some.numpy(), hog(some).numpy(), strict=True):
        np.testing.assert_allclose(found, hog_in_loops(image), atol=1e-9)


def test_hog_of_a_flat_patch_is_nothing():
    assert hog(torch.full((1, 64, 64), 0.5)).abs().max() == 0


def test_a_gradient_to_the_right_falls_into_the_first_direction():
    ramp = torch.linspace(0, 1, 64).expand(1, 64, 64)
    middle = hog(ramp)[0, 4, 4]
    assert middle[:18].nonzero().flatten().tolist() == [0]
    assert hog(ramp.flip(2))[0, 4, 4, :18].nonzero().flatten().tolist() == [9]
    assert hog(ramp.transpose(1, 2))[0, 4, 4, :18].nonzero().flatten().tolist() == [4]


def test_an_appearance_has_the_papers_2240_numbers_and_keeps_brightness():
    light = np.full((1, 64, 64), 200, np.uint8)
    found = appearance(light)
    assert found.shape == (1, 2240) and found.dtype == np.float32
    np.testing.assert_allclose(found[0, -256:], 200 / 255, rtol=1e-6)


def blobs(n=300, k=6, seed=0):
    """Rows about k far centres, and which."""
    rng = np.random.default_rng(seed)
    which = rng.integers(k, size=n)
    centre = 20 * unit_rows(k, 12, seed).numpy()
    return (centre[which] + 0.1 * rng.normal(size=(n, 12))).astype(np.float32), which


def test_clusters_hold_what_is_near():
    rows, which = blobs()
    label, far = clusters(rows)
    for one in np.unique(label):
        assert len(set(which[label == one])) == 1
    assert len(far) == label.max() + 1 <= 100
    assert (far == far.T).all() and not far.diagonal().any()


def test_a_fifth_of_the_pairs_of_clusters_are_too_alike():
    rows = np.random.default_rng(0).normal(size=(500, 12)).astype(np.float32)
    _, far = clusters(rows)
    pairs = far[np.triu_indices(len(far), 1)]
    assert 1 - pairs.mean() == pytest.approx(0.2, abs=0.01)


def test_the_same_patches_give_the_same_clusters():
    rows, _ = blobs(seed=1)
    for one, other in zip(clusters(rows), clusters(rows.copy()), strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("n", [1, 2, 7])
def test_few_or_equal_patches_are_clustered(n):
    label, far = clusters(np.ones((n, 5), np.float32))
    assert label.tolist() == [0] * n and not far.any()
    label, far = clusters(np.eye(n, 5, dtype=np.float32))
    assert len(far) == min(n, len(np.unique(label)))


@pytest.fixture
def training_set():
    """Three sequences of 20 points; half of each is bright, half dark; rows in any order."""
    point = np.repeat(np.arange(60), 4)
    sequence = point // 20
    bright = point % 2
    rng = np.random.default_rng(0)
    order = rng.permutation(len(point))
    level = np.where(bright, 180, 40)[order, None, None]
    patches = (level + rng.integers(0, 40, (len(point), 64, 64))).astype(np.uint8)
    image = 4 * sequence + np.tile(np.arange(4), 60)
    return patches, Groups.of(point[order], image[order]), point[order]


def relation(method, groups, patches, point, batch):
    """What the loss is told to ignore, of a batch."""
    method.study(lambda side: patches, groups)
    draw = method.sampler(groups, 0)
    chosen = draw(batch)
    rows, of = torch.from_numpy(chosen.rows), torch.from_numpy(chosen.point)
    return method._ignored(of, rows), chosen, point[chosen.rows]


def test_only_other_sequences_count_without_mining(training_set):
    patches, groups, point = training_set
    method = DOAP(patches=48, bins=10, distractors="other-sequences")
    ignored, chosen, of = relation(method, groups, patches, point, 0)
    same_sequence = of[:, None] // 20 == of // 20
    assert np.array_equal(ignored.numpy(), same_sequence & (of[:, None] != of))
    assert len(chosen) == 48


def test_mined_distractors_look_different_and_are_of_the_same_sequence(training_set, monkeypatch):
    monkeypatch.setattr(doap_mining, "CLUSTERS", 4)
    patches, groups, point = training_set
    method = DOAP(patches=48, bins=10, distractors="mined")
    ignored, _, of = relation(method, groups, patches, point, 0)
    sequence, bright = of // 20, of % 2
    assert len(np.unique(sequence)) == 2
    within = sequence[:, None] == sequence
    other = of[:, None] != of
    assert not (ignored.numpy() & ~(within & other)).any()  # matches and other sequences count
    counted = within & other & ~ignored.numpy()
    assert counted.any() and ignored.any()
    unlike = bright[:, None] != bright
    assert counted[unlike & within].mean() > 0.9  # dark and bright are told apart ...
    assert counted[unlike & within].mean() > counted[~unlike & within & other].mean()
    assert np.array_equal(ignored.numpy(), ignored.numpy().T)


def test_rows_that_are_not_trained_on_are_not_looked_at(training_set):
    patches, groups, _ = training_set
    some = groups.order[:80]  # one sequence
    mined = mine(lambda side: patches, some, np.zeros(80, int))
    assert (mined.cluster[some] >= 0).all()
    assert (np.delete(mined.cluster.numpy(), some) == -1).all()
