"""Masks of images in COLMAP's form: `MASKS/NAME.png`; keypoints on black pixels are dropped."""

from pathlib import Path

import numpy as np

from harness.errors import InputError
from harness.files import folders
from protocols.imaging.affine import AffineFrames
from protocols.imaging.grey import read_grey
from protocols.pipelines.photographs import Photograph


def file_of(masks: Path, name: str) -> Path:
    """The path of an image's mask; it may be missing."""
    return folders.at(masks, f"{name}.png")


def kept(masks: Path | None, photograph: Photograph, frames: AffineFrames) -> AffineFrames:
    """The keypoints whose nearest pixel is not black in the mask; all if there is no mask.

    Raises:
        InputError: if the mask has another size than the image.
    """
    if masks is None or not (file := file_of(masks, photograph.name)).is_file():
        return frames
    mask = read_grey(file)
    if mask.shape != (photograph.height, photograph.width):
        raise InputError(
            f"{file} has {mask.shape[1]} x {mask.shape[0]} pixels, its image"
            f" {photograph.width} x {photograph.height}: a mask has the size of its image as stored"
        )
    column = np.clip(np.rint(frames.x), 0, photograph.width - 1).astype(np.intp)
    row = np.clip(np.rint(frames.y), 0, photograph.height - 1).astype(np.intp)
    return frames.take(np.flatnonzero(mask[row, column]))
