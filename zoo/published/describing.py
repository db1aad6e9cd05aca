"""Describes patches by a published network: a fixed batch, no TF32, OpenCV's way to resize."""

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import nn

from harness.distances import L2, Distance
from harness.types import Patches, Vectors
from zoo.exact import exact

TOGETHER = 64  # patches in one pass; more take as long for each
SIDE = 32  # of resized patches


def describe(
    network: nn.Module,
    patches: Patches,
    device: str,
    dim: int = 128,
    distance: Distance = L2,
    *,
    together: int = TOGETHER,
) -> Vectors:
    """Vectors of 8-bit patches of any size, from a network that lies on the device.

    Args:
        network: in evaluation mode.
        patches: any number of them.
        device: of the network.
        dim: numbers in a vector, or bits.
        distance: between vectors.
        together: patches in one pass.
    """
    rows = np.empty((len(patches), distance.columns(dim)), distance.dtype)
    for i in range(0, len(patches), together):
        part = rows[i : i + together]
        # Always as many patches: for another number, PyTorch would round sums in another order.
        batch = np.zeros((together, *patches.shape[1:]), np.uint8)
        batch[: len(part)] = patches[i : i + together]
        with torch.inference_mode(), exact():
            part[:] = network(torch.from_numpy(batch).to(device))[: len(part)].cpu().numpy()
    return rows


def resize(
    patches: UInt8[torch.Tensor, "n height width"], side: int = SIDE
) -> Float[torch.Tensor, "n side side"]:
    """Patches at another size, bit for bit as cv2.resize: 11-bit weights, rounding in each pass.

    At 32 and 64 pixels all numbers are whole and below 2^24, or products with a power of 2: float32
    holds them exactly, in every runtime.
    """
    (up, low), (left, right) = _ends(patches, 1, side), _ends(patches, 2, side)
    x = (patches.float() @ (left + right).T / 16).floor()  # (n, height, side)
    x = (up @ x / 65536).floor() + (low @ x / 65536).floor()  # (n, side, side)
    return ((x + 2) / 4).floor()


def interpolate(
    patches: UInt8[torch.Tensor, "n height width"], side: int = SIDE
) -> Float[torch.Tensor, "n side side"]:
    """Patches at another size, not rounded, as cv2.resize of float32 patches."""
    (up, low), (left, right) = _ends(patches, 1, side), _ends(patches, 2, side)
    return ((up + low) / 2048) @ patches.float() @ ((left + right) / 2048).T


def _ends(
    patches: UInt8[torch.Tensor, "n h w"], axis: int, side: int
) -> list[Float[torch.Tensor, "{side} _"]]:
    """Weights of the source pixels before and behind each target pixel, along an axis."""
    source, device = patches.shape[axis], patches.device
    at = (torch.arange(side, device=device) + 0.5) * (source / side) - 0.5
    before = at.floor()
    behind = at - before
    pixel = torch.arange(source, device=device)
    return [
        (pixel == place.clamp(0, source - 1)[:, None]) * (2048 * share)[:, None]
        for place, share in ((before, 1 - behind), (before + 1, behind))
    ]
