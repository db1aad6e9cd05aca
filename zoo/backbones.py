"""Networks that several methods share, with their input resizing and output packing.

Every network takes float grey patches [n, 1, side, side] with values in [0, 255], normalises them
itself, and gives vectors [n, dim].
"""

from collections.abc import Mapping
from typing import Annotated

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from torch import nn
from torch.nn import functional

from harness.distances import HAMMING, L2, Distance
from zoo.training.later import Later
from zoo.training.together import summed, together

FLAT = 0.1  # grey values: less is rounding, not content, and is not stretched to deviation 1
SHORT = 1e-6  # length below which a vector is not stretched to 1; ONNX exporters keep a clamp


def resize(
    patches: Float[torch.Tensor, "n 1 height width"], side: int
) -> Float[torch.Tensor, "n 1 side side"]:
    """Patches at another size: linear interpolation, with antialiasing where a patch shrinks.

    The weights of Pillow's BILINEAR and of `interpolate(..., antialias=True)`, as two products of
    matrices: any input size, the same numbers in every runtime, on every device. What differs from
    the first pixel is what is resized, so that rounding adds no structure to a flat patch.
    """
    down, across = (_shares(n, side, patches) for n in patches.shape[-2:])
    base = patches[..., :1, :1]
    return base + down @ (patches - base) @ across.T


def _shares(
    source: int | torch.SymInt, target: int, like: torch.Tensor
) -> Float[torch.Tensor, "target source"]:
    """How much of each target pixel comes from each source pixel."""
    step = source / target
    centre = (torch.arange(target, device=like.device) + 0.5) * step - 0.5
    pixel = torch.arange(source, device=like.device)  # type: ignore[arg-type]  # symbols, too
    shares = (1 - (pixel - centre[:, None]).abs() / torch.sym_max(step, 1.0)).clamp(min=0)
    return (shares / shares.sum(dim=1, keepdim=True)).to(like.dtype)


def standardise(patches: Float[torch.Tensor, "n 1 h w"]) -> Float[torch.Tensor, "n 1 h w"]:
    """Each patch less its mean, over its deviation; a flat patch becomes zero."""
    centred = patches - patches.mean(dim=(1, 2, 3), keepdim=True)
    variance = centred.square().mean(dim=(1, 2, 3), keepdim=True)
    return centred / variance.clamp(min=FLAT**2).sqrt()  # in this order the gradient stays finite


def unit(vectors: Float[torch.Tensor, "n dim"]) -> Float[torch.Tensor, "n dim"]:
    """Vectors of length 1, in float32; a vector shorter than 1e-6 is divided by 1e-6."""
    vectors = vectors if vectors.dtype == torch.float64 else vectors.float()
    length = vectors.square().sum(dim=1, keepdim=True).clamp(min=SHORT**2).sqrt()
    return vectors / length


class Network(nn.Module):
    """Base class of trained networks: float patches [n, 1, side, side] to vectors [n, dim]."""

    side: int  # pixels of a patch that it takes
    dim: int
    distance: Distance = L2  # HAMMING: the signs of its vectors are compared
    codes = False  # True: it is trained for the bits of a code, and gives activations of any length
    inherited: frozenset[str] = frozenset()  # training data of the weights that it starts from
    lr_factors: Mapping[
        str, float
    ] = {}  # of the learning rate, by first parts of parameters' names

    def study(
        self, patches: UInt8[np.ndarray, "all side side"], rows: Int[np.ndarray, " n"]
    ) -> None:
        """Fit the input normalisation before the first step; by default there is none.

        Args:
            patches: at the size that the network takes.
            rows: those that are trained on.
        """


class Deployed(nn.Module):
    """A trained network as users have it: 8-bit patches of any size in, vectors out."""

    def __init__(self, network: Network) -> None:
        """Wrap a network, and put it into evaluation mode."""
        super().__init__()
        self.network = network.eval()

    def forward(self, patches: UInt8[torch.Tensor, "n height width"]) -> torch.Tensor:
        """Float32 vectors [n, dim]; where signs are compared, 8 to a byte, 0 and above is 1."""
        x = resize(patches[:, None].float(), self.network.side)
        vectors = self.network(x)
        if self.network.distance is not HAMMING:
            return vectors
        bits = (vectors >= 0).unflatten(1, (-1, 8))
        weight = torch.tensor([128, 64, 32, 16, 8, 4, 2, 1], device=bits.device)
        return (bits * weight).sum(dim=2).to(torch.uint8)


class BatchNorm(nn.BatchNorm2d):
    """Batch normalisation over the patches of all processes, by default without scale and shift."""

    running_mean: torch.Tensor
    running_var: torch.Tensor
    num_batches_tracked: torch.Tensor
    momentum: float

    def __init__(self, channels: int, *, learned: bool = False) -> None:
        """Start with mean 0 and variance 1.

        Args:
            channels: number of channels.
            learned: whether it has a scale and a shift of each channel, which start at 1 and 0.
        """
        super().__init__(channels, affine=learned)

    def forward(self, x: Float[torch.Tensor, "n c h w"]) -> Float[torch.Tensor, "n c h w"]:
        """Normalise each channel by the batch in training, by the running averages otherwise."""
        if not (self.training and together() > 1):
            return super().forward(x)
        wide = x.float()
        here = wide.new_tensor([wide.numel() / wide.shape[1]])
        sums = torch.cat([wide.sum(dim=(0, 2, 3)), here])
        *totals, count = summed(sums).split([wide.shape[1], 1])
        mean = totals[0] / count
        centred = wide - mean[:, None, None]
        variance = summed(centred.square().sum(dim=(0, 2, 3))) / count
        with torch.no_grad():
            self.running_mean.lerp_(mean, self.momentum)
            self.running_var.lerp_(variance * (count / (count - 1)), self.momentum)
            self.num_batches_tracked += 1
        normal = centred / (variance[:, None, None] + self.eps).sqrt()
        if self.affine:
            normal = normal * self.weight[:, None, None] + self.bias[:, None, None]
        return normal.to(x.dtype)


class Whole(nn.Conv2d):
    """A convolution as large as its input; in training one matrix product, for speed."""

    def forward(self, x: Float[torch.Tensor, "n c h w"]) -> Float[torch.Tensor, "n dim 1 1"]:
        """One vector of each map, whose last axes are 1."""
        if not self.training:
            return super().forward(x)
        flat = (maps.permute(0, 2, 3, 1).flatten(1) for maps in (x, self.weight))  # channels last
        return functional.linear(*flat)[..., None, None]


class L2Net(Network):
    """Seven convolutions to 128 numbers. Y. Tian, B. Fan, F. Wu, L2-Net, CVPR 2017, table 1.

    1,334,560 weights and no biases; batch normalisation, without scale and shift, after each layer.
    """

    side = 32
    dim = 128

    def __init__(
        self, *, dropout: float = 0.0, learned_bn: Annotated[bool, Later(False)] = False
    ) -> None:
        """Start with orthogonal weights of gain 0.6, as the released code of HardNet does.

        The papers of L2-Net, mixed context, SOSNet and AdaSample do not say how they start.

        Args:
            dropout: share of the last layer's inputs that are set to zero in training;
                0.3 in HardNet's released code with learning rate 10, 0.1 in DOAP.
            learned_bn: whether batch normalisation learns scale and shift, except after the first
                and after the last layer, as in curve C of figure 3 of L2-Net's paper.
        """
        super().__init__()
        layers: list[nn.Module] = []
        channels = 1
        for width, stride in ((32, 1), (32, 1), (64, 2), (64, 1), (128, 2), (128, 1)):
            convolution = nn.Conv2d(channels, width, 3, stride=stride, padding=1, bias=False)
            # In place is a fifth faster, but a loss may need the input of the first ReLU.
            normal = BatchNorm(width, learned=learned_bn and bool(layers))
            layers += [convolution, normal, nn.ReLU(inplace=bool(layers))]
            channels = width
        self.first = nn.Sequential(*layers[:2])
        self.features = nn.Sequential(*layers[2:])
        self.dropout = nn.Dropout(dropout)
        self.last = nn.Sequential(Whole(128, self.dim, 8, bias=False), BatchNorm(self.dim))
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.orthogonal_(module.weight, gain=0.6)

    def normalised(self, patches: Float[torch.Tensor, "n 1 32 32"]) -> torch.Tensor:
        """Patches as the first layer sees them."""
        return standardise(patches)

    def maps(
        self, patches: Float[torch.Tensor, "n 1 32 32"], *, every: bool = False
    ) -> tuple[torch.Tensor, ...]:
        """The first layer's output [n, 32, 32, 32], the last's [n, 128], and the unit vectors.

        Args:
            patches: grey patches.
            every: whether to give the outputs of the five layers between first and last, too.
        """
        first = self.first(self.normalised(patches))  # (n, 32, 32, 32)
        between, x = _each_output(self.features, first) if every else ((), self.features(first))
        last = self.last(self.dropout(x)).flatten(1)  # (n, 128)
        return first, *between, last, unit(last)

    def forward(self, patches: Float[torch.Tensor, "n 1 32 32"]) -> Float[torch.Tensor, "n 128"]:
        """Unit vectors of grey patches."""
        return self.maps(patches)[-1]


def _each_output(
    layers: nn.Sequential, x: torch.Tensor
) -> tuple[tuple[torch.Tensor, ...], torch.Tensor]:
    """The output of each batch normalisation of some layers, and the output of the last layer."""
    outputs = []
    for layer in layers:
        # In place, ReLU would overwrite the output.
        x = functional.relu(x) if isinstance(layer, nn.ReLU) else layer(x)
        if isinstance(layer, BatchNorm):
            outputs.append(x)
    return tuple(outputs), x
