"""Steps that several published networks share: L2-Net's convolutions, and how they normalise."""

import torch
from jaxtyping import Bool, Float, UInt8
from torch import nn

L2NET = ((32, 1), (32, 1), (64, 2), (64, 1), (128, 2), (128, 1))  # channels, stride


def convolutions(*, affine: bool = False) -> list[nn.Module]:
    """L2-Net's six convolutions, each with batch normalisation and ReLU: 32x32 pixels to 8x8.

    Args:
        affine: whether convolutions have biases, and batch normalisation a scale and a shift.
    """
    layers: list[nn.Module] = []
    channels = 1
    for width, stride in L2NET:
        layers += convolution(channels, width, stride=stride, affine=affine)
        channels = width
    return layers


def convolution(
    channels: int, width: int, *, stride: int = 1, affine: bool = False
) -> list[nn.Module]:
    """A 3x3 convolution with batch normalisation and ReLU."""
    return [
        nn.Conv2d(channels, width, kernel_size=3, stride=stride, padding=1, bias=affine),
        nn.BatchNorm2d(width, affine=affine),
        nn.ReLU(),
    ]


def whole(channels: int, dim: int, *, dropout: float) -> list[nn.Module]:
    """L2-Net's last layer: dropout, a convolution over all 8x8 pixels, batch normalisation."""
    return [
        nn.Dropout(dropout),
        nn.Conv2d(channels, dim, kernel_size=8, bias=False),
        nn.BatchNorm2d(dim, affine=False),
    ]


def standardise(
    x: Float[torch.Tensor, "n 1 h w"], *, eps: float = 1e-7
) -> Float[torch.Tensor, "n 1 h w"]:
    """Each patch to mean 0 and (n - 1) deviation 1; a flat patch becomes zero.

    Args:
        x: grey patches.
        eps: is added to the deviation, in grey levels.
    """
    deviation, mean = torch.std_mean(x, dim=(1, 2, 3), keepdim=True)
    return (x - mean) / (deviation + eps)


def unit(x: Float[torch.Tensor, "n dim"]) -> Float[torch.Tensor, "n dim"]:
    """Vectors of length 1; a vector shorter than 1e-5 is divided by 1e-5.

    The authors add 1e-8, 1e-10 or 1e-12: float32 rounds it away. An exporter takes it for 0, and a
    vector of zeros would become NaN. A clamp stays, and gives the same vectors.
    """
    return x / (x * x).sum(dim=1, keepdim=True).clamp(min=1e-10).sqrt()


def packed(bits: Bool[torch.Tensor, "n dim"]) -> UInt8[torch.Tensor, "n dim_in_bytes"]:
    """Eight bits to a byte, the first bit highest, as numpy.packbits does."""
    weight = torch.tensor([128, 64, 32, 16, 8, 4, 2, 1], device=bits.device)
    return (bits.unflatten(1, (-1, 8)) * weight).sum(dim=2).to(torch.uint8)
