"""HyNet: L2-Net's convolutions with filter response normalisation; three sets of weights.

Y. Tian, A. Barroso-Laguna, T. Ng, V. Balntas, K. Mikolajczyk, HyNet: learning local descriptor
with hybrid similarity measure and triplet loss, NeurIPS 2020. Weights: MIT,
https://github.com/yuruntian/HyNet.

As the authors' code: OpenCV resizes the 8-bit patch to 32x32; grey values enter as 0 .. 255, and
the first layer divides each patch by its root mean square.
"""

import torch
from jaxtyping import Float, UInt8
from torch import nn

from harness.types import Descriptor
from zoo.published import conventions
from zoo.published.describing import resize
from zoo.published.layers import L2NET, unit, whole
from zoo.published.maker import published


class Responses(nn.Module):
    """Filter response normalisation: each channel of each patch over its root mean square.

    S. Singh, S. Krishnan, Filter response normalization layer, CVPR 2020.
    """

    eps: torch.Tensor

    def __init__(self, channels: int) -> None:
        """Start with scale 1 and shift 0."""
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1, channels, 1, 1))
        self.bias = nn.Parameter(torch.zeros(1, channels, 1, 1))
        self.register_buffer("eps", torch.tensor([1e-6]))

    def forward(self, x: Float[torch.Tensor, "n c h w"]) -> Float[torch.Tensor, "n c h w"]:
        """Normalised, scaled and shifted."""
        mean_square = (x * x).mean(dim=(2, 3), keepdim=True)
        return self.weight * (x * (mean_square + self.eps.abs()).rsqrt()) + self.bias


class Threshold(nn.Module):
    """Thresholded linear unit: the larger of a number and the threshold of its channel."""

    def __init__(self, channels: int) -> None:
        """Start with thresholds of -1."""
        super().__init__()
        self.tau = nn.Parameter(-torch.ones(1, channels, 1, 1))

    def forward(self, x: Float[torch.Tensor, "n c h w"]) -> Float[torch.Tensor, "n c h w"]:
        """Cut off below."""
        return torch.maximum(x, self.tau)


class HyNet(nn.Module):
    """Seven convolutions; parameters are named as in the published files."""

    def __init__(self) -> None:
        """Start with PyTorch's initial weights."""
        super().__init__()
        channels = 1
        for i, (width, stride) in enumerate(L2NET, start=1):
            convolution = nn.Conv2d(channels, width, kernel_size=3, stride=stride, padding=1)
            layers = [convolution, Responses(width), Threshold(width)]
            if i == 1:
                layers = [Responses(1), Threshold(1), *layers]
            self.add_module(f"layer{i}", nn.Sequential(*layers))
            channels = width
        self.layer7 = nn.Sequential(*whole(128, 128, dropout=0.2))

    def forward(self, patches: UInt8[torch.Tensor, "n h w"]) -> Float[torch.Tensor, "n 128"]:
        """Describe 8-bit patches of any size."""
        x = resize(patches)[:, None]  # (n, 1, 32, 32)
        for layer in self.children():  # layer1 to layer7
            x = layer(x)
        return unit(x.flatten(1))


def liberty(device: str = "cpu") -> Descriptor:
    """HyNet trained on PhotoTour's Liberty."""
    return published("hynet", "liberty", HyNet, conventions.HYNET, device)


def notredame(device: str = "cpu") -> Descriptor:
    """HyNet trained on PhotoTour's Notre Dame."""
    return published("hynet", "notredame", HyNet, conventions.HYNET, device)


def yosemite(device: str = "cpu") -> Descriptor:
    """HyNet trained on PhotoTour's Yosemite."""
    return published("hynet", "yosemite", HyNet, conventions.HYNET, device)
