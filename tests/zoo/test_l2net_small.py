"""The small network: its arithmetic, and its two kinds of vectors."""

import numpy as np
import pytest
import torch
from torch import nn

from harness.distances import HAMMING, L2
from zoo.backbones import BatchNorm, L2Net
from zoo.l2net_small import L2NetSmall

both = pytest.mark.parametrize("binary", [False, True], ids=["numbers", "bits"])


@pytest.fixture(scope="module")
def patches():
    grey = np.random.default_rng(0).integers(0, 256, (6, 1, 32, 32))
    return torch.from_numpy(grey).float()


def multiplications(network, *shape):
    """Multiply-adds of the convolutions for one input."""
    counts = []
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            module.register_forward_hook(
                lambda layer, _, y: counts.append(layer.weight.numel() * y[0, 0].numel())
            )
    with torch.no_grad():
        network.eval()(torch.zeros(1, *shape))
    return sum(counts)


def test_multiplications_are_those_of_counting_by_hand():
    assert multiplications(nn.Conv2d(2, 3, 3), 2, 8, 8) == 6 * 6 * 3 * (2 * 3 * 3)


@both
def test_it_has_an_eighth_of_the_multiplications_of_l2net_at_most(binary):
    whole, small = (multiplications(net, 1, 32, 32) for net in (L2Net(), L2NetSmall(binary=binary)))
    assert 0 < 8 * small <= whole


@both
def test_it_has_no_bias_no_pooling_and_no_learned_normalisation(binary):
    network = L2NetSmall(binary=binary)
    kinds = {type(module) for module in network.modules() if not [*module.children()]}
    assert kinds == {*map(type, (network.features[0], network.last[0]))} | {
        BatchNorm, nn.ReLU, nn.Dropout,
    }  # fmt: skip
    assert all(parameter.ndim == 4 for parameter in network.parameters())


def test_numbers_are_unit_vectors(patches):
    network = L2NetSmall().eval()
    vectors = network(patches)
    assert (network.distance, network.codes, vectors.shape) == (L2, False, (6, 128))
    torch.testing.assert_close(vectors.norm(dim=1), torch.ones(6))


def test_bits_are_activations_around_zero(patches):
    network = L2NetSmall(binary=True)
    with torch.no_grad():
        activations = network.train()(patches)
    assert (network.distance, network.codes, activations.shape) == (HAMMING, True, (6, 256))
    torch.testing.assert_close(activations.mean(dim=0), torch.zeros(256), rtol=0, atol=1e-5)


def test_brightness_and_contrast_change_nothing(patches):
    network = L2NetSmall().eval()
    torch.testing.assert_close(network(patches / 3 + 40), network(patches), rtol=1e-4, atol=1e-5)
