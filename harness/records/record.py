"""Results on disk: one JSON record a protocol, data set and model, kept in git."""

import json
import platform
import re
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails

from harness.data_names import DataNames
from harness.distances import DISTANCES
from harness.errors import InputError
from harness.files import atomic, folders
from harness.types import Protocol, Quantity, Scores
from harness.vector_folder import Model

RECORDS = "records"  # below the results

ROUNDED = 1e-9  # by which rounding may lead a fraction out of [0, 1], or out of its interval
MOST = 2.0**53  # of a quantity: larger floats count no more one by one

_Sha256 = Field(pattern="^[0-9a-f]{64}$")
_Name = Field(min_length=1)


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class ModelFacts(_Part):
    """What was judged."""

    name: str = _Name
    dim: int = Field(ge=1, le=2**31)
    distance: str = Field(pattern=f"^({'|'.join(DISTANCES)})$")
    licence: str
    trained_on: list[str] | None  # None: nobody says on what
    weights: str | None = Field(pattern="^[0-9a-f]{64}$")
    revision: int = Field(ge=1)  # raised by hand whenever the vectors change
    # Of a training: records of equal recipes differ only in the seed. Not part of the identity.
    recipe: str | None = Field(default=None, min_length=1, exclude_if=lambda found: found is None)
    seed: int | None = Field(default=None, ge=0, exclude_if=lambda found: found is None)

    @property
    def identity(self) -> dict[str, object]:
        """The facts by which two records are of one model: they may share a table."""
        return self.model_dump(include={"name", "dim", "distance", "weights", "revision"})

    @property
    def size(self) -> str:
        """Of a vector, as tables show it: "128", or "256 bits"."""
        return f"{self.dim}{' bits' if self.distance == 'hamming' else ''}"


class ProtocolFacts(_Part):
    """By which definition."""

    name: str = _Name
    options: dict[str, str] = {}  # that differ from the default and change scores
    version: int = Field(ge=1)
    headline: str = _Name
    # Distributions whose version can change a score; the environment has the versions.
    libraries: list[str] = Field(default=[], exclude_if=lambda found: not found)
    # Kinds of the scores that are not fractions, by the last part of their names.
    quantities: dict[str, Quantity] = Field(default={}, exclude_if=lambda found: not found)

    @property
    def options_text(self) -> str:
        """Its options as tables and paths show them: "ties=official,whitening=pcapl", or ""."""
        return options_text(self.options)

    @property
    def title(self) -> str:
        """Its name, and its options if it has some: "toy/matching (ties=official)"."""
        return f"{self.name} ({self.options_text})" if self.options else self.name


def options_text(options: Mapping[str, str]) -> str:
    """Options in the order of their names, as "key=value,key=value"."""
    return ",".join(f"{key}={value}" for key, value in sorted(options.items()))


class DataFacts(_Part):
    """On which patches."""

    name: str = _Name
    split: str
    sha256: str = _Sha256
    patches: int = Field(ge=0)
    complete: bool
    seen_in_training: bool
    # Names of training data that no protocol knew when this was measured: such data may include
    # these patches.
    unknown_in_training: list[str] = Field(default=[], exclude_if=lambda found: not found)
    cells: list[str] = []  # parts of the data that are scored apart
    refused: list[str] = []  # those of them that the model was trained on: it has no score there
    # Sentences: which facts of the published data of this name could not be checked.
    unchecked: list[str] = Field(default=[], exclude_if=lambda found: not found)

    @model_validator(mode="after")
    def _refused_are_cells(self) -> "DataFacts":
        for cell in self.refused:
            if cell not in self.cells:
                raise InputError(f"data.refused: {cell!r} is none of the cells")
        return self


class Environment(_Part):
    """What could change a number, and only that."""

    harness: str
    libraries: dict[str, str]
    provider: str
    machine: str
    # sha256 of the model's vectors of some made-up patches, as `evaluation.fingerprint` has it. It
    # differs between processors that round differently.
    fingerprint: str = Field(pattern="^([0-9a-f]{64})?$")


class Record(_Part):
    """One measurement at full precision: fractions and quantities, intervals that cover 95 %."""

    form: Literal[3] = 3
    protocol: ProtocolFacts
    data: DataFacts
    model: ModelFacts
    environment: Environment
    scores: dict[str, float]
    intervals: dict[str, tuple[float, float]]
    scenes: dict[str, dict[str, float]]
    # Sentences that tables show below the scores.
    warnings: list[str] = Field(default=[], exclude_if=lambda found: not found)

    @model_validator(mode="after")
    def _is_possible(self) -> "Record":
        """Whether a protocol can have measured this: an edited record makes no table."""
        if not self.scores and not self.data.refused:
            raise InputError("scores: there are none")
        for name, value in self.scores.items():
            self._must_be_possible(name, value, f"scores.{name}")
        for scene, values in self.scenes.items():
            for name, value in values.items():
                self._must_be_possible(name, value, f"scenes.{scene}.{name}")
        for name, (low, high) in self.intervals.items():
            field = f"intervals.{name}"
            if name not in self.scores:
                raise InputError(f"{field}: there is no such score")
            self._must_be_possible(name, low, f"{field}, lower end,")
            self._must_be_possible(name, high, f"{field}, upper end,")
            if low > high:
                raise InputError(f"{field} is {low:g} to {high:g}: its ends are exchanged")
            # The interval of a quantity is of runs: their mean may lie beside it.
            inside = low - ROUNDED <= self.scores[name] <= high + ROUNDED
            if not inside and not self._is_quantity(name):
                raise InputError(
                    f"{field} is {low:g} to {high:g}, and the score, {self.scores[name]:g}, is"
                    " outside of it"
                )
        return self

    def _is_quantity(self, name: str) -> bool:
        return name.rpartition("/")[2] in self.protocol.quantities

    def _must_be_possible(self, name: str, value: float, field: str) -> None:
        if self._is_quantity(name):
            if not 0 <= value <= MOST:
                raise InputError(f"{field} is {value:g}; a quantity is from 0 to {MOST:g}")
        elif not -ROUNDED <= value <= 1 + ROUNDED:
            raise InputError(f"{field} is {value:g}; a fraction is from 0 to 1")


class TrainedOnAll(InputError):
    """A model was trained on everything that a protocol tests cell by cell."""


def refused(model: Model, protocol: Protocol, names: DataNames) -> list[str]:
    """The cells of a protocol that a model is not scored on, since it was trained on them.

    Raises:
        TrainedOnAll: if no cell is left.
    """
    trained_on = model.trained_on or frozenset()
    seen = [cell for cell, sources in protocol.cells.items() if names.meet(trained_on, sources)]
    if seen and len(seen) == len(protocol.cells):
        raise TrainedOnAll(
            f"{model.name} was trained on {', '.join(sorted(trained_on))}, and"
            f" {protocol.name} tests {', '.join(seen)} of {protocol.dataset.name}: what training"
            " has seen gives no score; choose other data"
        )
    return seen


def record(
    model: Model,
    protocol: Protocol,
    scores: Scores,
    fingerprint: str,
    kept_from: Sequence[str],
    names: DataNames,
) -> Record:
    """The record of one evaluation: the same run makes the same record.

    Args:
        model: what was judged.
        protocol: by what.
        scores: what came of it.
        fingerprint: of the model's vectors, as `evaluation.fingerprint` has it.
        kept_from: cells that are not scored, as `refused` has them.
        names: of data, as installed protocols know them.
    """
    dataset = protocol.dataset
    trained_on = model.trained_on or frozenset()
    tested = [sources for cell, sources in protocol.cells.items() if cell not in kept_from]
    return Record(
        protocol=ProtocolFacts(
            name=protocol.name,
            options=dict(protocol.options),
            version=protocol.version,
            headline=protocol.headline,
            quantities=dict(protocol.quantities),
            libraries=sorted(protocol.libraries),
        ),
        data=DataFacts(
            name=dataset.name,
            split=dataset.split,
            sha256=dataset.sha256,
            patches=len(dataset),
            complete=dataset.complete,
            seen_in_training=names.meet(
                trained_on, frozenset().union(*tested) if tested else dataset.sources
            ),
            unknown_in_training=unknown_in_training(model, protocol, names),
            cells=list(protocol.cells),
            refused=list(kept_from),
            unchecked=list(dataset.unchecked),
        ),
        model=ModelFacts(
            name=model.name,
            dim=model.dim,
            distance=model.distance.name,
            licence=model.licence,
            trained_on=None
            if model.trained_on is None
            else sorted({names.canonical(name) or name for name in trained_on}),
            weights=model.weights,
            revision=model.revision,
            recipe=model.recipe,
            seed=model.seed,
        ),
        environment=Environment(
            harness=version("descriptor-harness"),
            libraries={
                name: version(name)
                for name in sorted({"numpy", *model.libraries, *protocol.libraries})
            },
            provider=model.provider,
            machine=platform.machine(),
            fingerprint=fingerprint,
        ),
        scores=dict(scores.values),
        intervals=dict(scores.intervals),
        scenes={scene: dict(values) for scene, values in scores.scenes.items()},
        warnings=list(scores.warnings),
    )


def unknown_in_training(model: Model, protocol: Protocol, names: DataNames) -> list[str]:
    """Names of a model's training data that nobody knows: they may stand for what is tested."""
    sources = protocol.dataset.sources.union(*protocol.cells.values())
    return names.unknown(model.trained_on or (), sources)


def folder_of(root: Path, *parts: str) -> Path:
    """A folder below the results, called after what a record says of itself.

    Raises:
        InputError: if a part would lead elsewhere: names come from the files of data sets, too.
    """
    for part in parts:
        _must_be_plain(part, parts)
    return root.joinpath(*parts)


def _must_be_plain(part: str, parts: Sequence[str]) -> None:
    if part in (".", "..") or not re.fullmatch(r"[\w.+@-]+", part):
        raise InputError(
            f"records can't be kept under {'/'.join(parts)!r}: {part!r} is no name of a folder;"
            " names of protocols, data sets and splits, and options, have letters, digits, and"
            " . _ + @ - only"
        )


def place(root: Path, one: Record) -> Path:
    """Where a record lives: <root>/records/<protocol>/<data>/<split>/[<options>/]<model>.json.

    Options are a folder's name, as "ties=official,whitening=pcapl"; a protocol without options has
    no such folder.

    Raises:
        InputError: as `folder_of` does.
    """
    return _file(root, one.protocol, one.data.name, one.data.split, one.model.name)


def _file(
    root: Path, protocol: Protocol | ProtocolFacts, data: str, split: str, model: str
) -> Path:
    folder = folder_of(root / RECORDS, *protocol.name.split("/"), data, split)
    if protocol.options:
        text = options_text(protocol.options)
        for part in (*protocol.options, *protocol.options.values()):
            _must_be_plain(part, [text])
        folder /= text
    name = re.sub(r"[^\w.+-]", "_", model)  # "mine:fast" is no file name everywhere
    return folder / f"{name}.json"


def must_be_free(root: Path, model: Model, protocol: Protocol) -> None:
    """Refuse, before any work, an evaluation whose record would take the place of another's.

    Raises:
        InputError: as `save` does.
    """
    data = protocol.dataset
    file = _file(root, protocol, data.name, data.split, model.name)
    _must_be_alike(file, model.name, data.sha256, model.weights)


def to_json(one: Record) -> str:
    """The bytes of a record: keys in order, full precision, "\\n" at the end."""
    return json.dumps(one.model_dump(), indent=1, sort_keys=True, allow_nan=False) + "\n"


def save(root: Path, one: Record) -> Path:
    """Write one record in place of an older one; the same record writes the same bytes.

    Raises:
        InputError: if the file holds the record of another model, of other weights, or of other
            data of this name.
    """
    file = place(root, one)
    _must_be_alike(file, one.model.name, one.data.sha256, one.model.weights)
    atomic.write_text(file, to_json(one))
    return file


def _must_be_alike(file: Path, model: str, data: str, weights: str | None) -> None:
    try:
        older = read(file)
    except (FileNotFoundError, ValueError):  # of an older form: it is out of date anyhow
        return
    for what, its, mine in (
        ("model", older.model.name, model),
        ("contents of the data", older.data.sha256[:12], data[:12]),
        ("weights", (older.model.weights or "none")[:12], (weights or "none")[:12]),
    ):
        if its != mine:
            raise InputError(
                f"{file} is a record of other {what} ({its}; this is {mine}): choose another"
                " --results, or remove it"
            )


def save_run(file: Path, facts: Mapping[str, object]) -> None:
    """Keep beside a record what can't change its numbers: time, host, duration."""
    atomic.write_text(file.with_suffix(".run"), json.dumps(facts, indent=1) + "\n")


def load(root: Path) -> list[Record]:
    """Every record of a folder of results, in the order of their paths.

    Raises:
        InputError: if a file below `records` is no record; names the file and the field.
    """
    return [read(file) for file in folders.files(root / RECORDS) if file.suffix == ".json"]


def read(file: Path) -> Record:
    """One record, its form checked, and whether its names can be those of its folders."""
    try:
        found = Record.model_validate_json(file.read_bytes(), strict=True)
        place(file.parent, found)
        return found
    except ValueError as error:
        faults = error.errors()[:3] if isinstance(error, ValidationError) else []
        where = "; ".join(map(_fault, faults)) or str(error)
        raise InputError(
            f"{file} is not a record of this version ({where}):"
            " evaluate again, or move the file away"
        ) from error


def _fault(error: ErrorDetails) -> str:
    """What pydantic found, with the field; our own messages begin with it."""
    ours = error["msg"].removeprefix("Value error, ")
    if ours != error["msg"]:
        return ours
    return f"{'.'.join(map(str, error['loc'])) or 'file'}: {ours}"
