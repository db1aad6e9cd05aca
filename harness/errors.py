"""Errors that a user can correct, reported on one line; errors of plug-ins are turned into them."""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager

# Errors of Python itself: of the system, or of a fault in our code.
BUILT_IN = (ValueError, TypeError, LookupError, ImportError, OSError, RuntimeError, ArithmeticError)
FAILURES = (Exception, SystemExit)  # a plug-in may raise anything, and a script may call sys.exit


class HarnessError(Exception):
    """An error that the user can correct: the command line reports it on one line.

    Each subclass is also the built-in error of its kind, so that `except ValueError` catches
    an `InputError`. Any other exception is a fault of the harness and shows its traceback.
    """


class InputError(HarnessError, ValueError):
    """A file, an option or a number is not valid."""


class InputTypeError(HarnessError, TypeError):
    """A value, often of a plug-in, has the wrong type."""


class UnknownNameError(HarnessError, LookupError):
    """Nothing has this name; the message gives the nearest known name."""


class FileMissingError(HarnessError, FileNotFoundError):
    """A file or folder that is needed does not exist."""


class FileInTheWayError(HarnessError, FileExistsError):
    """A file or folder already exists where a new one should be made."""


class SystemRefusedError(HarnessError, OSError):
    """The operating system or the network failed: no permission, no space, no connection."""


class ComputeError(HarnessError, RuntimeError):
    """A model, a library or a device failed."""


class ImportFailedError(HarnessError, ImportError):
    """A package is missing or cannot be imported."""


class OutOfMemory(HarnessError, MemoryError):
    """A step needs more memory than the machine has; the message says what to do."""

    def __init__(self, step: str, error: MemoryError) -> None:
        """Write the message from the step, the process's memory and the failed request.

        Args:
            step: its name.
            error: from NumPy or Python; the failed request may be small, after many others.
        """
        super().__init__(
            f"{step} needs more memory than there is: this process {_held()}, and failed to get"
            f" more ({str(error) or 'no size given'}). Close other programs, take a machine with"
            " more memory, or ask for less at a time: a smaller --batch-size, a part of the data by"
            " --split, fewer models"
        )


def _held() -> str:
    try:
        resource = importlib.import_module("resource")
    except ImportError:  # Windows
        return "held all memory that it could get"
    unit = 1 if sys.platform == "darwin" else 1024  # bytes; man getrusage
    peak = unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return f"held up to {peak / 1e9:.1f} GB"


def text_of(error: BaseException) -> str:
    """The text of an error; of other libraries also its class, which often says more."""
    if isinstance(error, HarnessError):
        return str(error)
    return f"{type(error).__name__}: {error}"


def one_line(error: object) -> str:
    r"""The message of a library's error on one line, as part of our own message.

    >>> one_line(RuntimeError("Error tokenizing data.\n\tExpected 6 fields\n"))
    'Error tokenizing data. Expected 6 fields'
    """
    return " ".join(str(error).split())


@contextmanager
def naming(work: str) -> Iterator[None]:
    """Add the user's input to errors of libraries that do not name it.

    Args:
        work: the work and its input, such as a file.

    Raises:
        OutOfMemory: in place of a MemoryError.
        ComputeError: in place of an exception that is not built in, such as cv2.error.
    """
    try:
        yield
    except (HarnessError, *BUILT_IN):
        raise
    except MemoryError as error:
        raise OutOfMemory(work, error) from error
    except FAILURES as error:
        kind = type(error)  # with its module: the class of OpenCV is just called "error"
        raise ComputeError(
            f"{work} fails: {kind.__module__}.{kind.__name__}: {one_line(error)}"
        ) from error
