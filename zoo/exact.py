"""Float32 on GPUs with all its bits, or with the 10 of 23 that TF32 keeps."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.backends import cudnn


@contextmanager
def exact() -> Iterator[None]:
    """Compute float32 convolutions and matrix products in the block without TF32.

    By default, PyTorch computes convolutions on GPUs in TF32.
    """
    with _products(tf32=False), _tf32(cudnn, [cudnn.conv, cudnn.rnn], False, usual=True):  # type: ignore[attr-defined]
        yield


@contextmanager
def coarse_products() -> Iterator[None]:
    """Compute float32 matrix products on GPUs in TF32 in the block."""
    with _products(tf32=True):
        yield


@contextmanager
def _products(*, tf32: bool) -> Iterator[None]:
    matmul = torch.backends.cuda.matmul
    with _tf32(matmul, [matmul], tf32, usual=False):
        yield


@contextmanager
def _tf32(whole: Any, parts: list[Any], allowed: bool, *, usual: bool) -> Iterator[None]:
    """Set PyTorch's older flag and the newer flags of the parts, and restore all of them.

    After a program has set some newer flag alone, the older flag can be set, but reading it is an
    error; it is then restored to its usual value.
    """
    newer = [part.fp32_precision for part in parts]
    try:
        older = whole.allow_tf32
    except RuntimeError:
        older = usual
    whole.allow_tf32 = allowed
    for part in parts:  # a flag above them may say otherwise
        part.fp32_precision = "tf32" if allowed else "ieee"
    try:
        yield
    finally:
        whole.allow_tf32 = older
        for part, precision in zip(parts, newer, strict=True):
            part.fp32_precision = precision
