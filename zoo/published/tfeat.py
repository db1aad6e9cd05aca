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

from harness import registry
from harness.data import weights
from harness.data.weights import Weights
from harness.distances import L2
from harness.types import Descriptor
from zoo.published import conventions
from zoo.published.describing import describe, resize

SIDE = 32


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


def _network(row: Weights) -> TFeat:
    network = TFeat()
    network.load_state_dict(weights.load(row), strict=True)
    return network.eval()


def _published(scene: str, device: str) -> Descriptor:
    # Through the registry: an import of the row's module would make its mirrors part of the code
    # that vectors depend on.
    row: Weights = registry.load("weights", "tfeat")[scene]
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
        conventions=conventions.TFEAT,
        provider=f"torch-{torch.device(device).type}",
        network=lambda: _network(row),
    )


def liberty(device: str = "cpu") -> Descriptor:
    """TFeat trained on PhotoTour's Liberty."""
    return _published("liberty", device)


def notredame(device: str = "cpu") -> Descriptor:
    """TFeat trained on PhotoTour's Notre Dame."""
    return _published("notredame", device)


def yosemite(device: str = "cpu") -> Descriptor:
    """TFeat trained on PhotoTour's Yosemite."""
    return _published("yosemite", device)
