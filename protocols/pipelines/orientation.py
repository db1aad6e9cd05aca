"""Reads the EXIF orientation of an image: how viewers turn the stored pixels.

Coordinates always refer to the stored pixels, as in COLMAP and hloc. Only the direction of
keypoints without an angle follows the orientation: their patches are upright as the image is shown.
"""

from pathlib import Path

import numpy as np
from jaxtyping import Float64
from PIL import Image

from protocols.imaging.affine import AffineFrames

TAG = 0x0112  # "Orientation" of EXIF 2.3

STORED_FROM_SHOWN = {
    1: ((1, 0), (0, 1)),
    2: ((-1, 0), (0, 1)),
    3: ((-1, 0), (0, -1)),
    4: ((1, 0), (0, -1)),
    5: ((0, 1), (1, 0)),
    6: ((0, 1), (-1, 0)),
    7: ((0, -1), (-1, 0)),
    8: ((0, -1), (1, 0)),
}
"""Directions in the stored image of a step to the right (column 1) and down (column 2) as shown."""


def stored_from_shown(file: Path) -> Float64[np.ndarray, "2 2"]:
    """The matrix from directions in the shown image to directions in the stored image."""
    try:
        with Image.open(file) as image:
            value = image.getexif().get(TAG, 1)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):  # damaged EXIF
        value = 1
    return np.array(STORED_FROM_SHOWN.get(value, STORED_FROM_SHOWN[1]), np.float64)


def upright(file: Path, frames: AffineFrames) -> AffineFrames:
    """Circles without direction, turned so that their patches are upright as the image is shown."""
    return AffineFrames(frames.x, frames.y, frames.matrix @ stored_from_shown(file), frames.score)
