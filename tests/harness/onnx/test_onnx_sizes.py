"""Every shipped network as an ONNX file: any number of patches, of any size."""

import numpy as np
import pytest
from checkout import ROOT

from harness import plugins
from harness.distances import HAMMING
from harness.onnx.check import apart_by, hard_patches, rounding
from zoo import card as cards
from zoo import shipped, trained

NAMES = sorted(file.stem for file in shipped.FOLDER.glob("*.safetensors"))
SHAPES = [(side, side) for side in (8, 16, 24, 31, 32, 41, 51, 64, 65, 128, 200)]
OBLONG = [(40, 56), (90, 33)]
BATCHES = (0, 1, 2, 3, 7, 33, 64, 100)


def of_shape(height, width):
    """Patches that a normalisation may stumble over."""
    return np.ascontiguousarray(hard_patches(max(height, width))[:12, :height, :width])


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_network_takes_patches_of_any_number_and_size(name):
    described = plugins.model(name)
    card = cards.read(shipped.FOLDER / f"{name}.json")
    by_torch = trained.by_torch(shipped.FOLDER / f"{name}.safetensors", card)
    allowed = rounding(described)
    if described.distance is HAMMING:
        allowed *= 2  # faint noise has numbers near 0, which change their signs
    for shape in SHAPES + OBLONG:
        patches = of_shape(*shape)
        vectors = described.describe(patches)
        assert vectors.shape == (len(patches), described.width), shape
        assert np.isfinite(vectors).all()
        wanted = by_torch.describe(patches)
        assert apart_by(vectors, wanted, described.distance).max() <= allowed, shape
    many = np.concatenate([hard_patches(65)] * 4)[: max(BATCHES)]
    alone = np.concatenate([described.describe(many[i : i + 1]) for i in range(33)])
    for n in BATCHES:
        vectors = described.describe(many[:n])
        assert vectors.shape == (n, described.width)
        wanted = np.resize(alone, (n, described.width))
        assert (apart_by(vectors, wanted, described.distance) <= allowed).all(), n


def test_all_shipped_networks_are_here():
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    assert len(NAMES) == text.count('= "zoo.shipped:')
