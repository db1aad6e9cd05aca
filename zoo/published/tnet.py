"""TNet with the global loss: a network trained on triplets and on moments of all distances.

B. G. Vijay Kumar, G. Carneiro, I. Reid, Learning local image descriptors with deep siamese and triplet
convolutional networks by minimising global loss functions, CVPR 2016; "TNet, TGLoss" of its tables.
Weights: Apache-2.0, https://github.com/vijaykbg/deep-patchmatch.

The mean image of the training set is subtracted from the 64x64 patch; the vector has unit length.
"""

from pathlib import Path

import torch
from jaxtyping import Float, UInt8
from torch import nn

from harness import registry
from harness.data import weights
from harness.data.weights import Tensors, Weights
from harness.distances import L2
from harness.types import Conventions, Descriptor
from zoo.published import matconvnet
from zoo.published.describing import describe, resize

SIDE = 64
DIM = 256
CONVENTIONS = Conventions(
    keypoint="the whole patch",
    side=SIDE,
    normalisation="less the mean image of the training set; the vector to unit length",
    source="Kumar et al., CVPR 2016; vijaykbg/deep-patchmatch@a1a66c2",
)
KINDS = (
    *("conv", "relu", "pool", "conv", "relu", "pool"),
    *("conv", "relu", "conv", "relu", "conv", "normalize"),
)
CONVOLUTIONS = (  # place in KINDS, output, input, side, stride
    (0, 96, 1, 7, 3),
    (3, 192, 96, 5, 1),
    (6, 256, 192, 3, 1),
    (8, 256, 256, 1, 1),
    (10, 256, 256, 1, 1),
)
NORMALISED = (512, 0, 1, 0.5)  # window, constant, factor, power: the length of the whole vector


class TNet(nn.Module):
    """Five convolutions; those without padding shrink the patch to one pixel."""

    mean: Float[torch.Tensor, "64 64"]

    def __init__(self) -> None:
        """Start with PyTorch's initial weights and mean 0."""
        super().__init__()
        self.register_buffer("mean", torch.zeros(SIDE, SIDE))
        layers: list[nn.Module] = [nn.MaxPool2d(2) if kind == "pool" else nn.ReLU() for kind in KINDS[:-1]]
        for place, outputs, inputs, side, stride in CONVOLUTIONS:
            layers[place] = nn.Conv2d(inputs, outputs, side, stride)
        self.layers = nn.Sequential(*layers)

    def forward(self, patches: UInt8[torch.Tensor, "n h w"]) -> Float[torch.Tensor, "n 256"]:
        """Describe 8-bit patches of any size."""
        x = (resize(patches, SIDE) - self.mean)[:, None]  # (n, 1, 64, 64)
        x = self.layers(x).flatten(1)  # (n, 256)
        # The clamp only keeps zeros from becoming NaN.
        return x / (x * x).sum(dim=1, keepdim=True).clamp(min=1e-30).sqrt()


def tensors(file: Path) -> Tensors:
    """The parameters of a published file, by the names of `TNet`.

    Raises:
        InputError: if the file is not a .mat file, or contains another network.
    """
    published = matconvnet.read(file)
    layers = matconvnet.layers(published["net"])
    published["net"]["layers"].must_have(len(KINDS))
    found = {"mean": published["averageImage"].numbers(SIDE, SIDE)}
    for layer, kind in zip(layers, KINDS, strict=True):
        layer["type"].must_be(kind)
        if kind == "pool":
            layer["method"].must_be("max")
            for name, wanted in {"pool": 2, "stride": 2, "pad": 0}.items():
                layer[name].must_be(wanted)
    for place, outputs, inputs, side, stride in CONVOLUTIONS:
        shape = (outputs, inputs, side, side)
        found |= matconvnet.convolution(layers[place], f"layers.{place}", shape, stride=stride)
    layers[-1]["param"].must_be(NORMALISED)
    return {name: torch.from_numpy(array.copy()) for name, array in found.items()}
