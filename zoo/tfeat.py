"""TFeat: a shallow network trained on triplets; three published sets of weights.

V. Balntas, E. Riba, D. Ponsa, K. Mikolajczyk, Learning local feature descriptors with triplets
and shallow convolutional neural networks, BMVC 2016. Weights: MIT, https://github.com/vbalnt/tfeat.

As the authors' code: the 8-bit patch is resized to 32x32, bilinear without antialiasing; grey
values enter as 0 .. 255 and the network's first layer standardises each patch; the vector is the
tanh output, not unit length.
"""

import numpy as np
import torch
from jaxtyping import Float, Float32, UInt8
from torch import nn
from torch.backends import cudnn

from harness import registry
from harness.data import weights
from harness.data.weights import Weights
from harness.distances import L2
from harness.types import Descriptor, Patches

SIDE = 32
TOGETHER = 64  # patches in one pass; more take as long for each


def resize(patches: UInt8[torch.Tensor, "n height width"]) -> Float[torch.Tensor, "n 32 32"]:
    """Patches at 32x32, bit for bit as cv2.resize: 11-bit weights, its rounding in each pass.

    At 32 pixels all numbers are whole and below 2^24, or products with a power of 2: float32 holds
    them exactly, in every runtime.
    """
    (up, low), (left, right) = _ends(patches, 1), _ends(patches, 2)
    x = (patches.float() @ (left + right).T / 16).floor()  # (n, height, 32)
    x = (up @ x / 65536).floor() + (low @ x / 65536).floor()  # (n, 32, 32)
    return ((x + 2) / 4).floor()


def _ends(patches: UInt8[torch.Tensor, "n h w"], axis: int) -> list[Float[torch.Tensor, "32 _"]]:
    """Weights of the source pixels before and behind each target pixel, along an axis."""
    source, device = patches.shape[axis], patches.device
    at = (torch.arange(SIDE, device=device) + 0.5) * (source / SIDE) - 0.5
    before = at.floor()
    behind = at - before
    pixel = torch.arange(source, device=device)
    return [
        (pixel == place.clamp(0, source - 1)[:, None]) * (2048 * share)[:, None]
        for place, share in ((before, 1 - behind), (before + 1, behind))
    ]


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


def describe(network: nn.Module, patches: Patches, device: str) -> Float32[np.ndarray, "n 128"]:
    """Vectors of 8-bit patches of any size, from a network that lies on the device."""
    rows = np.empty((len(patches), 128), np.float32)
    for i in range(0, len(patches), TOGETHER):
        part = rows[i : i + TOGETHER]
        # Always as many patches: for another number, PyTorch would round sums in another order.
        batch = np.zeros((TOGETHER, *patches.shape[1:]), np.uint8)
        batch[: len(part)] = patches[i : i + TOGETHER]
        with torch.inference_mode(), cudnn.flags(enabled=True, allow_tf32=False):
            part[:] = network(torch.from_numpy(batch).to(device))[: len(part)].cpu().numpy()
    return rows


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
