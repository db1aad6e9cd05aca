"""PCA whitening with power law, in float64: `compute_pcapl` of the official code of HPatches.

Vectors are whitened, each number is raised to a power with its sign kept, and the vector is scaled
to unit length. V. Balntas, K. Lenc, A. Vedaldi, K. Mikolajczyk, HPatches, CVPR 2017.
"""

import numpy as np
from jaxtyping import Float, Float64

from harness.errors import InputError

KEPT = 0.6  # of the official code: variances below this quantile are raised to it
POWER = 0.5  # of the official code


def zca(train: Float[np.ndarray, "n d"], *, kept: float = KEPT) -> Float64[np.ndarray, "d d"]:
    """Symmetric whitening matrix of training vectors; centred vectors are multiplied by it.

    Args:
        train: training vectors, not centred.
        kept: quantile of the variances along principal directions; smaller variances are raised
            to it.

    Raises:
        InputError: if the vectors vary in too few directions.
    """
    centred = train.astype(np.float64)
    centred -= centred.mean(axis=0)
    variance, direction = np.linalg.eigh(centred.T @ centred / len(centred))  # ascending
    floor = variance[int(kept * len(variance))]
    if not floor > 0:
        raise InputError(
            f"{len(train)} training vectors of {train.shape[1]} numbers vary in too few directions"
            " to be whitened"
        )
    scale = 1 / np.sqrt(np.maximum(variance, floor))
    return (direction * scale) @ direction.T


def power_law(
    vectors: Float64[np.ndarray, "n d"], *, power: float = POWER
) -> Float64[np.ndarray, "n d"]:
    """The signed power of each number, then unit length; a vector of zeros stays zero."""
    raised = np.sign(vectors) * np.abs(vectors) ** power
    norm = np.linalg.norm(raised, axis=1, keepdims=True)
    return raised / np.where(norm == 0, 1, norm)
