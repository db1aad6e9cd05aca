"""TFeat: a shallow network trained on triplets; three published sets of weights.

V. Balntas, E. Riba, D. Ponsa, K. Mikolajczyk, Learning local feature descriptors with triplets
and shallow convolutional neural networks, BMVC 2016. Weights: MIT, https://github.com/vbalnt/tfeat.

As the authors' code: the 8-bit patch is resized to 32x32, bilinear without antialiasing; grey
values enter as 0 .. 255 and the network's first layer standardises each patch; the vector is the
tanh output, not unit length.
"""

import torch
from jaxtyping import Float, UInt8
from torch import nn

from harness.types import Descriptor
from zoo.published import conventions
from zoo.published.describing import resize
from zoo.published.maker import published


class TFeat(nn.Module):
    """Two convolutions and one linear layer; parameters are named as in the published files."""

    def __init__(self) -> None:
        """Start with PyTorch's initial weights."""
        super().__init__()
        self.features = nn.Sequential(
            nn.InstanceNorm2d(1, affine=False),  # per patch; a flat one becomes zero
            nn.Conv2d(1, 32, kernel_size=7),
            nn.Tanh(),
            nn.MaxPool2d(kernel_size=2, stride=2),
            nn.Conv2d(32, 64, kernel_size=6),
            nn.Tanh(),
        )
        self.descr = nn.Sequential(nn.Linear(64 * 8 * 8, 128), nn.Tanh())

    def forward(self, patches: UInt8[torch.Tensor, "n h w"]) -> Float[torch.Tensor, "n 128"]:
        """Describe 8-bit patches of any size."""
        x = resize(patches)[:, None]  # (n, 1, 32, 32)
        x = x - x[:, :, :1, :1]  # so that a flat patch is zero in spite of rounding
        x = self.features(x)  # (n, 64, 8, 8)
        x = self.descr(x.flatten(1))  # (n, 128)
        return x


def liberty(device: str = "cpu") -> Descriptor:
    """TFeat trained on PhotoTour's Liberty."""
    return published("tfeat", "liberty", TFeat, conventions.TFEAT, device)


def notredame(device: str = "cpu") -> Descriptor:
    """TFeat trained on PhotoTour's Notre Dame."""
    return published("tfeat", "notredame", TFeat, conventions.TFEAT, device)


def yosemite(device: str = "cpu") -> Descriptor:
    """TFeat trained on PhotoTour's Yosemite."""
    return published("tfeat", "yosemite", TFeat, conventions.TFEAT, device)
