"""The laws of each wrapper, on vectors of patches and on vectors that were made up."""

import numpy as np
import pytest
from fitted import fitted
from toy import toy_descriptor

import harness
from harness.contracts import check_descriptor
from harness.distances import ANGLE, HAMMING, L2

RNG = np.random.default_rng(0)
PATCHES = RNG.integers(0, 256, (40, 32, 32), dtype=np.uint8)
PATCHES[3] = 128
ROWS = np.arange(len(PATCHES))


def model_of(vectors, distance=L2, dim=None):
    """A descriptor that gives these vectors, whatever the patches are."""
    return harness.Descriptor(
        "made-up", lambda patches: vectors[: len(patches)].copy(), distance, dim or vectors.shape[1]
    )


def wrapped(vectors, wrappers, distance=L2, dim=None):
    made = harness.wrap(model_of(vectors, distance, dim), wrappers)
    return made.describe(np.zeros((len(vectors), 8, 8), np.uint8))


NUMBERS = RNG.normal(size=(30, 12)).astype(np.float32)
NUMBERS[4] = 0
HALVES = (lambda p: p), (lambda p: p[:, 8:24, 8:24])


def loaded(name):
    return harness.load_model(name, device="cpu")


# ---- every wrapper


WRAPPED = [
    "rootsift|signs", "sift|root", "sift|unit", "sift|float16", "sift|unit|int8",
    "sift|central-surround", "sift|domain-size(0.7,1)", "sift|dihedral-mean", "sift|concat(pixels)",
    "brief|central-surround", "brief|concat(brief)",
]  # fmt: skip


@pytest.mark.parametrize("name", WRAPPED)
def test_a_wrapped_model_keeps_every_law(name):
    laws = check_descriptor(loaded(name))
    assert not [f"{law.name}: {law.detail}" for law in laws if not law.passed]


@pytest.mark.parametrize(
    ("base", "wrapper"), [("pixels", "pcapl"), ("sift", "thresholds"), ("sift", "int8")]
)
def test_a_model_with_learned_parameters_keeps_every_law(base, wrapper, tmp_path):
    many = RNG.integers(0, 256, (400, 16, 16), dtype=np.uint8)
    made = fitted(loaded(base), wrapper, tmp_path / "own", many)
    laws = check_descriptor(made)
    assert not [f"{law.name}: {law.detail}" for law in laws if not law.passed]


@pytest.mark.parametrize(
    "wrapper", ["root", "unit", "signs", "int8", "float16", "dihedral-mean", "domain-size(0.5,1)"]
)
def test_what_takes_numbers_refuses_bits(wrapper):
    with pytest.raises(ValueError, match="those of brief are compared by hamming"):
        loaded(f"brief|{wrapper}")


# ---- norms


def test_root_of_sift_is_rootsift():
    assert np.array_equal(
        loaded("sift|root").describe(PATCHES), loaded("rootsift").describe(PATCHES)
    )


def test_root_keeps_signs_and_makes_unit_length():
    came = wrapped(NUMBERS, "root")
    assert np.array_equal(np.sign(came), np.sign(NUMBERS))
    shares = np.abs(NUMBERS) / np.abs(NUMBERS).sum(axis=1, keepdims=True).clip(1e-30)
    np.testing.assert_allclose(came**2, shares, atol=1e-7)
    assert np.array_equal(wrapped(-NUMBERS, "root"), -came)


def test_unit_scales_each_row_and_leaves_zeros():
    came = wrapped(NUMBERS, "unit")
    length = np.linalg.norm(came, axis=1)
    assert length[4] == 0
    np.testing.assert_allclose(np.delete(length, 4), 1, atol=1e-6)
    np.testing.assert_allclose(came * np.linalg.norm(NUMBERS, axis=1)[:, None], NUMBERS, atol=1e-6)


def test_angles_stay_angles_of_unit_vectors():
    units = wrapped(np.delete(NUMBERS, 4, axis=0), "unit")
    made = harness.wrap(model_of(units, ANGLE), "root|float16")
    assert made.distance is ANGLE
    length = np.linalg.norm(made.describe(np.zeros((29, 8, 8), np.uint8)), axis=1)
    np.testing.assert_allclose(length, 1, atol=1e-3)
    assert harness.wrap(model_of(units, ANGLE), "int8").distance is L2


# ---- bits


@pytest.mark.parametrize("dim", [8, 12, 3])
def test_signs_are_bits_of_rows(dim):
    vectors = NUMBERS[:, :dim]
    came = wrapped(vectors, "signs")
    assert (came.dtype, came.shape) == (np.uint8, (30, -(-dim // 8)))
    for bits, row in zip(np.unpackbits(came, axis=1), vectors, strict=True):
        assert [*bits[:dim]] == [int(number >= 0) for number in row]
        assert not bits[dim:].any()
    a, b = np.arange(29), np.arange(1, 30)
    apart = ((vectors[a] >= 0) != (vectors[b] >= 0)).sum(axis=1)
    assert np.array_equal(HAMMING.paired(came, a, b), apart)


def test_thresholds_are_medians_of_the_training_vectors(tmp_path):
    base = loaded("sift")
    made = fitted(base, "thresholds", tmp_path / "own", PATCHES)
    vectors = base.describe(PATCHES)
    bits = np.unpackbits(made.describe(PATCHES), axis=1)
    for column, numbers in zip(bits.T, vectors.T, strict=True):
        assert [*column] == [int(number >= np.sort(numbers)[19:21].mean()) for number in numbers]


# ---- whitening


def test_pcapl_is_that_of_hpatches_where_the_mean_of_a_strip_is_that_of_training(tmp_path):
    from hpatches_files import write_set

    from harness import Descriptions
    from protocols.hpatches.reader import open_set
    from protocols.hpatches.whitening import whiten

    splits = {"a": {"name": "a", "test": ["v_one"], "train": ["i_one", "v_two"]}}
    lengths = {"i_one": 40, "v_one": 50, "v_two": 30}
    opened = open_set(write_set(tmp_path / "set", lengths, splits=splits), "a", training=True)
    rng = np.random.default_rng(0)
    mixed = rng.normal(size=(len(opened.dataset), 12)) @ rng.normal(size=(12, 12))
    start = 0
    for block in opened.dataset.blocks:  # the official code centres each strip by itself
        strip = mixed[start : start + block.size]
        strip -= strip.mean(axis=0)
        start += block.size
    vectors = (mixed * 2.0**-10).astype(np.float32)
    official = whiten(Descriptions(opened.dataset, vectors, L2), opened).vectors

    train = vectors[opened.train_rows()]
    made = fitted(
        model_of(train), "pcapl", tmp_path / "own", np.zeros((len(train), 8, 8), np.uint8)
    )
    everything = harness.wrap(model_of(vectors), f"pcapl({tmp_path / 'own'})")
    came = everything.describe(np.zeros((len(vectors), 8, 8), np.uint8))
    np.testing.assert_allclose(came**2, official**2, atol=1e-6)
    assert np.mean(np.abs(came - official) < 1e-5) > 0.99  # a square root of a number near 0
    assert made.dim == 12


def test_whitened_training_vectors_have_equal_variances_where_they_were_large(tmp_path):
    rng = np.random.default_rng(1)
    vectors = (rng.normal(size=(500, 6)) @ rng.normal(size=(6, 6)) + 5).astype(np.float32)
    harness.fit(model_of(vectors), "pcapl", [blank(500)], tmp_path / "own", kept=0.0, power=1.0)
    from harness.parameters import read

    found = read(tmp_path / "own")
    turned = (vectors - found.array("mean", 6)) @ found.array("turn", 6, 6)
    np.testing.assert_allclose(turned.T @ turned / 500, np.eye(6), atol=1e-5)
    assert found.about.options == {"kept": 0.0, "power": 1.0}


def blank(n):
    from fitted import of_patches

    return of_patches(np.zeros((n, 8, 8), np.uint8))


# ---- rounding


def test_int8_without_a_file_is_127_times_the_number():
    units = wrapped(NUMBERS, "unit")
    came = wrapped(NUMBERS, "unit|int8")
    assert np.array_equal(came, came.astype(np.int8))
    assert np.abs(came - 127 * units).max() <= 0.5 + 1e-4
    integers = came.astype(np.int8).astype(np.int64)
    a, b = np.arange(29), np.arange(1, 30)
    exact = np.square(integers[a] - integers[b]).sum(axis=1)
    assert np.array_equal(L2.paired(came, a, b), exact)


def test_int8_without_a_file_refuses_numbers_beyond_1():
    with pytest.raises(ValueError, match=r"takes numbers from -1 to 1; .* learn a scale"):
        wrapped(2 * np.eye(3, dtype=np.float32), "int8")


@pytest.mark.parametrize("cut", [0.0, 0.1])
def test_a_learned_scale_cuts_off_a_share_of_the_numbers(tmp_path, cut):
    base = loaded("sift")
    many = RNG.integers(0, 256, (100, 32, 32), dtype=np.uint8)
    made = fitted(base, "int8", tmp_path / "own", many, cut=cut)
    vectors, came = base.describe(many), made.describe(many)
    assert came.max() == 127
    beyond = 127 / made_scale(tmp_path / "own")
    assert (np.abs(vectors) > beyond).mean() <= cut + 1e-9
    assert (np.abs(vectors) >= beyond * 0.9).mean() > cut / 2
    kept = np.abs(vectors) <= beyond
    assert np.abs(came / 127 * beyond - vectors)[kept].max() <= beyond / 127 / 2 + 1e-3


def made_scale(file):
    from harness.parameters import read

    return float(read(file).array("scale"))


def test_float16_rounds_by_at_most_half_a_unit_and_refuses_what_it_can_not_hold():
    came = wrapped(NUMBERS, "float16")
    np.testing.assert_allclose(came, NUMBERS, rtol=2**-11)
    assert np.array_equal(came, came.astype(np.float16))
    with pytest.raises(ValueError, match=r"ends at 65504; 1e\+05 came"):
        wrapped(np.full((2, 2), 1e5, np.float32), "float16")


# ---- two models, two parts of a patch


def test_squared_distances_of_joined_vectors_add_up():
    vectors = [loaded(name).describe(PATCHES) for name in ("sift", "pixels", "sift|concat(pixels)")]
    a, b = ROWS[:-1], ROWS[1:]
    first, second, both = (L2.paired(each, a, b) for each in vectors)
    np.testing.assert_allclose(both, first + second, rtol=1e-12)


def test_joined_bits_have_no_padding_between_them():
    twelve = wrapped(NUMBERS, "signs")
    base = model_of(twelve, HAMMING, 12)
    came = harness.wrap(base, "central-surround").describe(np.zeros((30, 8, 8), np.uint8))
    bits = np.unpackbits(twelve, axis=1)[:, :12]
    assert np.array_equal(np.unpackbits(came, axis=1), np.concatenate([bits, bits], axis=1))


def test_numbers_and_bits_are_not_joined():
    with pytest.raises(ValueError, match="those of brief are compared by hamming, those of sift"):
        loaded("brief|concat(sift)")


@pytest.mark.parametrize(
    ("side", "first", "last"), [(64, 16, 48), (65, 16, 49), (32, 8, 24), (42, 10, 32)]
)
def test_the_central_half_has_equal_margins_of_whole_pixels(side, first, last):
    seen = []
    base = toy_descriptor(
        describe=lambda patches: seen.append(patches) or np.zeros((len(patches), 8), np.float32)
    )
    patches = RNG.integers(0, 256, (2, side, side), dtype=np.uint8)
    harness.wrap(base, "central-surround").describe(patches)
    whole, half = seen
    assert np.array_equal(whole, patches)
    assert np.array_equal(half, patches[:, first:last, first:last])


def test_central_surround_is_the_two_towers_of_l2net_with_one_set_of_weights():
    import torch

    from zoo.backbones import Deployed
    from zoo.l2net import CentralSurround

    torch.manual_seed(0)
    both = CentralSurround()
    both.surround.mean_image.fill_(100)
    both.central.load_state_dict(both.surround.state_dict())

    def by(network):
        return lambda patches: Deployed(network)(torch.from_numpy(patches)).detach().numpy()

    tower = harness.Descriptor("tower", by(both.surround), L2, 128)
    patches = RNG.integers(0, 256, (6, 64, 64), dtype=np.uint8)
    came = harness.wrap(tower, "central-surround|unit").describe(patches)
    np.testing.assert_allclose(came, by(both)(patches), atol=1e-6)


def test_domain_size_is_the_unit_mean_over_central_parts():
    base = loaded("sift")
    came = loaded("sift|domain-size(0.5,0.75,1)").describe(PATCHES)
    parts = [
        base.describe(np.ascontiguousarray(PATCHES[:, m : 32 - m, m : 32 - m])) for m in (8, 4, 0)
    ]
    mean = sum(part.astype(float) for part in parts) / 3
    norm = np.linalg.norm(mean, axis=1, keepdims=True)
    np.testing.assert_allclose(came, mean / np.where(norm == 0, 1, norm), atol=1e-6)


@pytest.mark.parametrize("shares", ["1", "0.5,0.5", "0.5,1.1", "0,1"])
def test_domain_size_takes_two_or_more_different_shares(shares):
    with pytest.raises(ValueError, match=r"domain-size"):
        loaded(f"sift|domain-size({shares})")


# ---- symmetries


SYMMETRIES = [
    lambda p, k=k, mirrored=mirrored: np.ascontiguousarray(
        np.rot90(p[:, :, ::-1] if mirrored else p, k, axes=(1, 2))
    )
    for k in range(4)
    for mirrored in (False, True)
]


@pytest.mark.parametrize("turned", SYMMETRIES)
def test_no_symmetry_of_the_patch_changes_a_mean_over_all(turned):
    made = loaded("sift|dihedral-mean")
    np.testing.assert_allclose(made.describe(turned(PATCHES)), made.describe(PATCHES), atol=1e-4)


def test_the_mean_is_over_eight_different_symmetries():
    base = loaded("pixels")
    views = [base.describe(turned(PATCHES)).astype(float) for turned in SYMMETRIES]
    came = loaded("pixels|dihedral-mean").describe(PATCHES)
    np.testing.assert_allclose(came, sum(views) / 8, atol=1e-7)
