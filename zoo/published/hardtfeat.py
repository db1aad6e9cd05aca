"""HardTFeat: TFeat's network trained with HardNet's loss.

D. Mishkin, F. Radenovic, J. Matas, Repeatability is not enough: learning affine regions via
discriminability, ECCV 2018, whose code uses it. Weights: MIT, https://github.com/ducha-aiki/affnet.

Beside TFeat: each patch is standardised by its mean and (n - 1) standard deviation, the last layer
is a convolution, and the vector has unit length. The patch is resized as TFeat's is, as in the code
of the same authors for HPatches.
"""

import torch
from jaxtyping import Float, UInt8
from torch import nn

from harness.types import Descriptor
from zoo.published import conventions
from zoo.published.describing import resize
from zoo.published.layers import standardise, unit
from zoo.published.maker import published

UNUSED = ("SIFT.gx.0.weight", "SIFT.gy.0.weight", "SIFT.pk.0.weight")  # of a SIFT kept beside it


class HardTFeat(nn.Module):
    """Three convolutions with tanh; parameters are named as in the published file."""

    def __init__(self) -> None:
        """Start with PyTorch's initial weights."""
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 32, kernel_size=7),
            nn.Tanh(),
            nn.MaxPool2d(kernel_size=2, stride=2),
            nn.Conv2d(32, 64, kernel_size=6),
            nn.Tanh(),
        )
        self.classifier = nn.Sequential(
            nn.Dropout(0.1), nn.Conv2d(64, 128, kernel_size=8), nn.Tanh()
        )

    def forward(self, patches: UInt8[torch.Tensor, "n h w"]) -> Float[torch.Tensor, "n 128"]:
        """Describe 8-bit patches of any size."""
        x = resize(patches)[:, None]  # (n, 1, 32, 32)
        x = self.features(standardise(x))  # (n, 64, 8, 8)
        x = self.classifier(x).flatten(1)  # (n, 128)
        return unit(x)


def hardtfeat(device: str = "cpu") -> Descriptor:
    """The published weights."""
    return published(
        "hardtfeat", "hardtfeat", HardTFeat, conventions.HARDTFEAT, device, unused=UNUSED
    )
