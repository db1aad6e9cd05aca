"""Results on disk: one JSON record a protocol, data set and model, kept in git."""

import json
import platform
import re
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness import atomic
from harness.types import Protocol, Quantity, Scores

if TYPE_CHECKING:
    from harness.evaluate import Model

PUBLISHED = "published"  # below the results: what papers say, in forms of its own

_Sha256 = Field(pattern="^[0-9a-f]{64}$")


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class ModelFacts(_Part):
    """What was judged."""

    name: str
    dim: int
    distance: str
    licence: str
    trained_on: list[str] | None  # None: nobody says on what
    weights: str | None = Field(pattern="^[0-9a-f]{64}$")
    code: str  # sha256 of the source that makes the vectors
    fingerprint: str  # sha256 of the vectors of some made-up patches

    @property
    def size(self) -> str:
        """Of a vector, as tables show it: "128", or "256 bits"."""
        return f"{self.dim}{' bits' if self.distance == 'hamming' else ''}"


class ProtocolFacts(_Part):
    """By which definition."""

    name: str
    version: int
    headline: str
    # Whose version, which stands in the environment, may change a score.
    libraries: list[str] = Field(default=[], exclude_if=lambda found: not found)
    # Of scores that are no fractions, by the last part of their names.
    quantities: dict[str, Quantity] = Field(default={}, exclude_if=lambda found: not found)


class DataFacts(_Part):
    """On which patches."""

    name: str
    split: str
    sha256: str = _Sha256
    patches: int
    complete: bool
    seen_in_training: bool
    cells: list[str] = []  # parts of the data that are scored apart
    refused: list[str] = []  # those of them that the model was trained on: it has no score there


class Environment(_Part):
    """What could change a number, and only that."""

    harness: str
    libraries: dict[str, str]
    provider: str
    machine: str


class Record(_Part):
    """One measurement at full precision: fractions and quantities, intervals that cover 95 %."""

    form: Literal[1] = 1
    protocol: ProtocolFacts
    data: DataFacts
    model: ModelFacts
    environment: Environment
    scores: dict[str, float]
    intervals: dict[str, tuple[float, float]]
    scenes: dict[str, dict[str, float]]
    # Sentences that tables show below the scores.
    warnings: list[str] = Field(default=[], exclude_if=lambda found: not found)


class TrainedOnAll(ValueError):
    """A model was trained on everything that a protocol tests cell by cell."""


def refused(model: "Model", protocol: Protocol) -> list[str]:
    """The cells of a protocol that a model is not scored on, since it was trained on them.

    Raises:
        TrainedOnAll: if no cell is left.
    """
    trained_on = model.trained_on or frozenset()
    seen = [cell for cell, sources in protocol.cells.items() if meet(trained_on, sources)]
    if seen and len(seen) == len(protocol.cells):
        raise TrainedOnAll(
            f"{model.name} was trained on {', '.join(sorted(trained_on))}, and"
            f" {protocol.name} tests {', '.join(seen)} of {protocol.dataset.name}: what training"
            " has seen gives no score; choose other data"
        )
    return seen


def record(
    model: "Model", protocol: Protocol, scores: Scores, fingerprint: str, kept_from: Sequence[str]
) -> Record:
    """The record of one evaluation: the same run makes the same record.

    Args:
        model: what was judged.
        protocol: by what.
        scores: what came of it.
        fingerprint: of the model's vectors, as `evaluate.fingerprint` has it.
        kept_from: cells that are not scored, as `refused` has them.
    """
    dataset = protocol.dataset
    tested = [sources for cell, sources in protocol.cells.items() if cell not in kept_from]
    return Record(
        protocol=ProtocolFacts(
            name=protocol.name,
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
            seen_in_training=meet(
                model.trained_on or frozenset(),
                frozenset().union(*tested) if tested else dataset.sources,
            ),
            cells=list(protocol.cells),
            refused=list(kept_from),
        ),
        model=ModelFacts(
            name=model.name,
            dim=model.dim,
            distance=model.distance.name,
            licence=model.licence,
            trained_on=None if model.trained_on is None else sorted(model.trained_on),
            weights=model.weights,
            code=model.code,
            fingerprint=fingerprint,
        ),
        environment=Environment(
            harness=version("descriptor-harness"),
            libraries={
                name: version(name)
                for name in sorted({"numpy", *model.libraries, *protocol.libraries})
            },
            provider=model.provider,
            machine=platform.machine(),
        ),
        scores=dict(scores.values),
        intervals=dict(scores.intervals),
        scenes={scene: dict(values) for scene, values in scores.scenes.items()},
        warnings=list(scores.warnings),
    )


def meet(trained_on: frozenset[str], sources: frozenset[str]) -> bool:
    """Whether training saw tested data: "hpatches" covers "hpatches/v_wall", and the reverse."""
    return any(
        a == b or a.startswith(f"{b}/") or b.startswith(f"{a}/")
        for a in trained_on
        for b in sources
    )


def folder_of(root: Path, *parts: str) -> Path:
    """A folder below the results, called after what a record says of itself.

    Raises:
        ValueError: if a part would lead elsewhere: names come from the files of data sets, too.
    """
    for part in parts:
        if part in (".", "..") or not re.fullmatch(r"[\w.+@-]+", part):
            raise ValueError(
                f"records can't be kept under {'/'.join(parts)!r}: {part!r} is no name of a folder;"
                " names of protocols, data sets and splits have letters, digits, and . _ + @ - only"
            )
    return root.joinpath(*parts)


def place(root: Path, one: Record) -> Path:
    """Where a record lives: <root>/<protocol>/<data>/<split>/<task>/<model>.json.

    Raises:
        ValueError: as `folder_of` does.
    """
    return _file(root, one.protocol.name, one.data.name, one.data.split, one.model.name)


def _file(root: Path, protocol: str, data: str, split: str, model: str) -> Path:
    family, *task = protocol.split("/")
    folder = folder_of(root, family, data, split, *task)
    name = re.sub(r"[^\w.+-]", "_", model)  # "mine:fast" is no file name everywhere
    return folder / f"{name}.json"


def must_be_free(root: Path, model: "Model", protocol: Protocol) -> None:
    """Refuse, before any work, an evaluation whose record would take the place of another's.

    Raises:
        ValueError: as `save` does.
    """
    data = protocol.dataset
    file = _file(root, protocol.name, data.name, data.split, model.name)
    _must_be_alike(file, model.name, data.sha256, model.weights)


def to_json(one: Record) -> str:
    """The bytes of a record: keys in order, full precision, "\\n" at the end."""
    return json.dumps(one.model_dump(), indent=1, sort_keys=True, allow_nan=False) + "\n"


def save(root: Path, one: Record) -> Path:
    """Write one record in place of an older one; the same record writes the same bytes.

    Raises:
        ValueError: if the file holds the record of another model, of other weights, or of other
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
            raise ValueError(
                f"{file} is a record of other {what} ({its}; this is {mine}): choose another"
                " --results, or remove it"
            )


def save_run(file: Path, facts: Mapping[str, object]) -> None:
    """Keep beside a record what can't change its numbers: time, host, duration."""
    atomic.write_text(file.with_suffix(".run"), json.dumps(facts, indent=1) + "\n")


def load(root: Path) -> list[Record]:
    """Every record below a folder, but for `published`, in the order of their paths.

    Raises:
        ValueError: if a file is no record; names the file and the field.
    """
    files = sorted(root.rglob("*.json"))
    return [read(file) for file in files if file.relative_to(root).parts[0] != PUBLISHED]


def read(file: Path) -> Record:
    """One record, its form checked."""
    try:
        return Record.model_validate_json(file.read_bytes())
    except ValidationError as error:
        where = "; ".join(
            f"{'.'.join(map(str, e['loc'])) or 'file'}: {e['msg']}" for e in error.errors()[:3]
        )
        raise ValueError(
            f"{file} is not a record of this version ({where}):"
            " evaluate again, or move the file away"
        ) from error
