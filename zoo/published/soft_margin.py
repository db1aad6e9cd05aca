"""L2-Net's layers trained with a dynamic soft margin: vectors and bits of three scenes.

L. Zhang, S. Rusinkiewicz, Learning local descriptors with a CDF-based dynamic soft margin, ICCV
2019. Weights: https://github.com/lg-zhang/dynamic-soft-margin-pytorch.

As the authors' code: OpenCV resizes the 8-bit patch to 32x32. Its grey values, divided by 255, less
the mean of the training scene and over the scene's deviation, are standardised by the network for
each patch. The mean cancels. The deviation only scales the 1e-7 that the network adds to a patch's
deviation; so the published `mean_std.pt` is not needed.
"""

import torch
from jaxtyping import Float, UInt8
from torch import nn

from harness.distances import HAMMING, L2
from harness.types import Descriptor
from zoo.published import conventions
from zoo.published.describing import resize
from zoo.published.layers import convolutions, packed, standardise, unit, whole
from zoo.published.maker import published

DEVIATION = {"liberty": 0.2019, "notredame": 0.1864, "yosemite": 0.1818}  # datasets/brown.py
BITS = 256

SOURCE = "Zhang and Rusinkiewicz, ICCV 2019; lg-zhang/dynamic-soft-margin-pytorch@6766ff3"


class SoftMargin(nn.Module):
    """Seven convolutions to 128 numbers; parameters are named as in the published files."""

    def __init__(self, deviation: float, dim: int = 128) -> None:
        """Start with PyTorch's initial weights.

        Args:
            deviation: of the grey values of the training scene, which are in [0, 1].
            dim: numbers in a vector, or bits.
        """
        super().__init__()
        self.eps = 1e-7 * 255 * deviation
        self.features = nn.Sequential(*convolutions(), *whole(128, dim, dropout=0.1))

    def forward(self, patches: UInt8[torch.Tensor, "n h w"]) -> Float[torch.Tensor, "n dim"]:
        """Describe 8-bit patches of any size."""
        x = standardise(resize(patches)[:, None], eps=self.eps)  # (n, 1, 32, 32)
        return unit(self.features(x).flatten(1))


class BinarySoftMargin(SoftMargin):
    """Seven convolutions to 256 bits; the tanh at the end of the authors' code keeps signs."""

    def __init__(self, deviation: float) -> None:
        """Start with PyTorch's initial weights; `deviation` is that of SoftMargin."""
        super().__init__(deviation, BITS)

    def forward(self, patches: UInt8[torch.Tensor, "n h w"]) -> UInt8[torch.Tensor, "n 32"]:
        """Describe 8-bit patches of any size."""
        return packed(super().forward(patches) > 0)


def _floats(scene: str, device: str) -> Descriptor:
    def network() -> SoftMargin:
        return SoftMargin(DEVIATION[scene])

    return published("dsm", scene, network, conventions.DSM, device, distance=L2)


def _bits(scene: str, device: str) -> Descriptor:
    return published(
        "dsm-binary",
        scene,
        lambda: BinarySoftMargin(DEVIATION[scene]),
        conventions.DSM_BINARY,
        device,
        dim=BITS,
        distance=HAMMING,
    )


def liberty(device: str = "cpu") -> Descriptor:
    """Vectors, trained on PhotoTour's Liberty."""
    return _floats("liberty", device)


def notredame(device: str = "cpu") -> Descriptor:
    """Vectors, trained on PhotoTour's Notre Dame."""
    return _floats("notredame", device)


def yosemite(device: str = "cpu") -> Descriptor:
    """Vectors, trained on PhotoTour's Yosemite."""
    return _floats("yosemite", device)


def binary_liberty(device: str = "cpu") -> Descriptor:
    """256 bits, trained on PhotoTour's Liberty."""
    return _bits("liberty", device)


def binary_notredame(device: str = "cpu") -> Descriptor:
    """256 bits, trained on PhotoTour's Notre Dame."""
    return _bits("notredame", device)


def binary_yosemite(device: str = "cpu") -> Descriptor:
    """256 bits, trained on PhotoTour's Yosemite."""
    return _bits("yosemite", device)
