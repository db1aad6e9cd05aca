"""What the parts of `benchmarks.gpu` are given and what they find."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch


@dataclass(frozen=True)
class Setting:
    """How the parts are run."""

    device: torch.device
    quick: bool  # as small as it can be, to test the script
    folder: Path  # an empty one, for files


@dataclass(frozen=True)
class Found:
    """One line of the table."""

    what: str
    value: str
    wanted: str = ""
    good: bool | None = None  # None: it is told, nothing is wanted


Part = Callable[[Setting], Iterator[Found]]


def close(what: str, value: float, reference: float, tolerance: float) -> Found:
    """A number beside the one that it should be near, relative to that one."""
    apart = abs(value - reference) / max(abs(reference), 1e-12)
    wanted = f"{reference:.7g} within {tolerance:g}"
    return Found(what, f"{value:.7g}, apart by {apart:.1e}", wanted, apart <= tolerance)
