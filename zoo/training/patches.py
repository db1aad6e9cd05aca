"""Stores the patches of a training set on disk, at a network's size, for memory maps."""

from collections.abc import Callable
from io import RawIOBase

import numpy as np
import torch
from jaxtyping import UInt8

from harness import Dataset, parallel
from harness import cache as caches
from harness.evaluation import AHEAD
from harness.types import Patches
from zoo.backbones import resize

VERSION = 1  # raised whenever the same blocks could give other patches
TOGETHER = 4096  # patches resized at a time

Stored = UInt8[np.ndarray, "n side side"]


def stored(
    dataset: Dataset, side: int, progress: Callable[[int], None] = lambda done: None
) -> Stored:
    """All patches of a data set, resized; row i is patch i.

    The file is kept in the cache, by the contents of the blocks. It is made once; other processes
    wait for it.
    """

    def write(stream: RawIOBase) -> None:
        header = {"descr": "|u1", "fortran_order": False, "shape": (len(dataset), side, side)}
        np.lib.format.write_array_header_1_0(stream, header)
        read = parallel.ahead(lambda b: small(b.read()), dataset.blocks, lambda b: b.size, AHEAD)
        for block, patches in zip(dataset.blocks, read, strict=True):
            stream.write(patches.tobytes())
            progress(block.size)

    def small(patches: Patches) -> Stored:
        starts = range(0, len(patches), TOGETHER)
        parts = [resized(patches[i : i + TOGETHER], side) for i in starts]
        return np.concatenate([np.empty((0, side, side), np.uint8), *parts])

    blocks = [[block.size, block.sha256] for block in dataset.blocks]
    origin = {"version": VERSION, "side": side, "blocks": blocks}
    patches: Stored = np.load(caches.kept("training").file(origin, write), mmap_mode="r")
    return patches


def resized(patches: UInt8[np.ndarray, "n height width"], side: int) -> Stored:
    """Patches at another size, as networks resize them, rounded to grey values."""
    if patches.shape[1:] == (side, side):
        return patches
    x = torch.from_numpy(np.ascontiguousarray(patches))[:, None].float()
    return (resize(x, side)[:, 0] + 0.5).clamp(0, 255).to(torch.uint8).numpy()
