"""DeepDesc: a network trained on pairs, with mining of hard ones; four published sets of weights.

E. Simo-Serra, E. Trulls, L. Ferraz, I. Kokkinos, P. Fua, F. Moreno-Noguer, Discriminative learning
of deep convolutional feature point descriptors, ICCV 2015. Weights: CC BY-NC-SA 4.0,
https://github.com/etrulls/deepdesc-release; trained anew for the release, so they are not those of
the paper.

Each pixel of the 64x64 patch is less the mean and over the deviation that this pixel had in training.
The three layers are a convolution, tanh and pooling by the Euclidean norm; the first two end with a
subtraction of the local mean. The vector has no unit length.
"""

import torch
from jaxtyping import Float, UInt8
from torch import nn
from torch.nn import functional

from harness import registry
from harness.data import weights
from harness.data.weights import Weights
from harness.distances import L2
from harness.types import Conventions, Descriptor
from zoo.published.describing import describe, resize
from zoo.published.files.deepdesc import AVERAGED, LAYERS, SIDE

CONVENTIONS = Conventions(
    keypoint="the whole patch",
    side=SIDE,
    normalisation="each pixel by its mean and deviation in training; the vector is not unit",
    source="Simo-Serra et al., ICCV 2015; etrulls/deepdesc-release@0a97828",
)


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


def _network(row: Weights) -> DeepDesc:
    network = DeepDesc()
    network.load_state_dict(weights.load(row), strict=True)
    return network.eval()


def _published(split: str, device: str) -> Descriptor:
    row: Weights = registry.load("weights", "deepdesc")[split]
    network = _network(row).to(device)
    return Descriptor(
        row.name,
        lambda patches: describe(network, patches, device),
        L2,
        dim=128,
        trained_on=row.trained_on,
        licence=row.licence,
        weights=row.sha256,
        libraries=("numpy", "torch"),
        conventions=CONVENTIONS,
        provider=f"torch-{torch.device(device).type}",
        network=lambda: _network(row),
    )


def split1(device: str = "cpu") -> Descriptor:
    """DeepDesc trained on PhotoTour's Liberty and Yosemite."""
    return _published("split1", device)


def split2(device: str = "cpu") -> Descriptor:
    """DeepDesc trained on PhotoTour's Liberty and Notre Dame."""
    return _published("split2", device)


def split3(device: str = "cpu") -> Descriptor:
    """DeepDesc trained on PhotoTour's Yosemite and Notre Dame."""
    return _published("split3", device)


def split4(device: str = "cpu") -> Descriptor:
    """DeepDesc trained on a part of each scene of PhotoTour; the authors recommend it."""
    return _published("split4", device)
