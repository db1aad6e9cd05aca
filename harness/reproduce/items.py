"""Items: a table or figure of a paper as a TOML file that names all its cells.

A cell says which training is scored, on which data, by which protocol. The file has the settings
that all cells share, and axes: each value of an axis changes some settings. A cell of the table is
the shared cell, changed by one value of each axis. So no cell is written out, and none is made in
code.
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from harness import registry
from harness.errors import InputError, UnknownNameError
from harness.files import folders, texts

AXES = "axes.toml"  # axes that several items of a folder of papers share
CLAIMS = "claims.toml"
BUDGETS = "budgets"  # folder beside those of the papers


class Part(BaseModel):
    """A table of a file of ours: an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


P = TypeVar("P", bound=BaseModel)


class Cell(Part):
    """What is measured in one cell, or the settings that a value of an axis changes.

    Either an installed `model` is scored, or a training by `recipe`; some measures need neither.
    """

    model: str = ""  # an installed model; empty: a training
    recipe: str = ""
    settings: tuple[str, ...] = ()  # of the recipe, as of `harness train --set`
    start: str = ""  # recipe of a training on the same data, whose weights this one starts from
    common: tuple[str, ...] = ()  # settings of both of these trainings
    train: tuple[str, ...] = ()  # names of training data
    seeds: int = Field(default=1, ge=1)  # trainings with the seeds 0, 1, ...
    wrap: str = ""  # wrappers around the trained model, as in "NAME|NAME"
    epochs: bool = False  # score the weights of several epochs
    protocol: str = ""
    options: dict[str, Any] = Field(default={})  # of the protocol
    test: tuple[str, ...] = ()  # names of tested data; the value is the mean over them
    score: str = ""  # name of the score in the record; empty: the protocol's headline
    measure: str = ""  # name of an installed measure, in place of a protocol
    arguments: dict[str, Any] = Field(default={})  # of the measure
    # Columns of the published number of the cell; "deviation": the score that is its deviation.
    published: dict[str, str] = Field(default={})

    def changed(self, by: "Cell") -> "Cell":
        """This cell, changed by another; tables and settings are joined, others are replaced."""
        values: dict[str, Any] = {name: getattr(by, name) for name in by.model_fields_set}
        for name in ("options", "arguments", "published"):
            values[name] = {**getattr(self, name), **getattr(by, name)}
        for name in ("settings", "common"):
            values[name] = (*getattr(self, name), *getattr(by, name))
        return self.model_copy(update=values)


Axes = dict[str, dict[str, Cell]]


class Mean(Part):
    """A further column: the mean over the columns of a row."""

    title: str = "mean"
    scores: tuple[str, ...] = ()  # its names in the published numbers


class Figure(Part):
    """How a figure shows the cells.

    "bars" and "lines" show the values of cells: bars by column, or lines over the numbers of an
    axis. "curves", "points" and "strips" show what measures return besides a number; "epochs" shows
    values over epochs.
    """

    kind: Literal["bars", "lines", "epochs", "curves", "points", "strips"]
    x: str = ""  # label of the axis; of "lines": also the name of the item's axis
    y: str = ""
    log: bool = False  # whether x is logarithmic


class Change(Part):
    """What a budget changes in an item; an axis is replaced as a whole."""

    cell: Cell = Cell()
    axes: Axes = Field(default={})


class Item(Part):
    """A table or figure of a paper."""

    title: str
    sources: tuple[str, ...] = Field(min_length=1)  # as "PAPER, WHERE" in the published numbers
    about: str = ""  # what the paper leaves open, and how this file answers it
    rows: tuple[str, ...] = ()  # axes
    columns: tuple[str, ...] = ()
    cell: Cell = Cell()
    axes: Axes = Field(default={})
    mean: Mean | None = None
    compare: tuple[str, str] | None = None  # two values of the first axis of rows: Mann-Whitney's p
    figure: Figure | None = None
    at: dict[str, Change] = Field(default={})  # by the name of a budget

    @model_validator(mode="after")
    def _axes_are_shown(self) -> "Item":
        shown = {*self.rows, *self.columns}
        for axes in (self.axes, *(change.axes for change in self.at.values())):
            if unknown := sorted({*axes} - shown):
                raise InputError(f"axes {', '.join(unknown)} are in neither rows nor columns")
        return self


@dataclass(frozen=True)
class Found:
    """An item with its name, such as "paper/table1", and its place."""

    name: str
    item: Item
    file: Path


def folders_of_papers() -> list[Path]:
    """Folders that installed packages declare; each has a folder for each paper."""
    return [registry.load("papers", name) for name in registry.names("papers")]


def names() -> list[str]:
    """Names of all items, by paper."""
    return [f"{file.parent.name}/{file.stem}" for file in _files()]


def find(name: str) -> Found:
    """The item of a name.

    Raises:
        UnknownNameError: if there is none; gives the nearest name.
        InputError: if its file is damaged; names the key.
    """
    for file in _files():
        if f"{file.parent.name}/{file.stem}" == name:
            return _read(file)
    raise UnknownNameError(registry.unknown("items", name, names()))


def parsed(kind: type[P], file: Path) -> P:
    """The table of a TOML file.

    Raises:
        InputError: if the file is not TOML, or has a key or value that is not known.
    """
    return checked(kind, table(file), file)


def table(file: Path) -> dict[str, Any]:
    """The contents of a TOML file.

    Raises:
        InputError: if the file is not TOML; names it.
    """
    try:
        return tomllib.loads(texts.read(file))
    except ValueError as error:
        raise InputError(f"{file} is not TOML: {error}") from error


def checked(kind: type[P], contents: Mapping[str, Any], file: Path) -> P:
    """A table of our kind, from the contents of a file.

    Raises:
        InputError: if a key or a value is not known; names the file and the key.
    """
    try:
        return kind.model_validate(dict(contents))
    except ValidationError as error:
        told = "; ".join(
            f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()[:3]
        )
        raise InputError(f"{file}: {told}") from error


def cells(item: Item, budget: str, keep: int | None) -> Iterator[tuple[dict[str, str], Cell]]:
    """Yields the place of each cell, a value of each axis, with the cell; row by row.

    Args:
        item: the item.
        budget: its name.
        keep: most values of an axis that the budget has; the last ones are left out, except that
            the last of all is kept. None: all.
    """
    change = item.at.get(budget, Change())
    axes = {**item.axes, **change.axes}
    shown = (*item.rows, *item.columns)
    chosen = [_kept(list(axes[axis].items()), keep, axis in change.axes) for axis in shown]
    start = item.cell.changed(change.cell)
    for values in product(*chosen):
        cell = start
        for _, by in values:
            cell = cell.changed(by)
        yield dict(zip(shown, (name for name, _ in values), strict=True)), cell


def _kept(values: list[tuple[str, Cell]], keep: int | None, chosen: bool) -> list[tuple[str, Cell]]:
    if keep is None or chosen or len(values) <= keep:
        return values
    return [*values[: keep - 1], values[-1]]


def _files() -> list[Path]:
    return [
        file
        for root in folders_of_papers()
        for paper in folders.folders(root)
        if paper.name != BUDGETS
        for file in folders.entries(paper)
        if file.suffix == ".toml"
    ]


def _read(file: Path) -> Found:
    contents = table(file)
    shared = file.parents[1] / AXES
    common = table(shared) if shared.is_file() else {}
    shown = [*contents.get("rows", ()), *contents.get("columns", ())]
    own = contents.get("axes", {})
    for axis in shown:
        if axis not in own and axis not in common:
            raise InputError(f"{file}: the axis {axis!r} is neither there nor in {shared}")
    axes = {axis: own.get(axis, common.get(axis)) for axis in shown}
    extra = {axis: values for axis, values in own.items() if axis not in axes}
    item = checked(Item, {**contents, "axes": axes | extra}, file)
    return Found(f"{file.parent.name}/{file.stem}", item, file)
