"""Grey images made at random, patches cut from them, and strips of patches as PNG.

A strip is decoded at the speed of the official ones: as there, pixels are predicted by three
neighbours (Paeth's filter), and a pixel takes about 0.43 bytes. Contrast and slopes of a patch are
like those of an official one, too (standard deviation 46, mean step between rows 2.5).
"""

import cv2
import numpy as np
from jaxtyping import Int, UInt8

SIDE = 1024  # pixels of an image
COARSEST = 32  # cells along a side of the coarsest grid; each next grid is twice as fine
FINEST = 512
ROUGHNESS = 1.4  # how amplitudes fall with the number of cells
CONTRAST = 52.0  # standard deviation of an image, grey values

PNG = (
    *(cv2.IMWRITE_PNG_COMPRESSION, 2),  # higher levels save 8 % and take five times as long
    *(cv2.IMWRITE_PNG_FILTER, cv2.IMWRITE_PNG_FILTER_PAETH),
    *(cv2.IMWRITE_PNG_STRATEGY, cv2.IMWRITE_PNG_STRATEGY_DEFAULT),
)

Image = UInt8[np.ndarray, "1024 1024"]


def texture(rng: np.random.Generator) -> Image:
    """An image: the sum of smooth grids of random numbers, finer grids being fainter."""
    total = np.zeros((SIDE, SIDE), np.float32)
    cells = COARSEST
    while cells <= FINEST:
        grid = rng.standard_normal((cells, cells), dtype=np.float32)
        total += cv2.resize(grid, (SIDE, SIDE), interpolation=cv2.INTER_CUBIC) / cells**ROUGHNESS
        cells *= 2
    total *= CONTRAST / total.std()
    return np.clip(total + 128, 0, 255).astype(np.uint8)


def cut(
    image: Image, x: Int[np.ndarray, " n"], y: Int[np.ndarray, " n"], side: int
) -> UInt8[np.ndarray, "n side side"]:
    """Squares of an image; x and y are their upper left corners."""
    return np.lib.stride_tricks.sliding_window_view(image, (side, side))[y, x]


def strip(patches: UInt8[np.ndarray, "n side side"]) -> bytes:
    """A column of patches as a PNG file."""
    column = patches.reshape(-1, patches.shape[-1])
    return cv2.imencode(".png", column, PNG)[1].tobytes()
