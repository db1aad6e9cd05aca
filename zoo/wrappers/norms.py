"""`root` and `unit`: vectors divided by a norm.

R. Arandjelovic, A. Zisserman, Three things everyone should know to improve object retrieval,
CVPR 2012, for `root` of SIFT.
"""

from typing import Any

import numpy as np
from jaxtyping import Float32

from harness.types import Descriptor
from harness.wrapping import Wrapper
from zoo.wrappers.compose import NUMBERS, after


def root(model: Descriptor) -> Descriptor:
    """Each number over the sum of absolute values, then its square root with its sign."""
    return after(model, _root, _root_in_torch)


def unit(model: Descriptor) -> Descriptor:
    """Vectors of length 1; a vector of zeros stays zero."""
    return after(model, _unit, _unit_in_torch)


def _root(vectors: Float32[np.ndarray, "n d"]) -> Float32[np.ndarray, "n d"]:
    total = np.abs(vectors).sum(axis=1, keepdims=True)
    share = np.abs(vectors) / np.where(total == 0, 1, total)  # a vector of zeros stays zero
    return np.sign(vectors) * np.sqrt(share)


def _root_in_torch(vectors: Any) -> Any:
    total = vectors.abs().sum(dim=1, keepdim=True)
    return vectors.sign() * (vectors.abs() / (total + (total == 0))).sqrt()


def _unit(vectors: Float32[np.ndarray, "n d"]) -> Float32[np.ndarray, "n d"]:
    length = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    return (vectors / np.where(length == 0, 1, length)).astype(np.float32)


def _unit_in_torch(vectors: Any) -> Any:
    length = vectors.double().square().sum(dim=1, keepdim=True).sqrt()
    return (vectors / (length + (length == 0))).float()


ROOT = Wrapper(root, distances=NUMBERS)
UNIT = Wrapper(unit, distances=NUMBERS)
