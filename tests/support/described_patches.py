"""Patches to describe, and the official vectors of HPatches' form to compare with."""

from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np


def smooth_patches(n: int, side: int = 65) -> np.ndarray:
    noise = np.random.default_rng(n).integers(0, 256, (n, side, side), np.uint8)
    found = np.array([cv2.GaussianBlur(patch, (0, 0), 2) for patch in noise], np.uint8)
    found = found.reshape(n, side, side)
    found.flags.writeable = False
    return found


def read_strips(folder: Path) -> Iterator[tuple[str, np.ndarray]]:
    for file in sorted(folder.glob("*/*.png")):
        strip = cv2.imread(str(file), cv2.IMREAD_GRAYSCALE)
        assert strip is not None
        yield f"{file.parent.name}/{file.stem}", strip.reshape(-1, 65, 65)


def official(shared: Path, method: str, strip: str) -> np.ndarray:
    file = shared / "hpatches" / "mini" / "descriptors" / method / f"{strip}.csv"
    return np.loadtxt(file, delimiter=",", dtype=np.float32)
