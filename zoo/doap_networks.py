"""DOAP's networks: L2-Net, optionally with a spatial transformer before it and a binary code."""

from collections.abc import Mapping
from typing import Annotated

import torch
from annotated_types import Ge, Lt
from jaxtyping import Float
from torch import nn
from torch.nn import functional

from harness.distances import HAMMING
from zoo.backbones import BatchNorm, L2Net, Network, Whole, standardise, unit


class DOAPL2Net(L2Net):
    """L2-Net from the random start of K. He, X. Zhang, S. Ren, J. Sun, ICCV 2015 (appendix D)."""

    def __init__(
        self, *, dropout: Annotated[float, Ge(0), Lt(1)] = 0.0, binary: bool = False
    ) -> None:
        """Start with random weights.

        Args:
            dropout: share of the last layer's inputs that are set to zero in training.
            binary: 256 activations of any length, whose signs are the descriptor.
        """
        super().__init__(dropout=dropout)
        self.codes = binary
        if binary:
            self.dim, self.distance = 256, HAMMING
            self.last = nn.Sequential(Whole(128, self.dim, 8, bias=False), BatchNorm(self.dim))
        _start(self)

    def maps(self, patches: Float[torch.Tensor, "n 1 32 32"]) -> tuple[torch.Tensor, ...]:
        """The first layer's output, the last's, and unit vectors or activations."""
        first, last, vectors = super().maps(patches)
        return first, last, last.float() if self.codes else vectors

    def forward(self, patches: Float[torch.Tensor, "n 1 32 32"]) -> Float[torch.Tensor, "n dim"]:
        """Unit vectors of grey patches, or activations."""
        return self.maps(patches)[-1]


class _Sampled(DOAPL2Net):
    """L2-Net on patches that were standardised before they were sampled."""

    def normalised(self, patches: Float[torch.Tensor, "n 1 32 32"]) -> torch.Tensor:
        """Patches as they are."""
        return patches


class SpatialTransformer(Network):
    """L2-Net on the part of a patch that an affine map shows; three convolutions predict the map.

    Where a map points outside a patch, the patch's border is repeated (appendix B). The paper says
    how many convolutions there are and how large the patch is, but not their sizes. Here the third
    one, which predicts, sees features of length 1: without this, one step of it moves all maps at
    once by as much as the patch is large.

    The prediction learns at a hundredth of the learning rate, as in the paper. In trainings as
    short as the zoo's this is too slow: the maps of the weights that ship stay near the identity.
    The code is not the cause: at the full rate the maps learn to undo turns and scales that were
    put in (results/studies/settled-choices.md).
    """

    side = 42
    lr_factors: Mapping[str, float] = {"predict": 0.01}

    def __init__(
        self,
        *,
        dropout: Annotated[float, Ge(0), Lt(1)] = 0.0,
        binary: bool = False,
        standardise_sampled: bool = False,
    ) -> None:
        """Start with random weights that map a patch to the whole of itself.

        Args:
            dropout: of L2-Net.
            binary: of L2-Net.
            standardise_sampled: L2-Net standardises each 32x32 patch after it was sampled. If
                False, the 42x42 patch is standardised once, before it is sampled, as a driver of
                the released model does. The weights that ship were trained with True.
        """
        super().__init__()
        self.standardise_sampled = standardise_sampled
        self.localise = nn.Sequential(  # (n, 1, 42, 42)
            nn.Conv2d(1, 16, 5, bias=False), BatchNorm(16), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 5, bias=False), BatchNorm(32), nn.ReLU(), nn.MaxPool2d(2),
        )  # (n, 32, 7, 7)  # fmt: skip
        self.predict = nn.Conv2d(32, 6, 7)
        describe = DOAPL2Net if standardise_sampled else _Sampled
        self.describe = describe(dropout=dropout, binary=binary)
        self.dim, self.distance = self.describe.dim, self.describe.distance
        self.codes = self.describe.codes
        _start(self.localise)
        for parameter in self.predict.parameters():
            nn.init.zeros_(parameter)

    def aligned(
        self, patches: Float[torch.Tensor, "n 1 42 42"]
    ) -> Float[torch.Tensor, "n 1 32 32"]:
        """The parts of grey patches that the predicted affine maps select."""
        features = self.localise(standardise(patches))
        with torch.autocast(patches.device.type, enabled=False):
            length_1 = unit(features.flatten(1)).view(features.shape)
            # What is learned is the change, so that weight decay pulls towards no change.
            change = self.predict(length_1).view(-1, 2, 3)
            maps = change + torch.eye(2, 3, device=change.device)
            middle = (torch.arange(32, device=maps.device) + 0.5) / 16 - 1  # of pixels, in [-1, 1]
            y, x = torch.meshgrid(middle, middle, indexing="ij")
            places = torch.stack([x, y, torch.ones_like(x)], dim=2).flatten(0, 1)  # (1024, 3)
            grid = (places @ maps.transpose(1, 2)).view(-1, 32, 32, 2)
            return functional.grid_sample(
                patches.float(), grid, padding_mode="border", align_corners=False
            )

    def forward(self, patches: Float[torch.Tensor, "n 1 42 42"]) -> Float[torch.Tensor, "n dim"]:
        """Unit vectors of grey patches, or activations."""
        shown = patches if self.standardise_sampled else standardise(patches)
        vectors: torch.Tensor = self.describe(self.aligned(shown))
        return vectors


def _start(network: nn.Module) -> None:
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
