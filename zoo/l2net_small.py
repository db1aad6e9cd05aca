"""`l2net-small`: a network for phones, with an eighth of L2-Net's multiplications or less.

The plan is that of Y. Tian, B. Fan, F. Wu, L2-Net, CVPR 2017: convolutions of 3x3, batch
normalisation without scale and shift, no bias, no pooling, and a last convolution as large as its
input. The first convolution already halves the patch, because half of L2-Net's time is spent at
full size; the others are narrower. With ONNX Runtime on a processor, plain convolutions are faster
than depthwise ones with as many multiplications.
"""

from typing import Annotated

import torch
from annotated_types import Ge, Lt
from jaxtyping import Float
from torch import nn

from harness.distances import HAMMING
from zoo.backbones import BatchNorm, Network, Whole, standardise, unit

LAYERS = ((16, 2), (24, 1), (48, 2), (48, 1), (64, 2), (96, 1))  # channels, step


class L2NetSmall(Network):
    """Seven convolutions to 128 numbers, or to the activations of 256 bits."""

    side = 32
    dim = 128

    def __init__(
        self, *, dropout: Annotated[float, Ge(0), Lt(1)] = 0.0, binary: bool = False
    ) -> None:
        """Start with orthogonal weights of gain 0.6, as the zoo's L2-Net does.

        Args:
            dropout: share of the last layer's inputs that are set to zero in training.
            binary: whether to give 256 activations, whose signs are the descriptor.
        """
        super().__init__()
        self.codes = binary
        if binary:
            self.dim, self.distance = 256, HAMMING
        layers: list[nn.Module] = []
        channels = 1
        for width, step in LAYERS:
            convolution = nn.Conv2d(channels, width, 3, stride=step, padding=1, bias=False)
            layers += [convolution, BatchNorm(width), nn.ReLU(inplace=True)]
            channels = width
        self.features = nn.Sequential(*layers)
        self.dropout = nn.Dropout(dropout)
        self.last = nn.Sequential(Whole(channels, self.dim, 4, bias=False), BatchNorm(self.dim))
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.orthogonal_(module.weight, gain=0.6)

    def forward(self, patches: Float[torch.Tensor, "n 1 32 32"]) -> Float[torch.Tensor, "n dim"]:
        """Unit vectors of grey patches, or activations."""
        x = self.features(standardise(patches))  # (n, 96, 4, 4)
        x = self.last(self.dropout(x)).flatten(1)  # (n, dim)
        return x.float() if self.codes else unit(x)
