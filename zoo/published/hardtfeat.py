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

from harness import registry
from harness.data import weights
from harness.data.weights import Weights
from harness.distances import L2
from harness.types import Descriptor
from zoo.published import conventions
from zoo.published.describing import describe, resize

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
        deviation, mean = torch.std_mean(x, dim=(1, 2, 3), keepdim=True)
        x = (x - mean) / (deviation + 1e-7)  # a flat patch becomes zero
        x = self.features(x)  # (n, 64, 8, 8)
        x = self.classifier(x).flatten(1)  # (n, 128)
        # The authors add 1e-8: float32 rounds it away, and an exporter takes it for 0, so a vector
        # of zeros would become NaN. A clamp stays, and gives the same vectors.
        return x / (x * x).sum(dim=1, keepdim=True).clamp(min=1e-8).sqrt()


def _network(row: Weights) -> HardTFeat:
    network = HardTFeat()
    published = weights.load(row)
    network.load_state_dict({k: v for k, v in published.items() if k not in UNUSED}, strict=True)
    return network.eval()


def hardtfeat(device: str = "cpu") -> Descriptor:
    """The published weights."""
    row: Weights = registry.load("weights", "hardtfeat")["hardtfeat"]
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
        conventions=conventions.HARDTFEAT,
        provider=f"torch-{torch.device(device).type}",
        network=lambda: _network(row),
    )
