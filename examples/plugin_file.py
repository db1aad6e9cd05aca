"""A descriptor in a single file: nothing to install.

harness check --model examples/plugin_file.py:shrunk
harness check --model examples/plugin_file.py:brighter
harness check --model examples/plugin_file.py:maker
"""

import numpy as np

from harness import Descriptor
from harness.distances import L2

CELLS = 8


def shrunk(patches: np.ndarray) -> np.ndarray:
    """A plain function: float32 rows are compared by L2. Here 8 x 8 grey values, standardised."""
    n, side, _ = patches.shape
    edges = np.linspace(0, side, CELLS + 1).astype(int)[:-1]
    sums = np.add.reduceat(np.add.reduceat(patches.astype(np.float32), edges, 1), edges, 2)
    pixels = np.maximum(np.diff([*edges, side]), 1)  # along a cell: not all have as many
    means = sums / np.outer(pixels, pixels).astype(np.float32)
    cells = means.reshape(n, CELLS * CELLS)  # not (n, -1), which fails for no patches
    cells -= cells.mean(axis=1, keepdims=True)
    spread = cells.std(axis=1, keepdims=True)
    return cells / np.where(spread == 0, 1, spread)  # a flat patch stays the zero vector


def brighter(patches: np.ndarray) -> np.ndarray:
    """A plain function: bits packed into uint8 are compared by Hamming distance."""
    return np.packbits(shrunk(patches) > 0, axis=1)


def maker() -> Descriptor:
    """A function without arguments makes a Descriptor, which can say more of itself."""
    return Descriptor("shrunk", shrunk, L2, CELLS * CELLS, licence="CC0-1.0")
