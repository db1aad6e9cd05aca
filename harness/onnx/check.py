"""Checks that an ONNX graph gives the same vectors as its torch network."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from harness.distances import HAMMING, Distance
from harness.errors import InputError, text_of
from harness.onnx import contents as onnx_contents
from harness.onnx import runtime as onnx_runtime
from harness.types import Descriptor, Patches, Vectors

NEAR = 1e-5  # largest cosine distance between two runtimes in float32
CHECKED = ((0, 65), (1, 65), (2, 65), (33, 65), (7, 64), (7, 33), (7, 32))  # patches, their side
LEVELS = ("DISABLE_ALL", "ENABLE_BASIC", "ENABLE_EXTENDED", "ENABLE_LAYOUT", "ENABLE_ALL")


@dataclass(frozen=True)
class Apart:
    """The largest distance between the two vectors of a patch, and the patch."""

    distance: float  # cosine distance; for bits, the share that differs
    where: str


def verify(contents: bytes, network: nn.Module, descriptor: Descriptor, *, allowed: float) -> Apart:
    """The largest distance between vectors of an ONNX graph and of its network.

    Raises:
        InputError: if it is more than allowed, if the vectors don't fit the descriptor, or if the
            graph could not be opened as a file.
    """
    onnx_contents.parse(contents, Path(f"{descriptor.name}.onnx"))  # raises as `open_model` would
    worst = Apart(0.0, "nowhere")
    patches = {side: hard_patches(side) for _, side in CHECKED}
    wanted = {side: _by_torch(network, batch, descriptor) for side, batch in patches.items()}
    for level in LEVELS:
        session = _session(contents, level, descriptor)
        for n, side in CHECKED:
            where = f"{n} patches of {side} x {side}, {level}"
            try:
                came = session.run(None, {"patches": patches[side][:n]})[0]
            except Exception as error:  # each kind of failure of ONNX Runtime has its own class
                reason = str(error).partition("\n")[0]
                raise InputError(
                    f"{descriptor.name}: the graph fails ({where}): {reason}. Is the number of"
                    " patches a constant in it? The exporter sees len(x) as one, not x.shape[0]"
                ) from error
            _must_be_vectors(came, n, descriptor, where)
            apart = apart_by(came, wanted[side][:n], descriptor.distance)
            if n and apart.max() > worst.distance:
                worst = Apart(float(apart.max()), f"patch {apart.argmax()} of {where}")
    if worst.distance > allowed:
        raise InputError(
            f"{descriptor.name}: graph and network are {worst.distance:.2g} apart ({worst.where});"
            f" {allowed:.2g} is allowed. Two runtimes differ most in divisions by nearly zero"
            " numbers (a deviation, a length): clamp these numbers"
        )
    return worst


def _by_torch(network: nn.Module, patches: Patches, descriptor: Descriptor) -> Vectors:
    try:
        with torch.inference_mode():
            return network(torch.from_numpy(patches)).numpy()
    except Exception as error:
        raise InputError(
            f"{descriptor.name}: its network fails on uint8 patches {list(patches.shape)}:"
            f" {text_of(error)}"
        ) from error


def _session(contents: bytes, level: str, descriptor: Descriptor) -> Any:
    try:
        return onnx_runtime.session(contents, level=level)
    except Exception as error:  # each kind of failure has its own class
        raise InputError(f"{descriptor.name}: ONNX Runtime refuses the graph: {error}") from error


def rounding(descriptor: Descriptor) -> float:
    """Allowed distance: NEAR; for bits, one in a hundred, since values near 0 may change sign."""
    if descriptor.distance is not HAMMING:
        return NEAR
    return max(1, descriptor.dim // 100) / (8 * descriptor.width)


def _must_be_vectors(came: np.ndarray, n: int, descriptor: Descriptor, where: str) -> None:
    dtype = np.dtype(descriptor.distance.dtype)
    if came.shape != (n, descriptor.width) or came.dtype != dtype:
        raise InputError(
            f"{descriptor.name}: the graph gives {came.dtype} {list(came.shape)} ({where});"
            f" {descriptor.distance.name} and dim {descriptor.dim} want {dtype}"
            f" {[n, descriptor.width]}"
        )
    if not np.isfinite(came).all():
        raise InputError(f"{descriptor.name}: the graph gives NaN or infinity ({where})")


def apart_by(a: Vectors, b: Vectors, distance: Distance) -> np.ndarray:
    """Distance of each row of a to the row of b: half the squared chord over the product of norms.

    For vectors of equal norm it is the cosine distance, but with less rounding. A difference of
    norms makes it larger. For bits it is the share of different bits.
    """
    if distance is HAMMING:
        return np.bitwise_count(a ^ b).sum(axis=1) / (8 * a.shape[1])
    a, b = a.astype(np.float64), b.astype(np.float64)
    product = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return ((a - b) ** 2).sum(axis=1) / (2 * np.maximum(product, 1e-12))


def hard_patches(side: int) -> Patches:
    """33 patches: textured, flat, nearly flat, with one bright or dark pixel, noise."""
    rng = np.random.default_rng(side)
    walk = rng.normal(size=(18, side, side)).cumsum(axis=1).cumsum(axis=2)  # like texture
    low, high = walk.min(axis=(1, 2), keepdims=True), walk.max(axis=(1, 2), keepdims=True)
    texture = (255 * (walk - low) / np.maximum(high - low, 1)).astype(np.uint8)
    flat = np.empty((8, side, side), np.uint8)
    flat[:] = np.reshape([0, 128, 255, 128, 0, 255, 77, 233], (8, 1, 1))
    flat[3, side // 2, side // 2] += 1
    flat[4, side // 3, side // 2] = 255
    flat[5, -1, 0] = 0
    noise = rng.integers(0, 256, (6, side, side), dtype=np.uint8)
    faint = noise[:1] // 128 + 127
    return np.concatenate([texture[:1], flat, faint, noise, texture[1:]])
