"""Results on disk: one JSON record for each protocol, data set and model, kept in git."""

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
from harness.types import STORED, Descriptor, Protocol, Quantity, Scores
from harness.vector_folder import Model

RECORDS = "records"  # below the results

ROUNDED = 1e-9  # largest error by rounding: a fraction outside [0, 1], or outside its interval
MOST = 2.0**53  # largest quantity: above this, floats do not represent every whole number

_Sha256 = Field(pattern="^[0-9a-f]{64}$")
_Name = Field(min_length=1)


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class ModelFacts(_Part):
    """The model that was scored."""

    name: str = _Name
    dim: int = Field(ge=1, le=2**31)
    distance: str = Field(pattern=f"^({'|'.join(DISTANCES)})$")
    licence: str
    trained_on: list[str] | None  # None: unknown
    weights: str | None = Field(pattern="^[0-9a-f]{64}$")
    revision: int = Field(ge=1)  # raised by hand whenever the vectors change
    # The smaller type in which each number of a vector can be kept.
    stored: str | None = Field(
        default=None, pattern=f"^({'|'.join(STORED)})$", exclude_if=lambda found: found is None
    )
    # Of a training: records of equal recipes differ only in the seed. Not part of the identity.
    recipe: str | None = Field(default=None, min_length=1, exclude_if=lambda found: found is None)
    seed: int | None = Field(default=None, ge=0, exclude_if=lambda found: found is None)

    @property
    def identity(self) -> dict[str, object]:
        """The facts that identify a model; records of a model share a table only if they agree."""
        return self.model_dump(include={"name", "dim", "distance", "weights", "revision"})

    @property
    def size(self) -> str:
        """The size of a vector as tables show it: "128", "256 bits", or "128 int8"."""
        unit = "bits" if self.distance == "hamming" else self.stored
        return f"{self.dim} {unit}" if unit else str(self.dim)


class ProtocolFacts(_Part):
    """The protocol that defines the scores."""

    name: str = _Name
    options: dict[str, str] = {}  # options that change scores, if they differ from the default
    version: int = Field(ge=1)
    headline: str = _Name
    # Distributions whose version can change a score; the environment has the versions.
    libraries: list[str] = Field(default=[], exclude_if=lambda value: not value)
    # The scores that are not fractions, by the last part of their names.
    quantities: dict[str, Quantity] = Field(default={}, exclude_if=lambda value: not value)
    # Facts of the computation, such as a solver's settings and seeds; the version covers them.
    settings: dict[str, str] = Field(default={}, exclude_if=lambda value: not value)

    @property
    def options_text(self) -> str:
        """The options as tables and paths show them: "ties=official,whitening=pcapl", or ""."""
        return options_text(self.options)

    @property
    def title(self) -> str:
        """The name, and the options if there are any: "toy/matching (ties=official)"."""
        return f"{self.name} ({self.options_text})" if self.options else self.name


def options_text(options: Mapping[str, str]) -> str:
    """Options in the order of their names, as "key=value,key=value"."""
    return ",".join(f"{key}={value}" for key, value in sorted(options.items()))


class DataFacts(_Part):
    """The patches that were described."""

    name: str = _Name
    split: str
    sha256: str = _Sha256
    patches: int = Field(ge=0)
    complete: bool
    seen_in_training: bool
    # Names of training data that no protocol knew when this was measured: such data may include
    # these patches.
    unknown_in_training: list[str] = Field(default=[], exclude_if=lambda value: not value)
    cells: list[str] = []  # parts of the data that are scored separately
    refused: list[str] = []  # cells that the model was trained on: it has no score there
    # Sentences about facts of the published data that could not be checked.
    unchecked: list[str] = Field(default=[], exclude_if=lambda value: not value)

    @model_validator(mode="after")
    def _refused_are_cells(self) -> "DataFacts":
        for cell in self.refused:
            if cell not in self.cells:
                raise InputError(f"data.refused: {cell!r} is none of the cells")
        return self


class Environment(_Part):
    """The facts about software and hardware that can change a number, and no others."""

    harness: str
    libraries: dict[str, str]
    provider: str
    machine: str
    # sha256 of the model's vectors of some made-up patches; see `evaluation.fingerprint`. It
    # differs between processors that round differently.
    fingerprint: str = Field(pattern="^([0-9a-f]{64})?$")


class Record(_Part):
    """One evaluation at full precision: scores are fractions or quantities; intervals are 95 %."""

    form: Literal[3] = 3
    protocol: ProtocolFacts
    data: DataFacts
    model: ModelFacts
    environment: Environment
    scores: dict[str, float]
    intervals: dict[str, tuple[float, float]]
    scenes: dict[str, dict[str, float]]
    # Sentences that tables show below the scores.
    warnings: list[str] = Field(default=[], exclude_if=lambda value: not value)

    @model_validator(mode="after")
    def _is_possible(self) -> "Record":
        """Refuse numbers that no protocol can have measured, so that no table shows them."""
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
                raise InputError(f"{field} is {low:g} to {high:g}: its ends are swapped")
            # The interval of a quantity holds the middle of its runs; their mean may lie outside.
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
    """A model was trained on all cells that a protocol tests."""


def refused(model: Model, protocol: Protocol, names: DataNames) -> list[str]:
    """The cells of a protocol on which a model is not scored, because it was trained on them.

    Raises:
        TrainedOnAll: if no cell is left.
    """
    trained_on = model.trained_on or frozenset()
    seen = [cell for cell, sources in protocol.cells.items() if names.meet(trained_on, sources)]
    if seen and len(seen) == len(protocol.cells):
        raise TrainedOnAll(
            f"{model.name} was trained on {', '.join(sorted(trained_on))}, and"
            f" {protocol.name} tests {', '.join(seen)} of {protocol.dataset.name}: a model gets no"
            " score on its training data; choose other data"
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
    """The record of one evaluation; the same evaluation gives the same record.

    Args:
        model: the model that was scored.
        protocol: the protocol that scored it.
        scores: the scores.
        fingerprint: of the model's vectors, from `evaluation.fingerprint`.
        kept_from: cells that are not scored, from `refused`.
        names: names of data that installed protocols know.
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
            settings=dict(protocol.settings),
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
            stored=model.stored if isinstance(model, Descriptor) else None,
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
    """Unknown names of a model's training data; they may stand for data that are tested."""
    sources = protocol.dataset.sources.union(*protocol.cells.values())
    return names.unknown(model.trained_on or (), sources)


def folder_of(root: Path, *parts: str) -> Path:
    """A folder below the results, from names in a record.

    Raises:
        InputError: if a name is not a plain folder name; names also come from files of data sets.
    """
    for part in parts:
        _must_be_plain(part, parts)
    return root.joinpath(*parts)


def _must_be_plain(part: str, parts: Sequence[str]) -> None:
    if part in (".", "..") or not re.fullmatch(r"[\w.+@-]+", part):
        raise InputError(
            f"records can't be kept under {'/'.join(parts)!r}: {part!r} can't name a folder; names"
            " of protocols, data sets, splits and options may have only letters, digits, and"
            " . _ + @ -"
        )


def place(root: Path, kept: Record) -> Path:
    """A record's file: <root>/records/<protocol>/<data>/<split>/[<options>/]<model>.json.

    The options are the name of a folder, for example "ties=official,whitening=pcapl"; without
    options there is no such folder.

    Raises:
        InputError: as `folder_of` does.
    """
    return _file(root, kept.protocol, kept.data.name, kept.data.split, kept.model.name)


def file_of(root: Path, model: str, protocol: Protocol) -> Path:
    """The file of the record that a model would get on a protocol.

    Raises:
        InputError: as `folder_of` does.
    """
    return _file(root, protocol, protocol.dataset.name, protocol.dataset.split, model)


def _file(
    root: Path, protocol: Protocol | ProtocolFacts, data: str, split: str, model: str
) -> Path:
    folder = folder_of(root / RECORDS, *protocol.name.split("/"), data, split)
    if protocol.options:
        text = options_text(protocol.options)
        for part in (*protocol.options, *protocol.options.values()):
            _must_be_plain(part, [text])
        folder /= text
    name = re.sub(r"[^\w.+-]", "_", model)  # some systems allow no file named "mine:fast"
    return folder / f"{name}.json"


def must_be_free(root: Path, model: Model, protocol: Protocol) -> None:
    """Refuse, before any work, an evaluation whose record would overwrite a different one.

    Raises:
        InputError: as `save` does.
    """
    data = protocol.dataset
    file = _file(root, protocol, data.name, data.split, model.name)
    _must_be_alike(file, model.name, data.sha256, model.weights)


def to_json(kept: Record) -> str:
    """The text of a record: sorted keys, full precision, "\\n" at the end."""
    return json.dumps(kept.model_dump(), indent=1, sort_keys=True, allow_nan=False) + "\n"


def save(root: Path, kept: Record) -> Path:
    """Write one record in place of an older one; the same record gives the same bytes.

    Raises:
        InputError: if the file holds the record of another model, of other weights, or of other
            data with this name.
    """
    file = place(root, kept)
    _must_be_alike(file, kept.model.name, kept.data.sha256, kept.model.weights)
    atomic.write_text(file, to_json(kept))
    return file


def _must_be_alike(file: Path, model: str, data: str, weights: str | None) -> None:
    try:
        older = read(file)
    except (FileNotFoundError, ValueError):  # a record of an older form is out of date anyway
        return
    for fact, stored, new in (
        ("another model", older.model.name, model),
        ("other data", older.data.sha256[:12], data[:12]),
        ("other weights", (older.model.weights or "none")[:12], (weights or "none")[:12]),
    ):
        if stored != new:
            raise InputError(
                f"{file} is a record of {fact} ({stored}; this is {new}): choose another --results,"
                " or remove it"
            )


def save_run(file: Path, facts: Mapping[str, object]) -> None:
    """Write facts of a run beside its record that can't change a number: time, host, duration."""
    atomic.write_text(file.with_suffix(".run"), json.dumps(facts, indent=1) + "\n")


def load(root: Path) -> list[Record]:
    """All records of a folder of results, in the order of their paths.

    Raises:
        InputError: if a file below `records` is not a valid record; names the file and the field.
    """
    return [read(file) for file in folders.files(root / RECORDS) if file.suffix == ".json"]


def read(file: Path) -> Record:
    """The record in a file; its form is checked, and that its names can be names of folders."""
    try:
        kept = Record.model_validate_json(file.read_bytes(), strict=True)
        place(file.parent, kept)
        return kept
    except ValueError as error:
        faults = error.errors()[:3] if isinstance(error, ValidationError) else []
        where = "; ".join(map(_fault, faults)) or str(error)
        raise InputError(
            f"{file} is not a record of this version ({where}):"
            " evaluate again, or move the file away"
        ) from error


def _fault(error: ErrorDetails) -> str:
    """A fault as text, with its field; our own messages name the field already."""
    ours = error["msg"].removeprefix("Value error, ")
    if ours != error["msg"]:
        return ours
    return f"{'.'.join(map(str, error['loc'])) or 'file'}: {ours}"
