"""Reads the patches of an image, 64 x 64 pixels each."""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float64, UInt8

from protocols.images import sampling
from protocols.images.frames import Frames, image_from_patch
from protocols.phototour.writer import SIDE


def extract(
    grey: UInt8[np.ndarray, "height width"], frames: Frames
) -> Iterator[tuple[np.ndarray, UInt8[np.ndarray, "n 64 64"]]]:
    """Patches of squares, which lie on the image, with the rows of the squares; in any order."""
    image = grey.astype(np.float32)
    yield from sampling.extract(image, image_from_patch(frames), frames.half / (SIDE / 2), SIDE)


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
