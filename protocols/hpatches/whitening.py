"""PCA whitening with power law, the "+" of HPatches' tables, as in the official Python code."""

import numpy as np

from harness import Descriptions
from harness.distances import L2
from harness.errors import InputError
from harness.whitening import power_law, zca
from protocols.hpatches.reader import HPatches


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
    turn = zca(vectors[opened.train_rows()])
    out = np.empty(vectors.shape)
    start = 0
    for block in descriptions.dataset.blocks:
        strip = vectors[start : start + block.size].astype(np.float64)
        out[start : start + block.size] = power_law((strip - strip.mean(axis=0)) @ turn)
        start += block.size
    return Descriptions(descriptions.dataset, out, L2)
