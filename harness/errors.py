"""Errors that a user can correct, reported on one line; errors of plug-ins are turned into them."""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager

MENDABLE = (ValueError, TypeError, LookupError, ImportError, OSError, RuntimeError, MemoryError)
FAILURES = (Exception, SystemExit)  # a plug-in may fail in any way, and a script may exit


class OutOfMemory(MemoryError):
    """A step of the work needs more memory than there is; the message says what to do."""

    def __init__(self, what: str, error: MemoryError) -> None:
        """Name the step, what the process held, and the request that failed.

        Args:
            what: the step.
            error: what NumPy or Python raised; the request in it may be a small last one.
        """
        super().__init__(
            f"{what} needs more memory than there is: this process {_held()}, and failed to get"
            f" more ({str(error) or 'no size given'}). Close other programs, take a machine with"
            " more memory, or ask for less at a time: a smaller --batch-size, a part of the data by"
            " --split, fewer models"
        )


def _held() -> str:
    try:
        resource = importlib.import_module("resource")
    except ImportError:  # Windows
        return "held all it could get"
    unit = 1 if sys.platform == "darwin" else 1024  # bytes; man getrusage
    most = unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return f"held up to {most / 1e9:.1f} GB"


def one_line(error: object) -> str:
    r"""The message of a library's error in one line, to stand in a message of ours.

    >>> one_line(RuntimeError("Error tokenizing data.\n\tExpected 6 fields\n"))
    'Error tokenizing data. Expected 6 fields'
    """
    return " ".join(str(error).split())


@contextmanager
def naming(what: str) -> Iterator[None]:
    """Make errors of libraries that do not name a user's input name it.

    Raises:
        OutOfMemory: in place of a MemoryError.
        RuntimeError: in place of what is not one of MENDABLE, as cv2.error and struct.error.
    """
    try:
        yield
    except OutOfMemory:
        raise
    except MemoryError as error:
        raise OutOfMemory(what, error) from error
    except MENDABLE:
        raise
    except FAILURES as error:
        kind = type(error)  # with its module: both of the above are called "error"
        raise RuntimeError(
            f"{what} fails: {kind.__module__}.{kind.__name__}: {one_line(error)}"
        ) from error
