"""HardNet, HardNet++, HardNetPS and HardNet8: L2-Net's layers, trained on hardest negatives.

A. Mishchuk, D. Mishkin, F. Radenovic, J. Matas, Working hard to know your neighbor's margins: local
descriptor learning loss, NIPS 2017. Weights: https://github.com/DagnyT/hardnet.

HardNetPS: R. Mitra et al., A large dataset for improving patch matching, arXiv 1801.01466, 2018.
HardNet8: M. Pultar, Improving the HardNet descriptor, arXiv 2007.09699, 2020.

As the authors' code for HPatches: OpenCV resizes the 8-bit patch to 32x32, and each patch is
standardised by its mean and (n - 1) standard deviation.
"""

import torch
from jaxtyping import Float, UInt8
from torch import nn

from harness.types import Descriptor
from zoo.published import conventions
from zoo.published.describing import resize
from zoo.published.layers import convolution, convolutions, standardise, unit, whole
from zoo.published.maker import published

NORMALISATION = "each patch to mean 0 and (n - 1) deviation 1; the vector to unit length"


class HardNet(nn.Module):
    """Seven convolutions; parameters are named as in the published files."""

    def __init__(self) -> None:
        """Start with PyTorch's initial weights."""
        super().__init__()
        self.features = nn.Sequential(*convolutions(), *whole(128, 128, dropout=0.1))

    def forward(self, patches: UInt8[torch.Tensor, "n h w"]) -> Float[torch.Tensor, "n 128"]:
        """Describe 8-bit patches of any size."""
        x = standardise(resize(patches)[:, None])  # (n, 1, 32, 32)
        return unit(self.features(x).flatten(1))


class HardNetPS(HardNet):
    """HardNet with biases, and with no batch normalisation after the last layer."""

    def __init__(self) -> None:
        """Start with PyTorch's initial weights."""
        super().__init__()
        last = nn.Conv2d(128, 128, kernel_size=8)
        self.features = nn.Sequential(*convolutions(affine=True), last)


class HardNet8(nn.Module):
    """Eight convolutions to 512 numbers, of which principal components keep 128."""

    mean: torch.Tensor
    components: torch.Tensor

    def __init__(self) -> None:
        """Start with PyTorch's initial weights, and a projection to the first 128 numbers."""
        super().__init__()
        self.features = nn.Sequential(
            *convolutions(), *convolution(128, 256), *whole(256, 512, dropout=0.3)
        )
        self.register_buffer("mean", torch.zeros(512))
        self.register_buffer("components", torch.eye(512, 128))

    def forward(self, patches: UInt8[torch.Tensor, "n h w"]) -> Float[torch.Tensor, "n 128"]:
        """Describe 8-bit patches of any size."""
        x = standardise(resize(patches)[:, None])  # (n, 1, 32, 32)
        x = unit(self.features(x).flatten(1))  # (n, 512)
        return unit((x - self.mean) @ self.components)


def liberty(device: str = "cpu") -> Descriptor:
    """HardNet trained on PhotoTour's Liberty, with flips and rotations by 90 degrees."""
    return published("hardnet", "liberty", HardNet, conventions.HARDNET, device)


def liberty_no_aug(device: str = "cpu") -> Descriptor:
    """HardNet trained on PhotoTour's Liberty, without flips and rotations."""
    return published("hardnet", "liberty-no-aug", HardNet, conventions.HARDNET, device)


def notredame(device: str = "cpu") -> Descriptor:
    """HardNet trained on PhotoTour's Notre Dame, with flips and rotations by 90 degrees."""
    return published("hardnet", "notredame", HardNet, conventions.HARDNET, device)


def yosemite(device: str = "cpu") -> Descriptor:
    """HardNet trained on PhotoTour's Yosemite, with flips and rotations by 90 degrees."""
    return published("hardnet", "yosemite", HardNet, conventions.HARDNET, device)


def brown6(device: str = "cpu") -> Descriptor:
    """HardNet trained on all six sets of PhotoTour."""
    return published("hardnet", "brown6", HardNet, conventions.HARDNET, device)


def hardnet_plus_plus(device: str = "cpu") -> Descriptor:
    """HardNet++, trained on PhotoTour and HPatches."""
    return published("hardnet", "hardnet++", HardNet, conventions.HARDNET, device)


def hardnet_ps(device: str = "cpu") -> Descriptor:
    """HardNetPS, trained on the PS data set of Mitra et al."""
    return published("hardnet", "hardnet-ps", HardNetPS, conventions.HARDNET_PS, device)


def hardnet8(device: str = "cpu") -> Descriptor:
    """HardNet8, version 2."""
    return published("hardnet", "hardnet8", HardNet8, conventions.HARDNET8, device)
