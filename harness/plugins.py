"""Makes a Descriptor or a VectorFolder from the text by which a user names a model."""

import ast
import hashlib
import inspect
import logging
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib.metadata import packages_distributions
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from harness import expression, extras, registry, vector_folder, wrapping
from harness.code import code_sha256, source_sha256
from harness.data.weights import NotHere
from harness.distances import HAMMING, L2
from harness.errors import (
    FAILURES,
    ComputeError,
    ImportFailedError,
    InputError,
    InputTypeError,
    UnknownNameError,
    one_line,
    text_of,
)
from harness.onnx import file as onnx_file
from harness.types import Descriptor
from harness.vector_folder import VectorFolder

log = logging.getLogger(__name__)

DEVICES = ("auto", "cpu", "cuda")
FORMS = (
    "an installed name, file.py:name, a .onnx file, the folder of a training, or a folder of CSV"
    " files"
)
_ALONE = "it is read alone: what it imports must be installed"


def model(spec: str, *, device: str = "cpu") -> Descriptor | VectorFolder:
    """The model that `spec` names: an installed name, file.py:name, a .onnx file or a folder.

    A folder is that of a training (or of one of its epochs), or it holds vectors as CSV files.
    Wrappers may follow, as in "MODEL|NAME(ARG)|NAME"; see `harness.wrapping`. An installed name
    takes precedence over a folder of the same name; "./sift" names the folder.
    Device "auto" is CUDA if the model supports it and it works here; "cuda" is CUDA or an error.

    Raises:
        UnknownNameError: if `spec` names nothing; gives the nearest installed name.
        ImportFailedError: if the module can't be imported; names the module's package or file.
        ComputeError: if the maker fails, or the model can't compute on the device.
        InputTypeError, InputError: if the named object is not a model, or breaks the contract of
            models.
        SystemRefusedError: if a file is missing or can't be read.
    """
    if device not in DEVICES:
        raise InputError(f"no device {device!r}; known: {', '.join(DEVICES)}")
    base, wrappers = expression.parse(spec)
    made = _named(base, device)
    if wrappers:
        made = wrapping.applied(made, wrappers, partial(model, device=device))
    if device == "cuda" and "cuda" not in made.provider.lower():
        raise ComputeError(f"{spec} can't compute on cuda: it computes on {made.provider}")
    return made


def cuda_works() -> bool:
    """Whether PyTorch is installed and can compute on a CUDA device."""
    return cuda_failure() is None


def cuda_failure() -> str | None:
    """Why PyTorch can't compute on a CUDA device here; None if it can. Tries a convolution."""
    try:
        import torch
    except ModuleNotFoundError:
        return "PyTorch is not installed"
    if not torch.cuda.is_available():
        return "PyTorch finds no CUDA device here"
    try:
        x = torch.ones(1, 1, 8, 8, device="cuda")
        found = float(torch.nn.functional.conv2d(x, x[..., :3, :3]).sum())
    except RuntimeError as error:  # the driver is too old, the GPU too new, a library is missing
        return f"PyTorch can't compute on the CUDA device here: {one_line(error)}"
    return None if found == 6 * 6 * 9 else "PyTorch computes a wrong convolution on the CUDA device"


def _named(spec: str, device: str) -> Descriptor | VectorFolder:
    if spec in registry.names("descriptors"):
        return _installed(spec, device)
    if in_file := re.fullmatch(r"(.+\.py):(\w+)", spec):
        return _in_file(Path(in_file[1]), in_file[2], device)
    path = Path(spec)
    if path.suffix == ".onnx":
        with extras.needed(spec):
            return onnx_file.open_model(path, device=device)
    if path.suffix == ".py":
        raise UnknownNameError(f"{spec} names a file, but no object in it: {spec}:<name> is wanted")
    if spec and path.is_dir():
        return _in_folder(path, device)
    nearest = registry.unknown("descriptors", spec, registry.names("descriptors"))
    raise UnknownNameError(f"{nearest}; a model is {FORMS}")


def _installed(name: str, device: str) -> Descriptor:
    maker = registry.load("descriptors", name)
    origin = f"descriptor {name!r} of {registry.source('descriptors', name)}"
    if not (inspect.isfunction(maker) or inspect.isclass(maker)):  # only these have a known module
        raise InputTypeError(
            f"{origin} is {maker!r:.60}; a function that makes a Descriptor is wanted"
        )
    made = _made(maker, device, origin)
    if made.name != name:
        raise InputError(f"{origin} calls itself {made.name!r}; both names must be the same")
    return replace(made, code=made.code or code_sha256(maker.__module__))


def _made(maker: Callable[..., Any], device: str, origin: str) -> Descriptor:
    options = {}
    if "device" in inspect.signature(maker).parameters:
        if device == "auto" and cuda_works():
            try:
                return _made(maker, "cuda", origin)
            except RuntimeError as error:  # CUDA may work for PyTorch, but not for ONNX Runtime
                if isinstance(error.__cause__, NotHere):  # the CPU needs these weights too
                    raise
                log.warning("%s; it computes on the CPU instead", error)
        options["device"] = "cpu" if device == "auto" else device
    try:
        with extras.needed(origin):
            made = maker(**options)
    except extras.ExtraMissingError:
        raise
    except FAILURES as error:
        raise ComputeError(f"{origin} can't be made: {text_of(error)}") from error
    if not isinstance(made, Descriptor):
        raise InputTypeError(f"{origin} returned {made!r:.60}; a harness.Descriptor is wanted")
    if options.get("device") == "cuda" and "cuda" not in made.provider.lower():
        raise ComputeError(f"{origin} was told to compute on cuda, but says {made.provider!r}")
    if options.get("device") == "cuda":
        _must_describe(made, origin)
    return made


def _must_describe(made: Descriptor, origin: str) -> None:
    """Refuse a model that fails on a GPU, which often shows at its first patch only.

    Raises:
        ComputeError: if the model fails on one black patch.
    """
    try:
        made.describe(np.zeros((1, 65, 65), np.uint8))
    except FAILURES as error:
        raise ComputeError(f"{origin} can't compute on cuda: {text_of(error)}") from error


def _in_folder(folder: Path, device: str) -> Descriptor | VectorFolder:
    """The model of a folder, in the first form that knows it; else a folder of vectors."""
    for form in registry.names("model_folders"):
        opener = registry.load("model_folders", form)
        with extras.needed(str(folder)):
            made: Descriptor | None = opener(folder, device)
        if made is not None:
            return made
    return vector_folder.open_folder(folder)


def in_file(file: Path, name: str, kind: str = "descriptors") -> tuple[Any, bytes]:
    """A callable or a Descriptor in a user's Python file, and the source of the file.

    Args:
        file: is executed.
        name: of the object.
        kind: for the message if there is no such object.

    Raises:
        UnknownNameError: if there is no such object; gives the nearest name.
        ImportFailedError: if the file can't be executed.
    """
    source = file.read_bytes()
    module = _executed(file, source)
    value = getattr(module, name, None)
    if not (callable(value) or isinstance(value, Descriptor)):
        here = [n for n, v in vars(module).items() if _is_from(v, module) and not n.startswith("_")]
        raise UnknownNameError(f"{file}: {registry.unknown(kind, name, here)}")
    return value, source


def _in_file(file: Path, name: str, device: str) -> Descriptor:
    """The model in a user's file: a Descriptor, its maker, or a plain function."""
    value, source = in_file(file, name)
    origin = f"{file}:{name}"
    if isinstance(value, Descriptor):
        made = value
    elif _takes_patches(value):
        made = _plain(value, origin)
    else:
        made = _made(value, device, origin)
    return replace(
        made,
        name=f"{file.stem}:{name}",
        code=source_sha256(source),
        libraries=tuple(sorted({*made.libraries, *_libraries(source)})),
    )


def _executed(file: Path, source: bytes) -> ModuleType:
    """Run a file as a module, from exactly the bytes that were hashed: no .pyc, no sys.path."""
    digest = hashlib.sha256(bytes(file.resolve()) + source).hexdigest()
    module = ModuleType(f"_harness_{digest[:16]}")
    module.__file__ = str(file)
    sys.modules[module.__name__] = module  # `dataclasses` looks up a class's module there
    try:
        exec(compile(source, str(file), "exec"), module.__dict__)
    except FAILURES as error:
        del sys.modules[module.__name__]
        package = extras.missing(error)
        hint = extras.remedy(package) if package else _ALONE
        raise ImportFailedError(f"{file} can't be imported: {text_of(error)} ({hint})") from error
    return module


def _is_from(value: object, module: ModuleType) -> bool:
    return isinstance(value, Descriptor) or getattr(value, "__module__", "") == module.__name__


def _takes_patches(function: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (ValueError, TypeError):  # functions in C may have no signature; they are not makers
        return True
    return any(
        parameter.default is parameter.empty and parameter.name != "device"
        for parameter in parameters
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    )


def _plain(describe: Callable[..., Any], origin: str) -> Descriptor:
    """The Descriptor of a plain function; two noise patches show its distance and dim."""
    patches = np.random.default_rng(0).integers(0, 256, (2, 65, 65), dtype=np.uint8)
    try:
        vectors = describe(patches)
    except FAILURES as error:
        raise ComputeError(f"{origin} fails on 2 patches of 65 x 65: {text_of(error)}") from error
    if not isinstance(vectors, np.ndarray) or vectors.ndim != 2 or len(vectors) != 2:
        came = getattr(vectors, "shape", "")
        raise InputTypeError(
            f"{origin} returned {type(vectors).__name__} {came} for 2 patches; a NumPy array of 2"
            " rows is wanted, or, from a maker (a function without arguments), a Descriptor"
        )
    distance = {np.dtype(d.dtype): d for d in (L2, HAMMING)}.get(vectors.dtype)
    if distance is None:
        raise InputTypeError(
            f"{origin} returned {vectors.dtype} vectors; wanted is float32, compared by L2, or bits"
            " packed into uint8, compared by Hamming: end with .astype(np.float32) or np.packbits"
        )
    dim = vectors.shape[1] * (8 if distance is HAMMING else 1)
    return Descriptor(origin, describe, distance, dim, trained_on=None, licence="unknown")


def _libraries(source: bytes) -> set[str]:
    """Distributions that a source text imports; another version of them can change vectors."""
    nodes = list(ast.walk(ast.parse(source)))
    tops = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    tops |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    installed = packages_distributions()
    return {name for top in tops for name in installed.get(top.partition(".")[0], ())}
