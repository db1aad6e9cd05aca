"""A torch network as one ONNX file: uint8 patches of any size in, vectors out, checked against it.

Resizing, normalising and packing of bits are the network's, so they are nodes of the graph.
"""

import hashlib
import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from filelock import FileLock
from torch import nn

from harness import atomic, home, onnx_file, onnx_precision
from harness.distances import HAMMING, Distance
from harness.types import Descriptor, Patches, Vectors

OPSET = 18
NEAR = 1e-5  # cosine distance that float32 keeps between two runtimes
CHECKED = ((0, 65), (1, 65), (2, 65), (33, 65), (7, 64), (7, 33), (7, 32))  # patches, their side
LEVELS = ("DISABLE_ALL", "ENABLE_BASIC", "ENABLE_EXTENDED", "ENABLE_LAYOUT", "ENABLE_ALL")
LIBRARIES = ("torch", "onnx", "onnxscript")  # those that make a graph


@dataclass(frozen=True)
class Apart:
    """The largest distance between two vectors of one patch, and where it was found."""

    distance: float  # cosine; share of bits where bits are compared
    where: str


@dataclass(frozen=True)
class Exported:
    """A written file, and how far its vectors are from the network's."""

    file: Path
    size: int  # bytes
    apart: Apart


def export(
    descriptor: Descriptor,
    file: Path,
    *,
    precision: str = "fp32",
    calibration: Patches | None = None,
) -> Exported:
    """Write a descriptor's network as an ONNX file, which appears only if it gives its vectors.

    Patches of several sizes, flat and nearly flat ones among them, are described by torch and by
    ONNX Runtime at each level of its optimisation: 0, 1, 2, 7 and 33 at a time. In float32 the
    cosine distance of the two is below 1e-5 everywhere; in other precisions it is only told.

    Args:
        descriptor: one with a network.
        file: where to write.
        precision: of convolutions and linear layers: "fp32", "fp16" or "int8".
        calibration: patches like those to be described, that int8 takes its scales from.

    Raises:
        ValueError: if there is no network, if it can't be exported, or if the graph does not give
            its vectors; says where.
    """
    if descriptor.network is None:
        raise ValueError(
            f"{descriptor.name} can't be exported: it names no network (Descriptor.network, a"
            " function that makes a torch module from uint8 patches to vectors)"
        )
    if precision not in onnx_precision.KINDS:
        raise ValueError(f"no precision {precision!r}; known: {', '.join(onnx_precision.KINDS)}")
    network = descriptor.network().cpu().eval()
    model = _traced(network, descriptor.name)
    if precision == "fp16":
        model = onnx_precision.half(model)
    elif precision == "int8":
        if calibration is None:
            raise ValueError("int8 takes its scales from patches: give some for calibration")
        model = onnx_precision.eight_bits(model, calibration)
    onnx.helper.set_model_props(model, _metadata(descriptor, network, precision))
    contents = model.SerializeToString(deterministic=True)
    apart = _compared(network, contents, descriptor)
    allowed = _allowed(descriptor)
    if precision == "fp32" and apart.distance > allowed:
        raise ValueError(
            f"{descriptor.name}: graph and network are {apart.distance:.2g} apart ({apart.where});"
            f" {allowed:.2g} is allowed, so {file} was not written. Divisions by what is nearly"
            " zero (a deviation, a length) are where two runtimes part: clamp them"
        )
    with atomic.writing(file) as stream:
        stream.write(contents)
    return Exported(file, len(contents), apart)


def through_onnx(descriptor: Descriptor, *, device: str = "cpu") -> Descriptor:
    """The same descriptor, its vectors computed by ONNX Runtime in the graph of its network.

    The graph is exported once, and kept in the cache of the harness by weights, code and facts of
    the descriptor and by versions of the libraries that make graphs.

    Args:
        descriptor: one with network, weights and code.
        device: "cpu" or "cuda".

    Raises:
        RuntimeError: if CUDA is asked for and ONNX Runtime would compute elsewhere.
        ValueError: as `export` does.
    """
    if not (descriptor.weights and descriptor.code):
        raise ValueError(
            f"{descriptor.name} names no weights or no code: its graph could not be told from"
            " that of others"
        )
    made_by = {name: version(name) for name in LIBRARIES}
    origin = {**_facts(descriptor), **made_by, "code": descriptor.code}
    key = hashlib.sha256(json.dumps(origin, sort_keys=True).encode()).hexdigest()
    file = home.cache("onnx", f"{key}.onnx")
    file.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(file.with_suffix(".lock")):
        if not file.is_file():
            export(descriptor, file)
    graph = onnx_file.open_model(file, device=device)
    return replace(
        descriptor,
        describe=graph.describe,
        libraries=tuple(sorted({*graph.libraries, *LIBRARIES})),
        provider=graph.provider,
    )


class _AnyNumber(nn.Module):
    """A network that takes no patches, too: it is given one, whose vector is dropped."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, patches: torch.Tensor) -> torch.Tensor:
        n, height, width = patches.shape
        blank = patches.new_zeros((torch.sym_max(1 - n, 0), height, width))
        return self.network(torch.cat([patches, blank]))[:n]


def _traced(network: nn.Module, name: str) -> onnx.ModelProto:
    some = torch.zeros((3, 40, 40), dtype=torch.uint8)
    try:
        with _quiet():
            program = torch.onnx.export(
                _AnyNumber(network),
                (some,),
                input_names=["patches"],
                output_names=["vectors"],
                dynamic_shapes={"patches": {0: "n", 1: "height", 2: "width"}},
                opset_version=OPSET,
                dynamo=True,
                verbose=False,
            )
    except Exception as error:  # of many types, by the step that failed
        cause = error.__cause__ or error
        raise ValueError(
            f"{name} can't be exported: {type(cause).__name__}: {cause}. A network takes uint8"
            " patches [n, height, width], any n, height and width"
        ) from error
    assert program is not None
    model = program.model_proto
    _forget_the_way(model)
    return model


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence about the exporter's own affairs: operators of torchvision, deprecated helpers."""
    told = logging.getLogger("torch.onnx")
    level = told.level
    told.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        told.setLevel(level)


def _forget_the_way(model: onnx.ModelProto) -> None:
    """Remove what the exporter notes of its way: source lines of this machine, names of values."""
    del model.metadata_props[:]
    graph = model.graph
    del graph.metadata_props[:], graph.value_info[:]
    for part in (*graph.node, *graph.input, *graph.output, *graph.initializer):
        del part.metadata_props[:]
        part.doc_string = ""


def _metadata(descriptor: Descriptor, network: nn.Module, precision: str) -> dict[str, str]:
    said = _facts(descriptor) | {"precision": precision}
    said |= {f"{name}_version": version(name) for name in (*LIBRARIES, "descriptor-harness")}
    recipe = getattr(network, "recipe", None)
    return said | ({"recipe": recipe} if isinstance(recipe, str) else {})


def _facts(descriptor: Descriptor) -> dict[str, str]:
    """What `onnx_file.open_model` reads, and whose weights they are."""
    said = {
        "name": descriptor.name,
        "dim": str(descriptor.dim),
        "distance": descriptor.distance.name,
        "licence": descriptor.licence,
    }
    if descriptor.trained_on is not None:
        said["trained_on"] = json.dumps(sorted(descriptor.trained_on))
    if descriptor.weights:
        said["weights_sha256"] = descriptor.weights
    return said


def _compared(network: nn.Module, contents: bytes, descriptor: Descriptor) -> Apart:
    worst = Apart(0.0, "nowhere")
    patches = {side: hard_patches(side) for _, side in CHECKED}
    with torch.inference_mode():
        wanted = {side: network(torch.from_numpy(some)).numpy() for side, some in patches.items()}
    for level in LEVELS:
        session = _session(contents, level)
        for n, side in CHECKED:
            where = f"{n} patches of {side} x {side}, {level}"
            try:
                came = session.run(None, {"patches": patches[side][:n]})[0]
            except Exception as error:  # ONNX Runtime has a class of its own for each kind
                raise ValueError(
                    f"{descriptor.name}: the graph fails ({where}): {error}. Is the number of"
                    " patches a constant in it? The exporter sees len(x) as one, not x.shape[0]"
                ) from error
            _must_be_vectors(came, n, descriptor, where)
            apart = apart_by(came, wanted[side][:n], descriptor.distance)
            if n and apart.max() > worst.distance:
                worst = Apart(float(apart.max()), f"patch {apart.argmax()} of {where}")
    return worst


def _session(contents: bytes, level: str) -> Any:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, f"ORT_{level}")
    return onnxruntime.InferenceSession(contents, options, providers=["CPUExecutionProvider"])


def _allowed(descriptor: Descriptor) -> float:
    """NEAR, or a bit in a hundred: one whose value is next to 0 may turn."""
    if descriptor.distance is not HAMMING:
        return NEAR
    return max(1, descriptor.dim // 100) / (8 * descriptor.width)


def _must_be_vectors(came: np.ndarray, n: int, descriptor: Descriptor, where: str) -> None:
    dtype = np.dtype(descriptor.distance.dtype)
    if came.shape != (n, descriptor.width) or came.dtype != dtype:
        raise ValueError(
            f"{descriptor.name}: the graph gives {came.dtype} {list(came.shape)} ({where});"
            f" {descriptor.distance.name} and dim {descriptor.dim} want {dtype}"
            f" {[n, descriptor.width]}"
        )
    if not np.isfinite(came).all():
        raise ValueError(f"{descriptor.name}: the graph gives NaN or infinity ({where})")


def apart_by(a: Vectors, b: Vectors, distance: Distance) -> np.ndarray:
    """How far rows of a are from those of b: half the squared chord over the product of lengths.

    Between vectors of one length that is their cosine distance, without its rounding; a difference
    of lengths adds to it. For bits, the share of those that differ.
    """
    if distance is HAMMING:
        return np.bitwise_count(a ^ b).sum(axis=1) / (8 * a.shape[1])
    a, b = a.astype(np.float64), b.astype(np.float64)
    product = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return ((a - b) ** 2).sum(axis=1) / (2 * np.maximum(product, 1e-12))


def hard_patches(side: int) -> Patches:
    """33 patches: texture, flat ones, nearly flat ones, one bright or dark pixel, noise."""
    rng = np.random.default_rng(side)
    walk = rng.normal(size=(20, side, side)).cumsum(axis=1).cumsum(axis=2)  # like texture
    low, high = walk.min(axis=(1, 2), keepdims=True), walk.max(axis=(1, 2), keepdims=True)
    texture = (255 * (walk - low) / np.maximum(high - low, 1)).astype(np.uint8)
    flat = np.repeat(np.array([0, 128, 255, 128, 0, 255], np.uint8), side * side).reshape(
        -1, side, side
    )
    flat[3, side // 2, side // 2] += 1
    flat[4, side // 3, side // 2] = 255
    flat[5, -1, 0] = 0
    noise = rng.integers(0, 256, (6, side, side), dtype=np.uint8)
    faint = noise[:1] // 128 + 127
    return np.concatenate([texture[:1], flat, faint, noise, texture[1:]])
