"""From a data set to what a network takes: resizing, keeping, turning, holding out."""

from collections import Counter

import numpy as np
import pytest
import torch
from scipy import stats
from torch.nn import functional

from harness import Block, Dataset
from zoo.backbones import L2Net, resize, standardise, unit
from zoo.training import held_out
from zoo.training.augment import augmented, turned
from zoo.training.patches import stored

RNG = np.random.default_rng(0)
PATCHES = RNG.integers(0, 256, (10, 64, 64), dtype=np.uint8)


def dataset(reads):
    def read():
        reads.append(1)
        return PATCHES

    block = Block("one", len(PATCHES), "hash", read)
    return Dataset("toy", "", (block,), np.arange(10), np.arange(10))


@pytest.mark.parametrize("source", [8, 20, 31, 32, 33, 41, 51, 64, 65, 127])
@pytest.mark.parametrize("target", [32, 42])
def test_resizing_is_antialiased_linear_interpolation(source, target):
    x = torch.from_numpy(RNG.random((2, 1, source, source), dtype=np.float32))
    twin = functional.interpolate(
        x, size=(target, target), mode="bilinear", antialias=True, align_corners=False
    )
    assert float((resize(x, target) - twin).abs().max()) < 1e-5


def test_flat_and_nearly_flat_patches_give_finite_unit_or_zero_vectors():
    flat = torch.full((3, 1, 32, 32), 255.0)
    flat[1] = 0
    flat[2, 0, 5, 5] = 254
    assert torch.equal(standardise(flat)[:2], torch.zeros(2, 1, 32, 32))
    assert standardise(flat).isfinite().all()
    assert L2Net().eval()(flat).isfinite().all()
    assert unit(torch.zeros(1, 4)).isfinite().all()
    zero = torch.zeros(1, 4, requires_grad=True)
    unit(zero).sum().backward()
    assert zero.grad.isfinite().all()


def test_patches_are_kept_once_and_read_as_networks_resize_them(tmp_path, monkeypatch):
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path))
    reads = []
    kept = stored(dataset(reads), 32)
    again = stored(dataset(reads), 32)
    assert len(reads) == 1 and kept.dtype == np.uint8 and kept.shape == (10, 32, 32)
    np.testing.assert_array_equal(kept, again)
    twin = resize(torch.from_numpy(PATCHES)[:, None].float(), 32)[:, 0].numpy()
    assert np.abs(kept - twin).max() <= 0.5 + 1e-4
    np.testing.assert_array_equal(stored(dataset(reads), 64), PATCHES)


def test_blocks_that_are_read_ahead_keep_their_rows(tmp_path, monkeypatch):
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path))
    monkeypatch.setattr("zoo.training.patches.AHEAD", 4)
    monkeypatch.setattr("zoo.training.patches.TOGETHER", 3)
    parts = np.split(PATCHES, [4, 4, 5])  # one of them is empty
    blocks = tuple(Block(f"{i}", len(p), f"{i}", lambda p=p: p) for i, p in enumerate(parts))
    several = Dataset("toy", "", blocks, np.arange(10), np.arange(10))
    np.testing.assert_array_equal(stored(several, 32), stored(dataset([]), 32))


def test_an_interrupted_reading_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path))

    def stop(done):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stored(dataset([]), 32, stop)
    assert not list((tmp_path / "training").glob("*.npy*"))
    assert len(stored(dataset([]), 32)) == 10


def test_a_quarter_turn_is_counterclockwise_and_exact_to_interpolation():
    x = torch.from_numpy(PATCHES[:2, None, :32, :32].astype(np.float32))
    found = turned(x, torch.tensor([90.0, 180.0]))
    np.testing.assert_allclose(found[0, 0], np.rot90(x[0, 0].numpy()), atol=2e-2)
    np.testing.assert_allclose(found[1, 0], np.rot90(x[1, 0].numpy(), 2), atol=2e-2)


def test_patches_without_an_angle_keep_their_very_values():
    patches, point = torch.from_numpy(PATCHES), torch.arange(10)
    angle = torch.tensor([0.0, 30.0] * 5)
    random = torch.Generator().manual_seed(0)
    x = augmented(patches, point, angle, dihedral=False, random=random)
    assert torch.equal(x[::2, 0], patches[::2].float())
    assert (x[1::2, 0] != patches[1::2]).any(dim=(1, 2)).all()


def test_turns_and_flips_are_the_same_for_all_patches_of_a_point():
    patches = torch.from_numpy(np.repeat(PATCHES[:5], 2, axis=0))
    point = torch.arange(5).repeat_interleave(2)
    kinds = set()
    for seed in range(20):
        random = torch.Generator().manual_seed(seed)
        x = augmented(patches, point, None, dihedral=True, random=random)
        assert torch.equal(x[::2], x[1::2])
        for one, of in zip(x[::2, 0], patches[::2], strict=True):
            turns = [np.rot90(m, k) for m in (of.numpy(), of.numpy().T) for k in range(4)]
            (kind,) = [k for k, turn in enumerate(turns) if (one.numpy() == turn).all()]
            kinds.add(kind)
    assert kinds == set(range(8))


def symmetry_of(x, of):
    """Turns counterclockwise by right angles, and whether the patch was transposed before."""
    turns = {(t, k): np.rot90(of.T if t else of, k) for t in (0, 1) for k in range(4)}
    (kind,) = [kind for kind, turn in turns.items() if (x == turn).all()]
    return kind


def hardnets_way(patch):
    """Chances of what DagnyT/hardnet's loader gives."""
    for one in (patch, patch.T):
        yield 1 / 4, one
        yield 1 / 4, one[:, ::-1]


def tfeats_way(patch):
    """Chances of what vbalnt/tfeat's loader gives."""
    for turns, chance in ((0, 1 / 2), (1, 1 / 6), (2, 1 / 6), (3, 1 / 6)):
        one = np.rot90(patch, turns)
        yield chance / 2, one
        yield chance / 2, np.flipud(one)


@pytest.mark.parametrize(
    ("dihedral", "way", "kinds"), [("hardnet", hardnets_way, 4), ("tfeat", tfeats_way, 8)]
)
def test_symmetries_are_drawn_as_often_as_in_released_code(dihedral, way, kinds):
    n = 6000
    patch = RNG.integers(0, 256, (8, 8), dtype=np.uint8)
    patches = torch.from_numpy(np.repeat(patch[None], n, axis=0))
    random = torch.Generator().manual_seed(0)
    x = augmented(patches, torch.arange(n), None, dihedral=dihedral, random=random)
    seen = Counter(symmetry_of(one, patch) for one in x[:, 0].numpy())
    expected = Counter()
    for chance, one in way(patch):
        expected[symmetry_of(one, patch)] += n * chance
    assert len(expected) == kinds and set(seen) == set(expected)
    p = stats.chisquare([seen[k] for k in expected], list(expected.values())).pvalue
    assert p > 1e-3


def test_true_draws_the_eight_symmetries_from_the_same_random_numbers_as_ever():
    patches = torch.from_numpy(PATCHES[:, :8, :8])
    random, same = (torch.Generator().manual_seed(5) for _ in range(2))
    x = augmented(patches, torch.arange(10), None, dihedral=True, random=random)
    for one, of, kind in zip(
        x[:, 0].numpy(), patches.numpy(), torch.randint(8, (10,), generator=same), strict=True
    ):
        of = of[:, ::-1] if kind & 1 else of
        of = of[::-1] if kind & 2 else of
        assert (one == (of.T if kind & 4 else of)).all()


def test_nothing_is_held_out_on_demand():
    point = np.repeat(np.arange(7), 2)
    split = held_out.split(point, point, 0.0, 0)
    np.testing.assert_array_equal(split.train, np.arange(14))
    assert len(split.a) == len(split.b) == 0


def test_points_are_held_out_by_the_images_that_they_were_found_in():
    point = np.repeat(np.arange(1000), 3)
    image = point // 20
    split = held_out.split(point, image, 0.1, 0)
    assert len(split.a) == 100
    np.testing.assert_array_equal(point[split.a], point[split.b])
    assert (split.a != split.b).all()
    assert not np.isin(image[split.train], image[split.a]).any()
    other = held_out.split(point, image, 0.1, 1)
    assert {*split.a} != {*other.a}


def test_too_few_held_out_points_are_an_error_that_says_what_to_do():
    point = np.repeat(np.arange(100), 2)
    with pytest.raises(ValueError, match=r"leaves 5 points .* --set held_out"):
        held_out.split(point, point, 0.05, 0)
    alone = np.arange(1000)
    with pytest.raises(ValueError, match="leaves 0 points"):
        held_out.split(alone, alone, 0.5, 0)


def test_held_out_error_is_none_for_an_oracle_and_all_for_a_constant():
    from harness.distances import L2

    vectors = np.eye(30, dtype=np.float32)
    assert held_out.fpr95(np.concatenate([vectors, vectors]), L2) == 0
    assert held_out.fpr95(np.ones((60, 3), np.float32), L2) == 1
