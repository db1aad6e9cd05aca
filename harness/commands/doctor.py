"""Reports what is installed, what works, and where files are kept."""

import os
import platform
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distributions, version
from pathlib import Path

from harness import extras, registry
from harness.errors import FAILURES, text_of
from harness.files import atomic, home

PACKAGES = ("numpy", "scipy", "pandas", "torch", "safetensors", "pycolmap", "onnx", "scikit-image")


def report() -> Iterator[str]:
    """Yields the lines of the report; a line that needs action begins with "!".

    A missing extra is not an error.
    """
    sections = {
        "packages": _packages,
        "OpenCV": _opencv,
        "ONNX Runtime": _onnx,
        "torch": _torch,
        "CUDA": _cuda,
        "places": _places,
        "data sets": _datasets,
        "weights": _weights,
        "plug-ins": _plugins,
    }
    for name, section in sections.items():
        try:
            yield from section()
        except FAILURES as error:  # a broken section is reported like any other fact
            package = extras.missing(error)
            if package:
                yield f"{name}: {package} is not installed; {extras.remedy(package)}"
            else:
                yield f"! {name}: {text_of(error)}"


def _packages() -> Iterator[str]:
    yield f"python {platform.python_version()} on {platform.system()} {platform.machine()}"
    for package in ("descriptor-harness", *PACKAGES):
        yield f"{package} {_version(package)}"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _installed(prefix: str) -> list[str]:
    names = {str(package.metadata["Name"]).lower() for package in distributions()}
    return sorted(name for name in names if name.startswith(prefix))


def _opencv() -> Iterator[str]:
    wheels = _installed("opencv")
    if len(wheels) > 1:
        yield (
            f"! {' and '.join(wheels)} overwrite each other: uninstall all of them, then install"
            " opencv-contrib-python-headless"
        )
    import cv2

    yield f"OpenCV {cv2.__version__} from {', '.join(wheels) or 'an unknown wheel'}"
    if not hasattr(cv2, "xfeatures2d"):
        yield "! this OpenCV has no contrib modules: BRIEF and Harris-Laplace won't work"


def _onnx() -> Iterator[str]:
    wheels = _installed("onnxruntime")
    if len(wheels) > 1:
        yield f"! {' and '.join(wheels)} overwrite each other: keep one"
    import onnxruntime

    from harness.onnx.file import working_providers

    installed = _version(wheels[0]) if wheels else "not installed"
    major = cuda_major(getattr(onnxruntime, "cuda_version", ""))
    providers, failure = working_providers()
    yield (
        f"ONNX Runtime {installed}, {_built_for(major)}; devices that compute a convolution:"
        f" {', '.join(providers)}"
    )
    if failure:
        yield f"! {failure}"


def _torch() -> Iterator[str]:
    import torch

    from harness.plugins import cuda_failure

    failure = cuda_failure()
    major = cuda_major(torch.version.cuda)
    devices = "cpu" if failure else "cuda and cpu"
    yield f"torch {torch.__version__}, {_built_for(major)}, computes a convolution on {devices}"
    if failure and torch.cuda.is_available():
        yield f"! {failure}"


def _cuda() -> Iterator[str]:
    """What to do where ONNX Runtime and PyTorch are built for different CUDA."""
    try:
        import onnxruntime
        import torch
    except ImportError:  # their own sections tell of it
        return
    told = other_cuda(
        cuda_major(getattr(onnxruntime, "cuda_version", "")), cuda_major(torch.version.cuda)
    )
    if told:
        yield f"! {told}"


def cuda_major(version: str | None) -> int | None:
    """The first number of a version of CUDA; None if the library is built without CUDA."""
    first = (version or "").partition(".")[0]
    return int(first) if first.isdigit() else None


def other_cuda(of_onnx: int | None, of_torch: int | None) -> str | None:
    """What to do where the two are built for different majors of CUDA; None if they fit.

    ONNX Runtime takes cuDNN and cuBLAS from PyTorch's packages, which have one major only.
    """
    if of_onnx is None or of_torch is None or of_onnx == of_torch:
        return None
    return (
        f"onnxruntime-gpu is built for CUDA {of_onnx} and torch for CUDA {of_torch}, so only one of"
        f" them finds its libraries: install torch for CUDA {of_onnx}, or a version of"
        f" onnxruntime-gpu for CUDA {of_torch} (https://onnxruntime.ai/docs/install lists them)"
    )


def _built_for(major: int | None) -> str:
    return "built without CUDA" if major is None else f"built for CUDA {major}"


def _places() -> Iterator[str]:
    root = os.environ.get("HARNESS_DATA")
    if root and not Path(root).is_dir():
        yield f"! HARNESS_DATA is {root}, which is not a folder"
    yield f"data: {root or 'HARNESS_DATA is not set: protocols run on samples'}"
    cache = home.cache()
    yield f"cache: {cache}"
    try:
        atomic.must_be_writable(cache, f"nothing can be kept in {cache}", home.REMEDY)
    except OSError as error:
        yield f"! {error}"


def _datasets() -> Iterator[str]:
    from harness.data import datasets

    places = {name: datasets.path(name) for name in datasets.known()}
    here = {name: place for name, place in places.items() if place}
    yield f"{len(here)} of {len(places)} published data sets are here"
    yield from (f"  {name} in {place}" for name, place in sorted(here.items()))


def _weights() -> Iterator[str]:
    from harness.data import published_weights, weights

    known = published_weights.known()
    here = sorted(name for name, row in known.items() if weights.is_here(row))
    yield f"{len(here)} of {len(known)} published weights are here"
    yield from (f"  {name}" for name in here)


def _plugins() -> Iterator[str]:
    for kind in registry.KINDS:
        names = registry.names(kind)
        yield f"{len(names)} {kind}: {', '.join(names)}"
        for name in names:
            try:
                registry.load(kind, name)
            except extras.ExtraMissingError as error:
                yield f"  {error}"
            except (ImportError, LookupError) as error:
                yield f"! {error}"
