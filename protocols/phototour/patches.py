"""Reads the patches of an image, 64 x 64 pixels each."""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float64, UInt8

from protocols.hpatches.frames import Frames, image_from_patch
from protocols.hpatches.sampling import ADDED, READ, STEPS, read, rounded, smooth
from protocols.phototour.writer import SIDE


def extract(
    grey: UInt8[np.ndarray, "height width"], frames: Frames
) -> Iterator[tuple[np.ndarray, UInt8[np.ndarray, "n 64 64"]]]:
    """Patches of the squares, which lie on the image, with the rows of the squares; in any order.

    A patch whose pixels lie s > 1 image pixels apart is read from the image smoothed by
    0.5 sqrt(s^2 - 1), as in `hpatches.sampling`.
    """
    image = grey.astype(np.float32)
    line = (np.arange(SIDE) - (SIDE - 1) / 2) / (SIDE / 2)
    maps = image_from_patch(frames)
    level = np.searchsorted(STEPS, frames.half / (SIDE / 2))
    for current in range(int(level.max(initial=0)) + 1):
        if current:
            image = smooth(image, ADDED[current - 1])
        rows = np.flatnonzero(level == current)
        for i in range(0, len(rows), READ):
            chunk = rows[i : i + READ]
            yield chunk, rounded(read(image, maps[chunk], line, line))


def correlation(
    a: UInt8[np.ndarray, "n 64 64"], b: UInt8[np.ndarray, "n 64 64"]
) -> Float64[np.ndarray, " n"]:
    """Normalised cross-correlation of each a with its b, in [-1, 1]; 0 where either is flat."""
    x, y = (
        p.reshape(len(p), -1) - p.reshape(len(p), -1).mean(1, dtype=np.float64)[:, None]
        for p in (a, b)
    )
    norm = np.sqrt((x * x).sum(1) * (y * y).sum(1))
    return np.divide((x * y).sum(1), norm, out=np.zeros(len(x)), where=norm > 0)
