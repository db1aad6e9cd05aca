"""The patches of a training set at the size that a network takes: on disk, mapped into memory."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from filelock import FileLock
from jaxtyping import UInt8

from harness import Dataset, atomic, home
from zoo.backbones import resize

VERSION = 1  # raised whenever the same blocks could give other patches
TOGETHER = 4096  # patches resized at a time

Stored = UInt8[np.ndarray, "n side side"]


def stored(
    dataset: Dataset, side: int, progress: Callable[[int], None] = lambda done: None
) -> Stored:
    """All patches of a data set, resized once; row i is patch i.

    The file is found by the contents of the blocks; processes that want the same one wait.
    """
    contents = "".join(f"{block.size} {block.sha256}\n" for block in dataset.blocks)
    key = hashlib.sha256(f"{VERSION}\n{contents}".encode()).hexdigest()
    file = home.cache("training", f"{key[:32]}-{side}.npy")
    file.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(file.with_suffix(".lock")):
        if not file.is_file():
            _write(file, dataset, side, progress)
    found: Stored = np.load(file, mmap_mode="r")
    return found


def _write(file: Path, dataset: Dataset, side: int, progress: Callable[[int], None]) -> None:
    with atomic.writing(file) as stream:
        shape = (len(dataset), side, side)
        header = {"descr": "|u1", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(stream, header)
        for block in dataset.blocks:
            patches = block.read()
            for i in range(0, len(patches), TOGETHER):
                stream.write(resized(patches[i : i + TOGETHER], side).tobytes())
            progress(block.size)
        stream.flush()
        os.fsync(stream.fileno())


def resized(patches: UInt8[np.ndarray, "n height width"], side: int) -> Stored:
    """Patches at another size, as networks resize them, rounded to grey values."""
    if patches.shape[1:] == (side, side):
        return patches
    x = torch.from_numpy(np.ascontiguousarray(patches))[:, None].float()
    return (resize(x, side)[:, 0] + 0.5).clamp(0, 255).to(torch.uint8).numpy()
