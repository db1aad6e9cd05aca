"""Errors that a user can mend are told in one line; what a plug-in raises becomes one of them."""

from collections.abc import Iterator
from contextlib import contextmanager

MENDABLE = (ValueError, TypeError, LookupError, ImportError, OSError, RuntimeError)
FAILURES = (Exception, SystemExit)  # a plug-in may fail in any way, and a script may exit


@contextmanager
def naming(what: str) -> Iterator[None]:
    """Errors of libraries that say nothing of a user's input (cv2.error, struct.error) say it.

    Raises:
        RuntimeError: in place of whatever is not one of MENDABLE.
    """
    try:
        yield
    except MENDABLE:
        raise
    except FAILURES as error:
        kind = type(error)  # with its module: both of the above are called "error"
        raise RuntimeError(f"{what} fails: {kind.__module__}.{kind.__name__}: {error}") from error
