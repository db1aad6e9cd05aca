"""TNet with the global loss: a network trained on triplets and on moments of all distances.

B. G. Vijay Kumar, G. Carneiro, I. Reid, Learning local image descriptors with deep siamese and
triplet convolutional networks by minimising global loss functions, CVPR 2016; its "TNet, TGLoss".
Weights: Apache-2.0, https://github.com/vijaykbg/deep-patchmatch.

The mean image of the training set is subtracted from the 64x64 patch; the vector has unit length.
"""

import torch
from jaxtyping import Float, UInt8
from torch import nn

from harness.types import Descriptor
from zoo.published import conventions
from zoo.published.describing import resize
from zoo.published.files.tnet import CONVOLUTIONS, KINDS, SIDE
from zoo.published.layers import unit
from zoo.published.maker import published

DIM = 256


class TNet(nn.Module):
    """Five convolutions; those without padding shrink the patch to one pixel."""

    mean: Float[torch.Tensor, "64 64"]

    def __init__(self) -> None:
        """Start with PyTorch's initial weights and mean 0."""
        super().__init__()
        self.register_buffer("mean", torch.zeros(SIDE, SIDE))
        layers: list[nn.Module] = [
            nn.MaxPool2d(2) if kind == "pool" else nn.ReLU() for kind in KINDS[:-1]
        ]
        for place, (outputs, inputs, side, stride) in CONVOLUTIONS.items():
            layers[place] = nn.Conv2d(inputs, outputs, side, stride)
        self.layers = nn.Sequential(*layers)

    def forward(self, patches: UInt8[torch.Tensor, "n h w"]) -> Float[torch.Tensor, "n 256"]:
        """Describe 8-bit patches of any size."""
        x = (resize(patches, SIDE) - self.mean)[:, None]  # (n, 1, 64, 64)
        x = self.layers(x).flatten(1)  # (n, 256)
        return unit(x)


def liberty(device: str = "cpu") -> Descriptor:
    """TNet trained on PhotoTour's Liberty."""
    return published("tnet", "liberty", TNet, conventions.TNET, device, dim=DIM)


def notredame(device: str = "cpu") -> Descriptor:
    """TNet trained on PhotoTour's Notre Dame."""
    return published("tnet", "notredame", TNet, conventions.TNET, device, dim=DIM)


def yosemite(device: str = "cpu") -> Descriptor:
    """TNet trained on PhotoTour's Yosemite."""
    return published("tnet", "yosemite", TNet, conventions.TNET, device, dim=DIM)
