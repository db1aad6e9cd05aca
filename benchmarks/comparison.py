"""A row of the table of `python -m benchmarks`: a task, done here and by a reference algorithm."""

from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module


@dataclass(frozen=True)
class Comparison:
    """Seconds that one task took in one run, here and by a reference algorithm."""

    task: str
    ours_s: float
    reference: str  # what the other algorithm is
    reference_s: float
    results: str  # how the results of both differ

    @property
    def ratio(self) -> float:
        """How many times as long the reference takes."""
        return self.reference_s / self.ours_s


def of_module(name: str, quick: bool) -> list[Comparison]:
    """The rows of one benchmark, `benchmarks.NAME`; small sizes if `quick`."""
    found: Iterable[Comparison] = import_module(f"benchmarks.{name}").comparisons(quick)
    return list(found)
