"""HardTFeat: TFeat's network trained with HardNet's loss.

D. Mishkin, F. Radenovic, J. Matas, Repeatability is not enough: learning affine regions via
discriminability, ECCV 2018, whose code uses it. Weights: MIT, https://github.com/ducha-aiki/affnet.

Beside TFeat: each patch is standardised by its mean and (n - 1) standard deviation, the last layer
is a convolution, and the vector has unit length. The patch is resized to 32x32, bilinear without
antialiasing, as in the code of the same authors for HPatches.
"""

import numpy as np
import torch
from jaxtyping import Float, Float32, UInt8
from torch import nn
from torch.backends import cudnn

from harness import weights
from harness.distances import L2
from harness.types import Descriptor, Patches
from harness.weights import Weights

SIDE = 32
TOGETHER = 64  # patches in one pass; more take as long for each
UNUSED = ("SIFT.gx.0.weight", "SIFT.gy.0.weight", "SIFT.pk.0.weight")  # of a SIFT kept beside it


def resize(patches: UInt8[torch.Tensor, "n height width"]) -> Float[torch.Tensor, "n 32 32"]:
    """As cv2.resize, bit for bit: weights of 11 bits, and what is rounded off between two passes.

    At 32 pixels all numbers are whole and below 2^24, or products with a power of 2: float32 holds
    them exactly, in every runtime.
    """
    (up, low), (left, right) = _ends(patches, 1), _ends(patches, 2)
    x = (patches.float() @ (left + right).T / 16).floor()  # (n, height, 32)
    x = (up @ x / 65536).floor() + (low @ x / 65536).floor()  # (n, 32, 32)
    return ((x + 2) / 4).floor()


def _ends(patches: UInt8[torch.Tensor, "n h w"], axis: int) -> list[Float[torch.Tensor, "32 _"]]:
    """What the pixel before each target pixel gives to it along an axis, and the one behind."""
    source, device = patches.shape[axis], patches.device
    at = (torch.arange(SIDE, device=device) + 0.5) * (source / SIDE) - 0.5
    before = at.floor()
    behind = at - before
    pixel = torch.arange(source, device=device)
    return [
        (pixel == one.clamp(0, source - 1)[:, None]) * (2048 * share)[:, None]
        for one, share in ((before, 1 - behind), (before + 1, behind))
    ]


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
        return x / torch.sqrt((x * x).sum(dim=1, keepdim=True) + 1e-8)


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


WEIGHTS = {
    "hardtfeat": Weights(
        name="hardtfeat",
        file="HardTFeat.pth",
        sha256="cd935728293309b666c20525696c8d323be5ffdac07b3340f4c1c1314e0b6542",
        size=2401008,
        urls=("https://github.com/ducha-aiki/affnet/raw/da7cf51/pretrained/HardTFeat.pth",),
        licence="MIT",
        # Which scenes it saw is not stated, so none of PhotoTour's is counted as unseen.
        trained_on=frozenset(f"phototour/{s}" for s in ("liberty", "notredame", "yosemite")),
        source="ducha-aiki/affnet@da7cf51",
    )
}


def _network(row: Weights) -> HardTFeat:
    network = HardTFeat()
    published = weights.load(row)
    network.load_state_dict({k: v for k, v in published.items() if k not in UNUSED}, strict=True)
    return network.eval()


def hardtfeat(device: str = "cpu") -> Descriptor:
    """The published weights."""
    row = WEIGHTS["hardtfeat"]
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
