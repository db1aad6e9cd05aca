"""PCA whitening with power law, the "+" of HPatches' tables, as in the official Python code."""

import numpy as np
from jaxtyping import Float

from harness import Descriptions
from harness.distances import L2
from harness.errors import InputError
from protocols.hpatches.reader import HPatches

KEPT = 0.6  # variances below this quantile are raised to it before whitening


def whiten(descriptions: Descriptions, opened: HPatches) -> Descriptions:
    """Vectors after ZCA fitted on the training part, signed square root, and unit length.

    As in the official code, all steps and the distances are float64, and each strip is centred by
    its own mean, not by the training part's. A vector that becomes zero stays zero.

    Raises:
        InputError: if the vectors are not compared by L2.
    """
    if descriptions.distance is not L2:
        raise InputError(
            f"whitening takes float vectors compared by l2, not by {descriptions.distance.name}"
        )
    vectors = descriptions.vectors
    turn = _zca(vectors[opened.train_rows()])
    out = np.empty(vectors.shape)
    start = 0
    for block in descriptions.dataset.blocks:
        strip = vectors[start : start + block.size].astype(np.float64)
        turned = (strip - strip.mean(axis=0)) @ turn
        turned = np.sign(turned) * np.sqrt(np.abs(turned))
        norm = np.linalg.norm(turned, axis=1, keepdims=True)
        out[start : start + block.size] = turned / np.where(norm == 0, 1, norm)
        start += block.size
    return Descriptions(descriptions.dataset, out, L2)


def _zca(train: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "d d"]:
    centred = train.astype(np.float64)
    centred -= centred.mean(axis=0)
    variance, direction = np.linalg.eigh(centred.T @ centred / len(centred))  # ascending
    floor = variance[int(KEPT * len(variance))]
    if not floor > 0:
        raise InputError(
            f"{len(train)} training vectors of {train.shape[1]} numbers vary in too few directions"
            " to be whitened"
        )
    scale = 1 / np.sqrt(np.maximum(variance, floor))
    return (direction * scale) @ direction.T
