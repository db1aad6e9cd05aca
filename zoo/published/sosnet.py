"""SOSNet: L2-Net's layers, trained with second-order similarity; four published sets of weights.

Y. Tian, X. Yu, B. Fan, F. Wu, H. Heijnen, V. Balntas, SOSNet: second order similarity
regularization for local descriptor learning, CVPR 2019. Weights:
https://github.com/yuruntian/SOSNet.

As the authors' demonstration: grey values enter as 0 .. 255, and the network's first layer
standardises each patch. OpenCV resizes the 8-bit patch to 32x32.
"""

import torch
from jaxtyping import Float, UInt8
from torch import nn

from harness.types import Descriptor
from zoo.published import conventions
from zoo.published.describing import resize
from zoo.published.layers import convolutions, unit, whole
from zoo.published.maker import published


class SOSNet(nn.Module):
    """Seven convolutions; parameters are named as in the published files."""

    def __init__(self) -> None:
        """Start with PyTorch's initial weights."""
        super().__init__()
        self.layers = nn.Sequential(
            nn.InstanceNorm2d(1, affine=False), *convolutions(), *whole(128, 128, dropout=0.1)
        )

    def forward(self, patches: UInt8[torch.Tensor, "n h w"]) -> Float[torch.Tensor, "n 128"]:
        """Describe 8-bit patches of any size."""
        x = resize(patches)[:, None]  # (n, 1, 32, 32)
        x = x - x[:, :, :1, :1]  # so that a flat patch is zero in spite of rounding
        return unit(self.layers(x).flatten(1))


def liberty(device: str = "cpu") -> Descriptor:
    """SOSNet trained on PhotoTour's Liberty."""
    return published("sosnet", "liberty", SOSNet, conventions.SOSNET, device)


def notredame(device: str = "cpu") -> Descriptor:
    """SOSNet trained on PhotoTour's Notre Dame."""
    return published("sosnet", "notredame", SOSNet, conventions.SOSNET, device)


def yosemite(device: str = "cpu") -> Descriptor:
    """SOSNet trained on PhotoTour's Yosemite."""
    return published("sosnet", "yosemite", SOSNet, conventions.SOSNET, device)


def hpatches_a(device: str = "cpu") -> Descriptor:
    """SOSNet trained on the training sequences of HPatches' split a."""
    return published("sosnet", "hpatches-a", SOSNet, conventions.SOSNET, device)
