"""What is installed, what really works, and where things are kept."""

import os
import platform
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distributions, version

from harness import home, registry

PACKAGES = ("numpy", "scipy", "pandas", "torch", "safetensors", "pycolmap", "onnx", "scikit-image")


def report() -> Iterator[str]:
    """Lines to read; a line that needs action begins with "!"."""
    yield f"python {platform.python_version()} on {platform.system()} {platform.machine()}"
    yield f"descriptor-harness {version('descriptor-harness')}"
    for package in PACKAGES:
        yield f"{package} {_version(package)}"
    yield from _opencv()
    yield from _onnx()
    yield from _torch()
    yield from _data()
    for kind in ("descriptors", "protocols"):
        yield f"{len(registry.names(kind))} {kind}"
        for name in registry.names(kind):
            try:
                registry.load(kind, name)
            except (ImportError, LookupError) as error:
                yield f"! {error}"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _installed(prefix: str) -> list[str]:
    names = {str(one.metadata["Name"]).lower() for one in distributions()}
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
    wheels = [name for name in _installed("onnxruntime")]
    if len(wheels) > 1:
        yield f"! {' and '.join(wheels)} overwrite each other: keep one"
    from harness.plugins import working_providers

    found = _version(wheels[0]) if wheels else "not installed"
    yield f"ONNX Runtime {found}, on which really work: {', '.join(working_providers())}"


def _torch() -> Iterator[str]:
    import torch

    yield f"torch computes on {'cuda and cpu' if torch.cuda.is_available() else 'cpu'}"


def _data() -> Iterator[str]:
    root = os.environ.get("HARNESS_DATA")
    if root and not os.path.isdir(root):  # noqa: PTH112 - a string of the user's
        yield f"! HARNESS_DATA is {root}, which is not a folder"
    yield f"data: {root or 'HARNESS_DATA is not set: protocols run on samples'}"
    yield f"cache: {home.cache()}"
