"""GeoDesc: L2-Net's layers, trained on patches of reconstructed scenes; one published file.

Z. Luo, T. Shen, L. Zhou, S. Zhu, R. Zhang, Y. Yao, T. Fang, L. Quan, GeoDesc: learning local
descriptors by integrating geometry constraints, ECCV 2018. Weights:
https://github.com/lzx551402/geodesc, MIT.

As the authors' code for HPatches: the patch is resized to 32x32 without rounding, and standardised.
"""

import torch
from jaxtyping import Float, UInt8
from torch import nn
from torch.nn import functional

from harness.types import Descriptor
from zoo.published import conventions
from zoo.published.describing import interpolate
from zoo.published.files.geodesc import CONVOLUTIONS
from zoo.published.layers import unit
from zoo.published.maker import published


class GeoDesc(nn.Module):
    """Seven convolutions; their weights include the batch normalisation after the first six."""

    def __init__(self) -> None:
        """Start with PyTorch's initial weights."""
        super().__init__()
        self.convolutions = nn.ModuleList(
            nn.Conv2d(inputs, outputs, side, stride)
            for inputs, outputs, side, stride, _ in CONVOLUTIONS
        )

    def forward(self, patches: UInt8[torch.Tensor, "n h w"]) -> Float[torch.Tensor, "n 128"]:
        """Describe 8-bit patches of any size."""
        x = interpolate(patches)[:, None]  # (n, 1, 32, 32)
        x = x - x[:, :, :1, :1]  # so that a flat patch is zero in spite of rounding
        deviation, mean = torch.std_mean(x, dim=(1, 2, 3), correction=0, keepdim=True)
        # The authors add 1e-8, which an exporter takes for 0; a clamp stays.
        x = (x - mean) / deviation.clamp(min=1e-8)
        for convolution, (_, _, side, stride, padding) in zip(
            self.convolutions, CONVOLUTIONS, strict=True
        ):
            if padding == "SAME":
                x = torch.relu(convolution(functional.pad(x, same(side, stride))))
            else:
                x = convolution(x)  # (n, 128, 1, 1)
        return unit(x.flatten(1))


def same(side: int, stride: int) -> tuple[int, int, int, int]:
    """Padding "SAME" of TensorFlow, left, right, up and down, if the stride divides the side.

    It is smaller at the left and above: with a kernel of 3 and a stride of 2, it is nothing there.
    """
    before = (side - stride) // 2
    behind = side - stride - before
    return before, behind, before, behind


def geodesc(device: str = "cpu") -> Descriptor:
    """The published weights."""
    return published("geodesc", "geodesc", GeoDesc, conventions.GEODESC, device)
