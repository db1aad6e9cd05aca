"""The torch module of a wrapped network, for export."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Bool, UInt8
from torch import nn
from torch.nn import functional


class Combined(nn.Module):
    """Networks, and a function that makes vectors of patches and them."""

    def __init__(self, networks: Sequence[nn.Module], combine: Callable[..., Any]) -> None:
        """Hold the networks, in evaluation mode."""
        super().__init__()
        self.networks = nn.ModuleList(networks).eval()
        self.combine = combine

    def forward(self, patches: UInt8[torch.Tensor, "n height width"]) -> torch.Tensor:
        """Vectors [n, dim] of 8-bit patches of any size."""
        return self.combine(patches, *self.networks)


def packed(bits: Bool[torch.Tensor, "n dim"]) -> UInt8[torch.Tensor, "n bytes"]:
    """Eight bits to a byte, the first is the highest, as `np.packbits` has them."""
    whole = functional.pad(bits.int(), (0, -bits.shape[1] % 8)).unflatten(1, (-1, 8))
    weight = torch.tensor([128, 64, 32, 16, 8, 4, 2, 1], device=bits.device)
    return (whole * weight).sum(dim=2).to(torch.uint8)
