"""Packages that only a part of the harness needs, and the extra of ours that installs each."""

from collections.abc import Iterator
from contextlib import contextmanager

from harness.errors import ImportFailedError

EXTRAS = {  # by the name that Python imports; `pyproject.toml` lists what each extra installs
    "torch": "torch",
    "safetensors": "torch",
    "h5py": "features",
    "onnx": "onnx",
    "onnxruntime": "onnx",
    "onnxscript": "onnx",
    "pycolmap": "sfm",
    "distributed": "cluster",
    "tensorboard": "tensorboard",
    "jinja2": "report",
    "matplotlib": "report",
}


class ExtraMissingError(ImportFailedError):
    """A package of an extra that is not installed; the message says how to install it."""


def remedy(package: str) -> str:
    """The command that installs a package of EXTRAS."""
    return f"pip install 'descriptor-harness[{EXTRAS[package]}]'"


def missing(error: BaseException) -> str | None:
    """The package of EXTRAS whose absence caused an error; None if the cause is different."""
    name = error.name if isinstance(error, ModuleNotFoundError) else None
    package = (name or "").partition(".")[0]
    return package if package in EXTRAS else None


@contextmanager
def needed(subject: str) -> Iterator[None]:
    """Turn the failed import of an extra's package in the block into an error of one line.

    Args:
        subject: the thing that needs the package; the message begins with it.

    Raises:
        ExtraMissingError: instead of the ModuleNotFoundError; says how to install the package.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = missing(error)
        if package is None:
            raise
        raise ExtraMissingError(f"{subject} needs {package}: {remedy(package)}") from error
