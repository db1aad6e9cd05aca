"""DeepDesc: a network trained on pairs, with mining of hard ones; four published sets of weights.

E. Simo-Serra, E. Trulls, L. Ferraz, I. Kokkinos, P. Fua, F. Moreno-Noguer, Discriminative learning
of deep convolutional feature point descriptors, ICCV 2015. Weights: CC BY-NC-SA 4.0,
https://github.com/etrulls/deepdesc-release; trained anew for the release, so they are not those of
the paper.

From each pixel of the 64x64 patch, its mean in training is subtracted; the difference is divided by
its deviation in training. A layer is a convolution, tanh and pooling by the Euclidean norm; the
first two of the three layers end with a subtraction of the local mean. The vector is not unit.
"""

import torch
from jaxtyping import Float, UInt8
from torch import nn
from torch.nn import functional

from harness.types import Descriptor
from zoo.published import conventions
from zoo.published.describing import resize
from zoo.published.files.deepdesc import AVERAGED, LAYERS, SIDE
from zoo.published.maker import published


class DeepDesc(nn.Module):
    """Three convolutions, named conv1 to conv3; mean1 and mean2 are the local means."""

    mean: Float[torch.Tensor, "64 64"]
    deviation: Float[torch.Tensor, "64 64"]

    def __init__(self) -> None:
        """Start with PyTorch's initial weights, mean 0 and deviation 1."""
        super().__init__()
        self.register_buffer("mean", torch.zeros(SIDE, SIDE))
        self.register_buffer("deviation", torch.ones(SIDE, SIDE))
        self.conv1, self.conv2, self.conv3 = (nn.Conv2d(i, o, side) for i, o, side, _ in LAYERS)
        self.mean1, self.mean2 = (
            nn.Conv2d(o, 1, AVERAGED, padding=AVERAGED // 2) for _, o, _, _ in LAYERS[:2]
        )

    def forward(self, patches: UInt8[torch.Tensor, "n h w"]) -> Float[torch.Tensor, "n 128"]:
        """Describe 8-bit patches of any size."""
        x = (resize(patches, SIDE) - self.mean) / self.deviation
        x = x[:, None]  # (n, 1, 64, 64)
        x = pooled(torch.tanh(self.conv1(x)), 2)  # (n, 32, 29, 29)
        x = x - local_mean(x, self.mean1)
        x = pooled(torch.tanh(self.conv2(x)), 3)  # (n, 64, 8, 8)
        x = x - local_mean(x, self.mean2)
        x = pooled(torch.tanh(self.conv3(x)), 4)  # (n, 128, 1, 1)
        return x.flatten(1)


def pooled(x: Float[torch.Tensor, "n c h w"], side: int) -> Float[torch.Tensor, "n c i j"]:
    """The Euclidean norm of each square; nn.SpatialLPPooling of Torch7 with norm 2."""
    return (functional.avg_pool2d(x * x, side) * side**2).sqrt()


def local_mean(
    x: Float[torch.Tensor, "n c h w"], average: nn.Conv2d
) -> Float[torch.Tensor, "n 1 h w"]:
    """Weighted mean of a pixel's neighbourhood, over all channels and within the image.

    nn.SpatialSubtractiveNormalization of Torch7 subtracts it.
    """
    inside = average(torch.ones_like(x[:1]))  # the share of the weights that is in the image
    return average(x) / inside


def split1(device: str = "cpu") -> Descriptor:
    """DeepDesc trained on PhotoTour's Liberty and Yosemite."""
    return published("deepdesc", "split1", DeepDesc, conventions.DEEPDESC, device)


def split2(device: str = "cpu") -> Descriptor:
    """DeepDesc trained on PhotoTour's Liberty and Notre Dame."""
    return published("deepdesc", "split2", DeepDesc, conventions.DEEPDESC, device)


def split3(device: str = "cpu") -> Descriptor:
    """DeepDesc trained on PhotoTour's Yosemite and Notre Dame."""
    return published("deepdesc", "split3", DeepDesc, conventions.DEEPDESC, device)


def split4(device: str = "cpu") -> Descriptor:
    """DeepDesc trained on a part of each scene of PhotoTour; the authors recommend it."""
    return published("deepdesc", "split4", DeepDesc, conventions.DEEPDESC, device)
