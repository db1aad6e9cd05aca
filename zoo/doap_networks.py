"""DOAP's networks: L2-Net, optionally with binary codes or a spatial transformer before it."""

from collections.abc import Mapping
from typing import Annotated, Literal

import torch
from annotated_types import Ge, Lt
from jaxtyping import Float
from torch import nn
from torch.nn import functional

from harness.distances import HAMMING
from zoo.backbones import BatchNorm, L2Net, Network, Whole, standardise, unit
from zoo.training.later import Later


class DOAPL2Net(L2Net):
    """L2-Net initialised as in K. He, X. Zhang, S. Ren, J. Sun, ICCV 2015 (appendix D)."""

    def __init__(
        self, *, dropout: Annotated[float, Ge(0), Lt(1)] = 0.0, binary: bool = False
    ) -> None:
        """Start with random weights.

        Args:
            dropout: share of the last layer's inputs that are set to zero in training.
            binary: whether to give 256 activations, whose signs are the descriptor.
        """
        super().__init__(dropout=dropout)
        self.codes = binary
        if binary:
            self.dim, self.distance = 256, HAMMING
            self.last = nn.Sequential(Whole(128, self.dim, 8, bias=False), BatchNorm(self.dim))
        _start(self)

    def maps(
        self, patches: Float[torch.Tensor, "n 1 32 32"], *, every: bool = False
    ) -> tuple[torch.Tensor, ...]:
        """The first layer's output, the last's, and unit vectors or activations."""
        *maps, last, vectors = super().maps(patches, every=every)
        return *maps, last, last.float() if self.codes else vectors

    def forward(self, patches: Float[torch.Tensor, "n 1 32 32"]) -> Float[torch.Tensor, "n dim"]:
        """Unit vectors of grey patches, or activations."""
        return self.maps(patches)[-1]


class _Sampled(DOAPL2Net):
    """L2-Net for patches that were standardised before they were sampled."""

    def normalised(self, patches: Float[torch.Tensor, "n 1 32 32"]) -> torch.Tensor:
        """The patches without change."""
        return patches


class SpatialTransformer(Network):
    """L2-Net on the part of a patch that an affine map selects; three convolutions predict the map.

    If a map points outside a patch, its border is repeated (appendix B, `padding`). The paper gives
    the number of convolutions and the size of the patch, but not the sizes of the convolutions.
    Here, the third convolution, which predicts the map, gets features of length 1; otherwise one
    training step would move all maps by as much as the size of the patch.

    The third convolution learns with a hundredth of the learning rate, as in the paper. This is too
    slow for trainings as short as the zoo's: the maps of the shipped weights stay near the
    identity. The code is not the cause: with the full learning rate, the maps learn to undo
    artificial turns and scales (results/studies/settled-choices.md).
    """

    side = 42
    lr_factors: Mapping[str, float] = {"predict": 0.01}

    def __init__(
        self,
        *,
        dropout: Annotated[float, Ge(0), Lt(1)] = 0.0,
        binary: bool = False,
        standardise_sampled: bool = False,
        padding: Annotated[Literal["replicate", "zero"], Later("replicate")] = "replicate",
    ) -> None:
        """Start with random weights that map a patch to the whole of itself.

        Args:
            dropout: dropout of L2-Net.
            binary: whether L2-Net gives activations for binary codes.
            standardise_sampled: whether L2-Net standardises each 32x32 patch after it was sampled.
                If False, the 42x42 patch is standardised once, before it is sampled, as a script
                for the released model does. The shipped weights were trained with True.
            padding: what a map that points outside the patch finds there: "replicate", the border
                repeated, as in the paper; or "zero", with which figure 7 compares it. Zero is the
                patch's mean, but black if `standardise_sampled`.
        """
        super().__init__()
        self.outside = {"replicate": "border", "zero": "zeros"}[padding]
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
            # The network learns the difference from the identity, so weight decay pulls to it.
            change = self.predict(length_1).view(-1, 2, 3)
            maps = change + torch.eye(2, 3, device=change.device)
            middle = (torch.arange(32, device=maps.device) + 0.5) / 16 - 1  # of pixels, in [-1, 1]
            y, x = torch.meshgrid(middle, middle, indexing="ij")
            places = torch.stack([x, y, torch.ones_like(x)], dim=2).flatten(0, 1)  # (1024, 3)
            grid = (places @ maps.transpose(1, 2)).view(-1, 32, 32, 2)
            return functional.grid_sample(
                patches.float(), grid, padding_mode=self.outside, align_corners=False
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
