"""Wrapped networks as torch modules and ONNX files."""

import numpy as np
import pytest
import torch
from fitted import fitted
from torch import nn

import harness
from harness.distances import HAMMING, L2
from harness.onnx.check import apart_by

PATCHES = np.random.default_rng(0).integers(0, 256, (20, 33, 33), dtype=np.uint8)
PATCHES[2] = 77


class Small(nn.Module):
    """Means over a grid of 3 x 4 cells, through a random linear layer."""

    def __init__(self, bits):
        super().__init__()
        torch.manual_seed(0)
        self.linear, self.bits = nn.Linear(12, 8), bits

    def forward(self, patches):
        down, across = (self.shares(n) for n in patches.shape[1:])
        cells = (down(3) @ (patches.float() / 255) @ across(4).T).flatten(1)
        vectors = self.linear(cells)
        if not self.bits:
            return vectors
        return (
            ((vectors >= 0) * torch.tensor([128, 64, 32, 16, 8, 4, 2, 1]))
            .sum(1)
            .to(torch.uint8)[:, None]
        )

    def shares(self, n):
        pixel = torch.arange(n)

        def of(cells):
            member = (pixel * cells // n == torch.arange(cells)[:, None]).float()
            return member / member.sum(dim=1, keepdim=True)

        return of


def small(bits=False):
    network = Small(bits).eval()

    def describe(patches):
        with torch.inference_mode():
            return network(torch.from_numpy(patches)).numpy()

    distance = HAMMING if bits else L2
    return harness.Descriptor("small", describe, distance, 8, network=lambda: network)


def must_be_alike(made):
    with torch.inference_mode():
        by_torch = made.network()(torch.from_numpy(PATCHES)).numpy()
    vectors = made.describe(PATCHES)
    assert by_torch.dtype == vectors.dtype and by_torch.shape == vectors.shape
    assert apart_by(by_torch, vectors, made.distance).max() < 1e-5


def must_be_exported(made, tmp_path):
    must_be_alike(made)
    harness.export_onnx(made, tmp_path / "x.onnx")
    written = harness.load_model(tmp_path / "x.onnx", device="cpu")
    assert written.name == f"onnx:{made.name}"
    assert (written.dim, written.distance) == (made.dim, made.distance)
    apart = apart_by(written.describe(PATCHES), made.describe(PATCHES), made.distance)
    assert apart.max() < 1e-5


@pytest.mark.parametrize(
    "wrappers",
    ["root", "unit", "signs", "float16", "dihedral-mean", "central-surround", "domain-size(0.6,1)"],
)
def test_the_torch_module_of_a_wrapped_network_describes_as_it_does(wrappers):
    must_be_alike(harness.wrap(small(), wrappers))


@pytest.mark.parametrize("wrapper", ["pcapl", "thresholds"])
def test_learned_parameters_are_in_the_torch_module(wrapper, tmp_path):
    must_be_alike(fitted(small(), wrapper, tmp_path / "own", PATCHES))


def test_bits_side_by_side_are_in_the_torch_module():
    must_be_alike(harness.wrap(small(bits=True), "central-surround"))


@pytest.mark.parametrize(
    "wrappers", ["dihedral-mean|float16|root|unit|signs", "central-surround|domain-size(0.6,1)"]
)
def test_a_wrapped_network_is_exported_as_it_describes(wrappers, tmp_path):
    must_be_exported(harness.wrap(small(), wrappers), tmp_path)


def test_learned_parameters_are_exported(tmp_path):
    must_be_exported(fitted(small(), "pcapl", tmp_path / "own", PATCHES), tmp_path)


@pytest.mark.parametrize("wrappers", ["int8", "concat(pixels)", "unit|int8|root"])
def test_what_can_not_be_exported_says_so(wrappers, tmp_path):
    with pytest.raises(ValueError, match="can't be exported: it has no network"):
        harness.export_onnx(harness.wrap(small(), wrappers), tmp_path / "x.onnx")
