"""MStd of the HPatches paper: the mean and the standard deviation of a patch."""

import numpy as np

from harness import Descriptor
from harness.distances import L2


def meanstd() -> Descriptor:
    """The entry point: called without arguments, only when the descriptor is asked for."""
    return Descriptor("example.meanstd", describe, L2, dim=2)


def describe(patches: np.ndarray) -> np.ndarray:
    """From n patches, uint8 [n, side, side], to n vectors, float32 [n, 2]; n may be 0."""
    moments = patches.mean(axis=(1, 2)), patches.std(axis=(1, 2))
    return np.stack(moments, axis=1).astype(np.float32)
