"""Opens an ONNX file as a descriptor; its metadata contain all facts about the model.

The graph maps uint8 patches, [n, height, width] or [n, 1, height, width], to one row for each:
float32 numbers, or bits packed into uint8. Scaling and resizing are nodes of the graph, since every
model receives the patches as they are stored.
"""

import contextlib
import ctypes
import hashlib
import json
import logging
import re
import sys
from collections.abc import Mapping
from dataclasses import astuple, dataclass, fields
from importlib.metadata import packages_distributions
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from harness import registry
from harness.code import code_sha256
from harness.data.photographs import Photograph
from harness.distances import DISTANCES, HAMMING, L2, Distance
from harness.errors import ComputeError, InputError, one_line
from harness.onnx import contents as onnx_contents
from harness.onnx import runtime as onnx_runtime
from harness.trainings import recipe_and_seed
from harness.types import Descriptor, Patches, Vectors, is_text

log = logging.getLogger(__name__)

PREFIX = "onnx:"  # of names, so that records of other models are never mixed with a file's
CUDA = "CUDAExecutionProvider"
# No coarser number format and no algorithm chosen by timing, since both change vectors.
CUDA_OPTIONS = {"use_tf32": "0", "cudnn_conv_algo_search": "HEURISTIC"}
LARGEST = 1024  # largest side of a patch, in pixels; data sets have 32 to 65
PATIENCE = 120.0  # seconds allowed for one patch; at this speed a benchmark takes days
NATURAL = {"tensor(float)": L2, "tensor(uint8)": HAMMING}  # if the metadata name no distance


def open_model(file: Path, *, device: str, contents: bytes | None = None) -> Descriptor:
    """The descriptor of an ONNX file.

    It reads these metadata: name (default: the file name without ".onnx"; "onnx:" is put before
    it), distance (default: l2, or hamming for uint8 vectors), dim, trained_on (names separated by
    commas, or a JSON list; [] for a model that is not trained), licence, photographs (a JSON list
    of objects with the fields of `Photograph`: all that it learned from), and recipe (a JSON object
    of all that decided the weights, "data" and "seed" among them).

    Args:
        file: the file; if `contents` is given, only used in messages.
        device: "cpu", "cuda", or "auto": CUDA if it works.
        contents: of the file, if they were read already.

    Raises:
        FileMissingError: if there is no such file.
        InputError: if it is not an ONNX graph from stored patches to vectors; says what to change.
        ComputeError: if device is "cuda" and ONNX Runtime would compute elsewhere.
    """
    if contents is None:
        contents = onnx_contents.read(file)
    metadata = onnx_contents.metadata(onnx_contents.parse(contents, file), file)
    session = _session(contents, file, device)
    distance = _distance(metadata, session, file)
    graph = _graph(session, file)
    recipe, seed = _training(metadata)
    return Descriptor(
        name=PREFIX + (metadata.get("name", "").strip() or file.stem),
        describe=graph.describe,
        distance=distance,
        dim=_dim(metadata, graph, distance),
        trained_on=_trained_on(metadata, file),
        licence=metadata.get("licence", "").strip() or "unknown",
        photographs=_photographs(metadata, file),
        weights=hashlib.sha256(contents).hexdigest(),
        code=code_sha256(__name__),
        libraries=("numpy", *sorted(set(packages_distributions()["onnxruntime"]))),
        provider=session.get_providers()[0],
        recipe=recipe,
        seed=seed,
    )


@dataclass(frozen=True)
class _Graph:
    file: Path
    session: Any
    image: str  # name of the input
    channels: bool  # whether the input is [n, 1, height, width]
    side: int | None  # of the patches, if the graph takes only one size

    def describe(self, patches: Patches) -> Vectors:
        """The vectors of square patches, of a size that the graph takes."""
        height, width = patches.shape[1:]
        if self.side is not None and (height, width) != (self.side, self.side):
            raise InputError(
                f"{self.file} takes {self.side} x {self.side} patches, but these are {height} x"
                f" {width}: resizing belongs to the model, so export it with free height and width"
                " and a Resize node in front"
            )
        if not len(patches):  # many operators fail on an empty batch
            return self._run(np.zeros((1, height, width), np.uint8))[:0]
        return self._run(patches)

    def probe(self) -> np.ndarray:
        """The graph's output for one black patch, or an error after PATIENCE seconds."""
        try:
            return self.black()
        except Exception as error:
            side, reason = self.side or 65, one_line(error)
            raise InputError(f"{self.file} fails on one {side} x {side} patch: {reason}") from error

    def black(self) -> np.ndarray:
        """The graph's output for one black patch; each kind of failure has its own class."""
        side = self.side or 65
        patches = np.zeros((1, side, side), np.uint8)
        vectors: np.ndarray = onnx_runtime.run_within(PATIENCE, self.session, self._inputs(patches))
        return vectors

    def _run(self, patches: Patches) -> np.ndarray:
        came: np.ndarray = self.session.run(None, self._inputs(patches))[0]
        return came

    def _inputs(self, patches: Patches) -> dict[str, np.ndarray]:
        return {self.image: patches[:, None] if self.channels else patches}


def _session(contents: bytes, file: Path, device: str) -> Any:
    if device == "cuda" or (device == "auto" and has_nvidia_driver()):
        try:
            return _cuda_session(contents, file)
        except RuntimeError as error:
            if device == "cuda":
                raise
            log.warning("%s; it computes on the CPU instead", error)
    try:
        return onnx_runtime.session(contents)
    except Exception as error:  # each kind of failure of ONNX Runtime has its own class
        raise InputError(f"ONNX Runtime can't load {file}: {one_line(error)}") from error


def _cuda_session(contents: bytes, file: Path) -> Any:
    import onnxruntime

    if CUDA not in onnxruntime.get_available_providers():
        raise ComputeError(
            f"{file} can't compute on cuda: the installed ONNX Runtime {onnxruntime.__version__}"
            " knows no CUDA; install onnxruntime-gpu instead of it"
        )
    with contextlib.redirect_stdout(sys.stderr):  # it prints missing libraries
        onnxruntime.preload_dlls()
    try:
        session = onnx_runtime.session(contents, provider=CUDA, options=CUDA_OPTIONS)
    except Exception as error:
        raise ComputeError(f"{file} can't compute on cuda: {one_line(error)}") from error
    if session.get_providers()[0] != CUDA:
        raise ComputeError(
            f"{file} can't compute on cuda: ONNX Runtime fell back to"
            f" {session.get_providers()[0]}; its messages above name the library or driver that is"
            " missing"
        )
    graph = _graph(session, file)
    try:
        graph.black()  # cuDNN, or kernels for this GPU, may be missing: that shows only here
    except Exception as error:
        raise ComputeError(
            f"{file} can't compute on cuda: it fails on one patch: {one_line(error)}"
        ) from error
    return session


def working_providers() -> tuple[list[str], str | None]:
    """Providers of ONNX Runtime that compute a convolution here, and why CUDA does not, if so."""
    contents = _probe()
    providers = onnx_runtime.session(contents).get_providers()
    if not has_nvidia_driver():
        return providers, None
    try:
        providers.insert(0, _cuda_session(contents, Path("a convolution")).get_providers()[0])
    except RuntimeError as error:
        return providers, str(error)
    return providers, None


def _probe() -> bytes:
    """A small graph from patches to vectors: a convolution, its mean over the patch."""
    from onnx import TensorProto, helper, numpy_helper

    weights = numpy_helper.from_array(np.ones((8, 1, 3, 3), np.float32), "weights")
    nodes = [
        helper.make_node("Cast", ["patches"], ["grey"], to=TensorProto.FLOAT),
        helper.make_node("Conv", ["grey", "weights"], ["maps"]),
        helper.make_node("GlobalAveragePool", ["maps"], ["means"]),
        helper.make_node("Flatten", ["means"], ["vectors"]),
    ]
    patches = helper.make_tensor_value_info("patches", TensorProto.UINT8, ["n", 1, 32, 32])
    vectors = helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["n", 8])
    graph = helper.make_graph(nodes, "probe", [patches], [vectors], [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    return bytes(model.SerializeToString())


def has_nvidia_driver() -> bool:
    """Whether there is an NVIDIA driver. Without one, ONNX Runtime prints errors for CUDA."""
    try:
        ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return False
    return True


def _graph(session: Any, file: Path) -> _Graph:
    inputs = session.get_inputs()
    wanted = "one input is wanted: uint8 patches, [n, height, width] or [n, 1, height, width]"
    if len(inputs) != 1:
        raise InputError(f"{file} has {len(inputs)} inputs; {wanted}")
    image = inputs[0]
    has = f"{file}: input {image.name!r} is {image.type} {image.shape}"
    if image.type != "tensor(uint8)":
        raise InputError(
            f"{has}; {wanted}: put a Cast, and the scaling that the model was trained with,"
            " into the graph"
        )
    channels = image.shape[1:-2]  # [], [1], or [name] of a dynamic axis
    if len(image.shape) not in (3, 4) or any(isinstance(c, int) and c != 1 for c in channels):
        raise InputError(f"{has}; {wanted}")
    if isinstance(image.shape[0], int):
        raise InputError(f"{has}; any number of patches must fit: export with a dynamic first axis")
    sides = {side for side in image.shape[-2:] if isinstance(side, int)}
    if len(sides) > 1:
        raise InputError(f"{has}; patches are square")
    if max(sides, default=0) > LARGEST:
        raise InputError(f"{has}; patches of up to {LARGEST} x {LARGEST} are described")
    return _Graph(file, session, image.name, bool(channels), next(iter(sides), None))


def _distance(metadata: Mapping[str, str], session: Any, file: Path) -> Distance:
    outputs = session.get_outputs()
    if len(outputs) != 1:
        names = ", ".join(output.name for output in outputs)
        raise InputError(f"{file} has {len(outputs)} outputs ({names}); one is wanted: the vectors")
    natural = NATURAL.get(outputs[0].type)
    if natural is None:
        raise InputError(
            f"{file} gives {outputs[0].type} vectors; wanted is tensor(float), or tensor(uint8) of"
            " packed bits: end the graph with a Cast"
        )
    name = metadata.get("distance", natural.name)
    if name not in DISTANCES:
        raise InputError(f"{file}: {registry.unknown('distances', name, DISTANCES)}")
    if DISTANCES[name].dtype is not natural.dtype:
        raise InputError(
            f"{file} gives {outputs[0].type} vectors, but its metadata say distance={name}, which"
            f" takes {np.dtype(DISTANCES[name].dtype).name}"
        )
    return DISTANCES[name]


def _dim(metadata: Mapping[str, str], graph: _Graph, distance: Distance) -> int:
    vectors = graph.probe()
    if vectors.ndim != 2 or len(vectors) != 1:
        raise InputError(
            f"{graph.file} gives {list(vectors.shape)} for one patch; [1, dim] is wanted:"
            " end the graph with a Flatten"
        )
    width = vectors.shape[1]
    if "dim" not in metadata:
        return width * 8 if distance is HAMMING else width
    dim = int(metadata["dim"]) if re.fullmatch("[0-9]{1,9}", metadata["dim"]) else 0
    if width != distance.columns(dim):
        raise InputError(
            f"{graph.file} gives {width} {vectors.dtype} a vector, but its metadata say"
            f" dim={metadata['dim']:.60}"
        )
    return dim


def _training(metadata: Mapping[str, str]) -> tuple[str | None, int | None]:
    """Recipe and seed, as `trainings` has them, if the metadata have a recipe in JSON."""
    try:
        settings = json.loads(metadata.get("recipe", ""))
    except (ValueError, RecursionError):
        return None, None
    if not isinstance(settings, dict):
        return None, None
    return recipe_and_seed(settings, precision=metadata.get("precision", "fp32"))


def _trained_on(metadata: Mapping[str, str], file: Path) -> frozenset[str] | None:
    """Names of training data; None if the metadata have none or JSON's null."""
    text = metadata.get("trained_on", "").strip()
    if not text:
        return None
    try:
        names = json.loads(text)
    except (ValueError, RecursionError) as error:
        if text.startswith(("[", "{", '"')):
            raise InputError(
                f"{file}: trained_on is neither names nor a JSON list: {text:.80}"
            ) from error
        names = [name.strip() for name in text.split(",") if name.strip()]
    if names is None:
        return None
    if not isinstance(names, list) or not all(map(is_text, names)):
        raise InputError(
            f"{file}: trained_on is {text:.80}; wanted are data names separated by commas, or a"
            ' JSON list of them, ["other/my-images"], which is [] for a model that is not trained'
        )
    return frozenset(names)


def _photographs(metadata: Mapping[str, str], file: Path) -> tuple[Photograph, ...]:
    """The photographs of the training; none if the metadata have none."""
    text = metadata.get("photographs", "").strip() or "[]"
    try:
        shown = tuple(Photograph(**row) for row in json.loads(text))
    except (ValueError, TypeError, RecursionError):
        shown = None
    if shown is None or not all(map(is_text, chain.from_iterable(map(astuple, shown)))):
        keys = ", ".join(field.name for field in fields(Photograph))
        raise InputError(
            f"{file}: photographs is {text:.80}; wanted is a JSON list of objects with the keys"
            f" {keys} and texts as values"
        )
    return shown
