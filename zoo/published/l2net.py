"""L2-Net: seven convolutions with batch normalisation; eight published files, two networks in each.

Y. Tian, B. Fan, F. Wu, L2-Net: deep learning of discriminative patch descriptor in Euclidean space,
CVPR 2017. Weights: https://github.com/yuruntian/L2-Net; no licence is stated.

The mean image of the training set is subtracted from the 32x32 patch; the patch is standardised.
L2-Net CS, for central-surround, takes a 64x64 patch: a second network describes its central half,
and the vector consists of both vectors. "+": trained with turned and mirrored patches.
`zoo.l2net` trains such networks.
"""

from dataclasses import replace

import torch
from jaxtyping import Float, UInt8
from torch import nn

from harness.types import Descriptor
from zoo.published import conventions
from zoo.published.describing import resize
from zoo.published.files.l2net import CONVOLUTIONS, SIDE
from zoo.published.maker import published

LARGE = 64  # pixels of the patch of L2-Net CS


class Normalisation(nn.Module):
    """Batch normalisation by the moments in the file, whose deviation has the epsilon in it."""

    mean: Float[torch.Tensor, " channels"]
    deviation: Float[torch.Tensor, " channels"]
    factor: Float[torch.Tensor, " channels"]
    shift: Float[torch.Tensor, " channels"]

    def __init__(self, channels: int) -> None:
        """Start with the identity."""
        super().__init__()
        for name, start in {"mean": 0.0, "deviation": 1.0, "factor": 1.0, "shift": 0.0}.items():
            self.register_buffer(name, torch.full((channels,), start))

    def forward(self, x: Float[torch.Tensor, "n c h w"]) -> Float[torch.Tensor, "n c h w"]:
        """Normalise each channel."""
        scale = self.factor / self.deviation
        return (x - self.mean[:, None, None]) * scale[:, None, None] + self.shift[:, None, None]


class Tower(nn.Module):
    """One of the two networks in a file."""

    mean: Float[torch.Tensor, "32 32"]
    length: Float[torch.Tensor, "3"]

    def __init__(self) -> None:
        """Start with PyTorch's initial weights and mean 0."""
        super().__init__()
        self.register_buffer("mean", torch.zeros(SIDE, SIDE))
        self.register_buffer("length", torch.tensor([0.0, 1.0, 0.5]))  # constant, factor, power
        self.convolutions = nn.ModuleList(
            nn.Conv2d(inputs, outputs, side, stride, pad)
            for inputs, outputs, side, stride, pad in CONVOLUTIONS
        )
        self.normalisations = nn.ModuleList(
            Normalisation(outputs) for _, outputs, *_ in CONVOLUTIONS
        )

    def forward(self, patches: Float[torch.Tensor, "n 32 32"]) -> Float[torch.Tensor, "n 128"]:
        """Vectors of grey patches."""
        x = patches - self.mean
        deviation, mean = torch.std_mean(x, dim=(1, 2), keepdim=True)
        # The authors add 1e-12, which an exporter takes for 0; a clamp stays.
        x = ((x - mean) / deviation.clamp(min=1e-12))[:, None]  # (n, 1, 32, 32)
        for layer, (convolve, normalise) in enumerate(
            zip(self.convolutions, self.normalisations, strict=True), 1
        ):
            x = normalise(convolve(x))
            x = torch.relu(x) if layer < len(CONVOLUTIONS) else x.flatten(1)
        constant, factor, power = self.length
        squares = constant + factor * (x * x).sum(dim=1, keepdim=True)
        return x / squares.clamp(min=1e-30) ** power  # the clamp keeps zeros from becoming NaN


class L2Net(nn.Module):
    """The network of the whole patch."""

    def __init__(self) -> None:
        """Start with PyTorch's initial weights."""
        super().__init__()
        self.whole = Tower()

    def forward(self, patches: UInt8[torch.Tensor, "n h w"]) -> Float[torch.Tensor, "n 128"]:
        """Describe 8-bit patches of any size."""
        return self.whole(resize(patches, SIDE))


class CentralSurround(nn.Module):
    """L2-Net CS: a network for the patch at half its size, and one for its central half."""

    def __init__(self) -> None:
        """Start with PyTorch's initial weights."""
        super().__init__()
        self.whole, self.centre = Tower(), Tower()

    def forward(self, patches: UInt8[torch.Tensor, "n h w"]) -> Float[torch.Tensor, "n 256"]:
        """Describe 8-bit patches of any size."""
        x = resize(patches, LARGE)  # (n, 64, 64)
        half = halving(LARGE).to(x)
        centre = x[:, LARGE // 4 : -LARGE // 4, LARGE // 4 : -LARGE // 4]
        return torch.cat([self.whole(half @ x @ half.T), self.centre(centre)], dim=1)


def halving(side: int) -> Float[torch.Tensor, "half side"]:
    """How much of each source pixel is in each target pixel, in MATLAB's imresize(image, 0.5).

    It interpolates by cubic splines of slope -0.5, twice as wide against aliasing; the image is
    mirrored at its borders.
    """
    target = torch.arange(side // 2, dtype=torch.float64)
    taps = torch.arange(-4, 6)  # the spline is 8 pixels wide
    centre = 2 * target + 0.5
    source = centre.floor()[:, None] + taps
    t = (source - centre[:, None]).abs() / 2
    near = 1.5 * t**3 - 2.5 * t**2 + 1
    far = -0.5 * t**3 + 2.5 * t**2 - 4 * t + 2
    share = torch.where(t <= 1, near, torch.where(t <= 2, far, 0.0))
    share = share / share.sum(dim=1, keepdim=True)
    mirrored = source.long() % (2 * side)
    mirrored = torch.minimum(mirrored, 2 * side - 1 - mirrored)
    return torch.zeros(side // 2, side, dtype=torch.float64).scatter_add(1, mirrored, share)


def _whole(member: str, device: str) -> Descriptor:
    """L2-Net of a file."""
    unused = [f"centre.{name}" for name in Tower().state_dict()]
    return published("l2net", member, L2Net, conventions.L2NET, device, unused=unused)


def _central_surround(member: str, device: str) -> Descriptor:
    """L2-Net CS of a file."""
    made = published("l2net", member, CentralSurround, conventions.L2NET_CS, device, dim=256)
    return replace(made, name=made.name.replace("l2net", "l2net-cs"))


def liberty(device: str = "cpu") -> Descriptor:
    """L2-Net trained on PhotoTour's Liberty."""
    return _whole("liberty", device)


def notredame(device: str = "cpu") -> Descriptor:
    """L2-Net trained on PhotoTour's Notre Dame."""
    return _whole("notredame", device)


def yosemite(device: str = "cpu") -> Descriptor:
    """L2-Net trained on PhotoTour's Yosemite."""
    return _whole("yosemite", device)


def hpatches(device: str = "cpu") -> Descriptor:
    """L2-Net trained on HPatches."""
    return _whole("hpatches", device)


def liberty_plus(device: str = "cpu") -> Descriptor:
    """L2-Net trained on PhotoTour's Liberty, with turned and mirrored patches."""
    return _whole("liberty+", device)


def notredame_plus(device: str = "cpu") -> Descriptor:
    """L2-Net trained on PhotoTour's Notre Dame, with turned and mirrored patches."""
    return _whole("notredame+", device)


def yosemite_plus(device: str = "cpu") -> Descriptor:
    """L2-Net trained on PhotoTour's Yosemite, with turned and mirrored patches."""
    return _whole("yosemite+", device)


def hpatches_plus(device: str = "cpu") -> Descriptor:
    """L2-Net trained on HPatches, with turned and mirrored patches."""
    return _whole("hpatches+", device)


def cs_liberty(device: str = "cpu") -> Descriptor:
    """L2-Net CS trained on PhotoTour's Liberty."""
    return _central_surround("liberty", device)


def cs_notredame(device: str = "cpu") -> Descriptor:
    """L2-Net CS trained on PhotoTour's Notre Dame."""
    return _central_surround("notredame", device)


def cs_yosemite(device: str = "cpu") -> Descriptor:
    """L2-Net CS trained on PhotoTour's Yosemite."""
    return _central_surround("yosemite", device)


def cs_hpatches(device: str = "cpu") -> Descriptor:
    """L2-Net CS trained on HPatches."""
    return _central_surround("hpatches", device)


def cs_liberty_plus(device: str = "cpu") -> Descriptor:
    """L2-Net CS trained on PhotoTour's Liberty, with turned and mirrored patches."""
    return _central_surround("liberty+", device)


def cs_notredame_plus(device: str = "cpu") -> Descriptor:
    """L2-Net CS trained on PhotoTour's Notre Dame, with turned and mirrored patches."""
    return _central_surround("notredame+", device)


def cs_yosemite_plus(device: str = "cpu") -> Descriptor:
    """L2-Net CS trained on PhotoTour's Yosemite, with turned and mirrored patches."""
    return _central_surround("yosemite+", device)


def cs_hpatches_plus(device: str = "cpu") -> Descriptor:
    """L2-Net CS trained on HPatches, with turned and mirrored patches."""
    return _central_surround("hpatches+", device)
