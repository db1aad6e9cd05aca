"""`signs` and `thresholds`: a bit for each number, packed, compared by Hamming distance."""

from typing import Any

import numpy as np
from jaxtyping import Float32, UInt8

from harness.distances import HAMMING
from harness.parameters import Parameters
from harness.types import Descriptor
from harness.wrapping import Wrapper
from zoo.wrappers.compose import NUMBERS, after


def signs(model: Descriptor) -> Descriptor:
    """Bits: 1 where a number is 0 or above."""
    return _compared(model, np.zeros(model.dim, np.float32))


def thresholds(model: Descriptor, file: Parameters) -> Descriptor:
    """Bits: 1 where a number is its threshold or above; thresholds are medians of training data."""
    return _compared(model, file.array("threshold", model.dim).astype(np.float32))


def _medians(vectors: Float32[np.ndarray, "n d"]) -> dict[str, np.ndarray]:
    """The median of each number: half of the training vectors have the bit."""
    return {"threshold": np.median(vectors, axis=0).astype(np.float32)}


def _compared(model: Descriptor, threshold: Float32[np.ndarray, " d"]) -> Descriptor:
    def change(vectors: Float32[np.ndarray, "n d"]) -> UInt8[np.ndarray, "n bytes"]:
        return np.packbits(vectors >= threshold, axis=1)

    def in_torch(vectors: Any) -> Any:
        import torch

        from zoo.wrappers.module import packed

        return packed(vectors >= torch.tensor(threshold))

    return after(model, change, in_torch, distance=HAMMING)


SIGNS = Wrapper(signs, distances=NUMBERS)
THRESHOLDS = Wrapper(thresholds, distances=NUMBERS, fit=_medians)
