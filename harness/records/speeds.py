"""Speeds of models, read from the table that a benchmark writes, and the front of what is best."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from harness.errors import InputError

FILE = "studies/speed.csv"  # below the results
COLUMNS = {"model", "bytes", "cores", "patches_per_second", "machine"}


@dataclass(frozen=True)
class Speed:
    """Speed and size of a model."""

    bytes: int  # of a vector
    per_second: dict[int, float]  # patches, by number of cores
    machine: str


def table(file: Path) -> pd.DataFrame:
    """The table of speeds: a line for each model and number of cores.

    Raises:
        InputError: if columns are missing, or speeds are of several machines.
    """
    speeds = pd.read_csv(file)
    if missing := COLUMNS - set(speeds.columns):
        raise InputError(f"{file} has no column {', '.join(sorted(missing))}; write it again")
    if speeds["machine"].nunique() > 1:
        raise InputError(f"{file} has speeds of several machines, which can't be compared")
    return speeds


def read(root: Path) -> dict[str, Speed]:
    """The speeds of a folder of results, by model; none if it has no table of them.

    Raises:
        InputError: as `table` does.
    """
    file = root / FILE
    if not file.is_file():
        return {}
    found = {}
    for name, rows in table(file).groupby("model", sort=True):
        speed = dict(zip(rows["cores"].tolist(), rows["patches_per_second"].tolist(), strict=True))
        found[str(name)] = Speed(int(rows["bytes"].iloc[0]), speed, str(rows["machine"].iloc[0]))
    return found


def front(models: Sequence[Sequence[float]]) -> list[bool]:
    """Whether no other model is at least as good in every respect, and better in one.

    Args:
        models: a number for each respect, of which a higher one is better; the same respects for
            all.

    >>> front([(0.9, 10), (0.8, 20), (0.7, 15)])
    [True, True, False]
    """
    return [not any(_beats(other, one) for other in models) for one in models]


def _beats(one: Sequence[float], other: Sequence[float]) -> bool:
    return one != other and all(a >= b for a, b in zip(one, other, strict=True))
