"""What all published networks share: resizing, fixed batches, full precision, packed bits."""

from pathlib import Path

import cv2
import numpy as np
import pytest
import torch

from harness import plugins
from harness.data import published_weights, weights
from zoo.exact import coarse_products, exact
from zoo.published.deepdesc import DeepDesc
from zoo.published.describing import describe, interpolate, resize
from zoo.published.geodesc import GeoDesc
from zoo.published.hardnet import HardNet
from zoo.published.hardtfeat import HardTFeat
from zoo.published.hynet import HyNet
from zoo.published.l2net import L2Net
from zoo.published.layers import packed
from zoo.published.sosnet import SOSNet
from zoo.published.tfeat import TFeat
from zoo.published.tnet import TNet


@pytest.mark.parametrize("target", [32, 64])
def test_resizing_is_that_of_opencv_bit_for_bit(target):
    rng = np.random.default_rng(0)
    for side in (*range(1, 100), 128, 200):
        some = rng.integers(0, 256, (4, side, side + 1), dtype=np.uint8)
        some[0] = some[0] // 128 * 255
        wanted = [cv2.resize(patch, (target, target)) for patch in some]
        assert np.array_equal(resize(torch.from_numpy(some), target).numpy(), wanted), side


def test_interpolation_is_that_of_opencv_for_float_patches():
    rng = np.random.default_rng(0)
    for side in (1, 2, 31, 32, 33, 41, 64, 65, 200):
        some = rng.integers(0, 256, (4, side, side + 1), dtype=np.uint8)
        wanted = [cv2.resize(patch.astype(np.float32), (32, 32)) for patch in some]
        found = interpolate(torch.from_numpy(some)).numpy()
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-4, err_msg=str(side))


@pytest.mark.parametrize(
    "network", [TFeat, HardTFeat, HardNet, SOSNet, HyNet, DeepDesc, TNet, L2Net, GeoDesc]
)
def test_no_bit_of_a_row_depends_on_its_batch(network):
    dim = 256 if network is TNet else 128
    patches = np.random.default_rng(0).integers(0, 256, (100, 65, 65), dtype=np.uint8)
    made = network().eval()
    sizes = set()
    made.register_forward_pre_hook(lambda _, inputs: sizes.add(len(inputs[0])))
    alone = [describe(made, patches[i : i + 1], "cpu", dim) for i in range(0, 100, 20)]
    together = describe(made, patches, "cpu", dim)
    assert np.array_equal(together[::20], np.concatenate(alone))
    assert np.array_equal(describe(made, patches[::-1], "cpu", dim)[::-1], together)
    assert sizes == {64}  # some sizes happen to round alike, on some machines


def test_no_number_is_rounded_to_tf32():
    seen, cudnn = [], torch.backends.cudnn
    network = TFeat().eval()
    network.register_forward_pre_hook(lambda *_: seen.append((cudnn.enabled, cudnn.allow_tf32)))
    describe(network, np.zeros((1, 32, 32), np.uint8), "cpu")
    assert seen == [(True, False)]


PARTS = {"conv": torch.backends.cudnn.conv, "rnn": torch.backends.cudnn.rnn}


@pytest.mark.parametrize("alone", PARTS)
@pytest.mark.parametrize("value", ["ieee", "tf32"])
def test_a_flag_of_precision_that_was_set_alone_is_no_trouble(alone, value):
    """PyTorch refuses to read its older flag, which is for all parts together."""
    patches = np.random.default_rng(0).integers(0, 256, (2, 32, 32), np.uint8)
    network = TFeat().eval()
    wanted = describe(network, patches, "cpu")
    before = {name: part.fp32_precision for name, part in PARTS.items()}
    other = {"conv": "rnn", "rnn": "conv"}[alone]
    try:
        PARTS[other].fp32_precision = "tf32" if value == "ieee" else "ieee"
        PARTS[alone].fp32_precision = value
        seen = {name: part.fp32_precision for name, part in PARTS.items()}
        assert np.array_equal(describe(network, patches, "cpu"), wanted)
        assert seen == {name: part.fp32_precision for name, part in PARTS.items()}
    finally:
        for name, part in PARTS.items():
            part.fp32_precision = before[name]
    assert torch.backends.cudnn.allow_tf32


def test_coarse_products_are_allowed_in_their_block_alone():
    matmul = torch.backends.cuda.matmul
    before = matmul.fp32_precision
    with exact():
        assert not matmul.allow_tf32
        with coarse_products():
            assert matmul.allow_tf32
        assert not matmul.allow_tf32
    assert matmul.fp32_precision == before and torch.backends.cudnn.allow_tf32


def test_bits_are_packed_as_numpy_packs_them():
    bits = np.random.default_rng(0).random((5, 256)) < 0.5
    assert np.array_equal(packed(torch.from_numpy(bits)).numpy(), np.packbits(bits, axis=1))


@pytest.mark.parametrize("name", sorted(published_weights.known()))
def test_missing_weights_say_how_to_get_them(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path))
    row = published_weights.known()[name]
    with pytest.raises(RuntimeError) as missing:
        plugins.model(name, device="cpu")
    assert isinstance(missing.value.__cause__, weights.NotHere)
    said = str(missing.value)
    assert f"harness weights add {row.file}" in said
    assert all(url in said for url in row.urls)
