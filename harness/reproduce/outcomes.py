"""Outcomes of items: what was measured in each cell, as JSON without times or machines."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from pydantic import Field, FiniteFloat, ValidationError

from harness.errors import InputError
from harness.files import atomic
from harness.reproduce.items import Part

Place = Mapping[str, str]  # value of each axis


class Value(Part):
    """One number of a cell."""

    value: FiniteFloat
    seed: int = 0
    epoch: int | None = None  # None: the last
    interval: tuple[float, float] | None = None  # 95 %, as its protocol defines it
    parts: tuple[float, ...] = ()  # that it is the mean of, if it is one
    records: tuple[str, ...] = ()  # files below the folder of the outcome


class Strip(Part):
    """A row of patches of a picture."""

    label: str
    side: int  # pixels
    patches: tuple[str, ...]  # grey values as hexadecimal digits, row by row
    links: tuple[str, ...] = ()  # labels of other strips that this one is joined with


Lines = dict[str, tuple[tuple[float, float], ...]]


class Seen(Part):
    """What a measure gives: a number, and what its figure shows."""

    value: FiniteFloat | None = None
    decimals: int | None = None  # None: the value is a fraction
    lower_is_better: bool = False
    curves: Lines = Field(default={})
    points: Lines = Field(default={})
    outlines: Lines = Field(default={})  # around points of the same name
    strips: tuple[Strip, ...] = ()


class Measured(Part):
    """The outcome of one cell; it has values, or says why there are none."""

    at: dict[str, str]
    values: tuple[Value, ...] = ()
    seen: Seen | None = None  # of a measure
    missing: str = ""  # why there is no number
    decimals: int | None = None  # None: values are fractions
    lower_is_better: bool = False

    @property
    def final(self) -> list[Value]:
        """The last value of each seed, in the order of seeds."""
        last: dict[int, Value] = {}
        for one in self.values:
            last[one.seed] = one
        return [last[seed] for seed in sorted(last)]

    @property
    def value(self) -> float | None:
        """The mean over seeds; None if the cell is missing."""
        if self.missing or not self.values:
            return None
        return float(np.mean([one.value for one in self.final]))

    @property
    def deviation(self) -> float | None:
        """The standard deviation over seeds (n - 1); None for one seed."""
        values = [one.value for one in self.final]
        return None if self.missing or len(values) < 2 else float(np.std(values, ddof=1))


class Outcome(Part):
    """What was measured for an item with a budget."""

    form: int = Field(default=1, ge=1, le=1)
    item: str
    budget: str
    trained_on: dict[str, str] = Field(default={})  # data of the item -> data that stood for them
    tested_on: dict[str, str] = Field(default={})
    cells: tuple[Measured, ...]

    def at(self, wanted: Place) -> list[Measured]:
        """The cells that have these values of axes."""
        return [one for one in self.cells if wanted.items() <= one.at.items()]


def file_of(out: Path, item: str, budget: str) -> Path:
    """The file of an outcome."""
    return out / budget / f"{item}.json"


def save(out: Path, outcome: Outcome) -> Path:
    """Write an outcome; the same outcome gives the same bytes."""
    file = file_of(out, outcome.item, outcome.budget)
    atomic.write_json(file, outcome.model_dump(mode="json", exclude_defaults=True))
    return file


def read(file: Path) -> Outcome:
    """The outcome in a file.

    Raises:
        InputError: if the file is not an outcome; names the faulty keys.
    """
    try:
        return Outcome.model_validate_json(file.read_bytes())
    except ValidationError as error:
        told = "; ".join(
            f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()[:3]
        )
        raise InputError(
            f"{file} is not an outcome of this version ({told}): reproduce the item again"
        ) from error
