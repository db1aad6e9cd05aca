"""Moves what a step needs to its device, without waiting for the work that the device still has."""

import numpy as np
import torch
from jaxtyping import UInt8

SHARE = 2  # of the device's free memory, one half at most
TOGETHER = 65536  # patches copied at a time


def sent(x: torch.Tensor, device: torch.device) -> torch.Tensor:
    """A tensor of the CPU on the device; a GPU copies it from pinned memory, while it computes."""
    if device.type == "cpu":
        return x
    if device.type == "cuda":
        x = x.pin_memory()
    return x.to(device, non_blocking=True)


def resident(
    patches: UInt8[np.ndarray, "all side side"], device: torch.device
) -> UInt8[torch.Tensor, "all side side"] | None:
    """The patches in the memory of a GPU if they take half of what is free there, or less.

    Then a step sends row numbers only. None: they do not fit, or the device is the CPU.
    """
    if device.type == "cpu":
        return None
    free, _ = torch.get_device_module(device).mem_get_info(device)
    if SHARE * patches.nbytes > free:
        return None
    kept = torch.empty(patches.shape, dtype=torch.uint8, device=device)
    for i in range(0, len(patches), TOGETHER):
        kept[i : i + TOGETHER] = torch.from_numpy(np.array(patches[i : i + TOGETHER]))
    return kept
