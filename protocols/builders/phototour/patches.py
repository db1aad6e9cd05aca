"""Cuts patches of 64 x 64 pixels out of an image."""

from collections.abc import Iterator

import numpy as np
from jaxtyping import UInt8

from protocols.imaging import sampling
from protocols.imaging.frames import Frames, image_from_patch
from protocols.phototour.writer import SIDE


def extract(
    grey: UInt8[np.ndarray, "height width"], frames: Frames
) -> Iterator[tuple[np.ndarray, UInt8[np.ndarray, "n 64 64"]]]:
    """Yields rows of squares and their patches, in any order; squares must lie on the image."""
    image = grey.astype(np.float32)
    yield from sampling.extract(image, image_from_patch(frames), frames.half / (SIDE / 2), SIDE)
