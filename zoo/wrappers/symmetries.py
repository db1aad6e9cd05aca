"""`dihedral-mean`: vectors that mirroring a patch and quarter turns do not change."""

from typing import Any

import numpy as np

from harness.types import Descriptor
from harness.wrapping import Wrapper
from zoo.wrappers.compose import NUMBERS, mean


def dihedral_mean(model: Descriptor) -> Descriptor:
    """The mean vector of the eight symmetries of the square patch; not of unit length."""
    return mean(model, _symmetries)


def _symmetries(patches: Any) -> list[Any]:
    """The patch and its quarter turns, each also mirrored; of an array or a tensor [n, side, side].

    They are the patch with rows and columns exchanged or not, each in either order.
    """
    return [
        turned
        for exchanged in (patches, patches.swapaxes(1, 2))
        for mirrored in (exchanged, _reversed(exchanged, 1))
        for turned in (mirrored, _reversed(mirrored, 2))
    ]


def _reversed(patches: Any, axis: int) -> Any:
    """Patches with an axis in reverse order; tensors have no slices of step -1."""
    return np.flip(patches, axis) if isinstance(patches, np.ndarray) else patches.flip(axis)


DIHEDRAL_MEAN = Wrapper(dihedral_mean, distances=NUMBERS)
