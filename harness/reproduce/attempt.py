"""Goes on after an error that concerns one cell or one training only."""

from collections.abc import Callable
from typing import Any

from harness.cluster.token import UnfitWorkerError
from harness.errors import HarnessError, SystemRefusedError, text_of

OF_ALL = (SystemRefusedError, MemoryError, UnfitWorkerError)  # the others would fail, too


def attempt(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """What a function returns; the text of an error that concerns one cell or one training."""
    try:
        return function(*arguments, **options)
    except OF_ALL:
        raise
    except HarnessError as error:
        return text_of(error)
