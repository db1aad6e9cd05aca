"""The functions of `import harness`: evaluate models, read records, rank them, export to ONNX."""

import logging
import platform
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness import cache as caches
from harness import extras, loading, progress
from harness.errors import InputError, InputTypeError, SystemRefusedError
from harness.evaluation import BATCH
from harness.evaluation import evaluate as evaluated
from harness.files import atomic
from harness.records import leaderboard as boards
from harness.records import record as results
from harness.records.record import Record, TrainedOnAll
from harness.settings import Options
from harness.types import Dataset, Descriptor, Patches, Protocol, Vectors
from harness.vector_folder import Model

if TYPE_CHECKING:
    import pandas as pd

    from harness.onnx.export import Exported

Models = str | Path | Model | Sequence[str | Path | Model]

log = logging.getLogger(__name__)


class NotKeptError(SystemRefusedError):
    """Records were measured, but some could not be written; all of them are in `records`."""

    def __init__(self, message: str, records: Sequence[Record]) -> None:
        """Hold the records, so that no score is lost."""
        super().__init__(message)
        self.records = tuple(records)


def evaluate(
    models: Models,
    protocol: str | Protocol | Sequence[Protocol],
    /,
    *,
    data: str | Path | None = None,
    split: str | None = None,
    device: str = "auto",
    batch_size: int | None = None,
    cache: bool = True,
    progress: bool = False,
    results: str | Path | None = None,
    **options: Any,
) -> list[Record]:
    """Score models on a protocol; returns a record for each model and protocol.

    Args:
        models: one or several models, in any form that `load_model` takes; the name of a family
            stands for all its models.
        protocol: a name, a family of protocols, or protocols that were loaded before.
        data: folder of the data set, as for `load_protocol`.
        split: a split of the data set, as for `load_protocol`.
        device: for models that are loaded here, as for `load_model`.
        batch_size: patches described at a time; None: 512.
        cache: keep vectors in the cache of the harness, and reuse the vectors that it has.
        progress: show a progress bar on stderr or, if stderr is not a terminal, a line from time to
            time.
        results: folder in which each record is kept as soon as it is measured.
        options: further options of the protocol, for example ties="official".

    Raises:
        UnknownNameError: if a name is not known; gives the nearest known name.
        TrainedOnAll: if every model was trained on all data that the protocol tests.
        NotKeptError: if a record can't be written to `results`; the error holds all records.
        HarnessError: if a model, the data or an option can't be used; says why.
    """
    if results is not None:
        atomic.must_be_writable(
            Path(results), f"records can't be kept in {results}", "choose another --results"
        )
    loaded = loading.load_models(_listed(models), device=device)
    if not loaded:
        raise InputError("no model to evaluate: give one or several")
    protocols = _protocols(protocol, loading.of_data(options, data, split), silent=not progress)
    title = protocol if isinstance(protocol, str) else ", ".join(p.name for p in protocols)
    keeper = _Keeper(None if results is None else Path(results))
    for model, task in product(loaded, protocols):
        keeper.must_be_free(model, task)
    kept = caches.kept("vectors") if cache else None
    for model in loaded:
        try:
            _evaluate(model, protocols, title, keeper, batch_size or BATCH, kept, progress)
        except TrainedOnAll as error:
            if model is loaded[-1] and not keeper.records:
                raise
            log.warning("passed over: %s", error)
    keeper.must_have_kept_all()
    return keeper.records


def read_records(folder: str | Path) -> list[Record]:
    """All records below a folder of results, in the order of their paths.

    Raises:
        InputError: if a JSON file there is not a valid record; names the file and the field.
    """
    return results.load(Path(folder))


def leaderboard(records: Iterable[Record]) -> "pd.DataFrame":
    """A table with a row for each model, for one or several protocols and data sets.

    The first columns are `protocol` (a family, for example "hpatches"), `data`, `split`, `model`,
    `options` (of the protocol, for example "ties=official"; empty for the default), `dim`,
    `distance`, `trained_on_tested_data` ("yes", "no" or "unknown"), `weights` (sha256, or None),
    `revision` and `rank` ("2", "1-3" for models that can't be told apart, or None; see
    `harness.records.ranks`). Then there is a column for each score and, for each score with a 95 %
    interval, "SCORE low" and "SCORE high". Scores are fractions, or quantities that the protocol
    counts, at full precision and never in percent; NaN means not measured. Rows have the order of
    the committed tables: by protocol, data and split, the best model first. Records of incomplete
    data are left out.

    Raises:
        InputError: if records of one table can't be compared; names them, and says why.
    """
    import pandas as pd

    rows: list[dict[str, object]] = []
    columns: dict[str, None] = {}  # an ordered set
    for board in boards.boards(records):
        bounds = {name for row in board.rows for record in row for name in record.intervals}
        for name in board.columns:
            ends = [f"{name} low", f"{name} high"] if name in bounds else []
            columns |= dict.fromkeys([name, *ends])
        for row, rank in zip(board.rows, board.ranks, strict=True):
            model = row[0].model
            facts = (model.name, model.dim, model.distance, _SEEN.get(boards.mark(row), "no"))
            weights = (model.weights, model.revision, rank or None)
            options = row[0].protocol.options_text
            places = (
                board.family,
                board.data,
                board.split,
                facts[0],
                options,
                *facts[1:],
                *weights,
            )
            cells: dict[str, object] = dict(zip(_FACTS, places, strict=True))
            for record in row:
                cells |= record.scores
                for name, (low, high) in record.intervals.items():
                    cells |= {f"{name} low": low, f"{name} high": high}
            rows.append(cells)
    return pd.DataFrame(rows, columns=[*_FACTS, *columns])


_FACTS = ("protocol", "data", "split", *boards.FACTS)
_SEEN = {boards.SEEN: "yes", boards.UNKNOWN: "unknown"}


def export_onnx(
    model: str | Path | Model,
    file: str | Path,
    *,
    precision: str = "fp32",
    calibration: Dataset | Patches | None = None,
) -> "Exported":
    """Write a model as one ONNX file; the file appears only if it gives the model's vectors.

    The graph takes uint8 patches of any size and gives vectors; it includes resizing and
    normalisation. Returns the file, its size, and the largest distance between its vectors and
    the network's.

    Args:
        model: a model in any form that `load_model` takes; it must have a network
            (`Descriptor.network`).
        file: path of the new file.
        precision: of convolutions and linear layers: "fp32", "fp16" or "int8".
        calibration: only for int8: patches that its scales are computed from; they should be like
            those to be described. From a data set, patches of all its parts are used.

    Raises:
        ImportFailedError: if PyTorch or ONNX is not installed; says how to install it.
        InputError: if there is no network, if it can't be exported, or if the graph does not give
            the network's vectors; says for which patches.
    """
    loaded = loading.load_model(model, device="cpu")
    if not isinstance(loaded, Descriptor):
        raise InputTypeError(f"{loaded.name} is a folder of vectors: it has no network to export")
    with extras.needed("the export to ONNX"):
        from harness.onnx import export
        from harness.onnx.samples import CALIBRATING, some_patches
    if isinstance(calibration, Dataset):
        calibration = some_patches(calibration, CALIBRATING)
    return export.export(loaded, Path(file), precision=precision, calibration=calibration)


@dataclass
class _Keeper:
    """The records of one call of `evaluate`, and the folder where they are kept."""

    folder: Path | None
    records: list[Record] = field(default_factory=list)
    lost: dict[Path, OSError] = field(default_factory=dict)

    def must_be_free(self, model: Model, protocol: Protocol) -> None:
        """Refuse, before any work, an evaluation whose record would overwrite another."""
        if self.folder:
            results.must_be_free(self.folder, model, protocol)

    def keep(self, record: Record, facts: dict[str, object]) -> None:
        """Add a record and write it with the facts of its run; failures are reported at the end."""
        self.records.append(record)
        if self.folder is None:
            return
        try:
            results.save_run(results.save(self.folder, record), facts)
        except OSError as error:
            self.lost[results.place(self.folder, record)] = error

    def must_have_kept_all(self) -> None:
        """Raise an error that holds all records if some could not be written."""
        if self.lost:
            file, why = next(iter(self.lost.items()))
            raise NotKeptError(
                f"{len(self.lost)} of {len(self.records)} records can't be kept, the first of them"
                f" {file} ({why.strerror or why}): make room or choose another --results, and"
                " evaluate again; vectors that are in the cache are not described again",
                self.records,
            ) from why


@dataclass
class _Stopwatch:
    """Measures the speed of a model. Its first call loads and compiles, so it does not count."""

    model: Descriptor
    calls: int = 0
    patches: int = 0
    seconds: float = 0.0

    def describe(self, patches: Patches) -> Vectors:
        """The model's vectors of patches; the call is timed."""
        begun = time.perf_counter()
        vectors = self.model.describe(patches)
        if self.calls:
            self.patches += len(patches)
            self.seconds += time.perf_counter() - begun
        self.calls += 1
        return vectors

    @property
    def speed(self) -> dict[str, object]:
        """Patches per second; empty if none were described, for example with a full cache."""
        return {"patches_per_second": round(self.patches / self.seconds)} if self.patches else {}


def _evaluate(
    model: Model,
    protocols: Sequence[Protocol],
    title: str,
    keeper: _Keeper,
    batch_size: int,
    cache: caches.Cache | None,
    shown: bool,
) -> None:
    """Score one model on protocols, and keep each record."""
    begun = time.perf_counter()
    watch = _Stopwatch(model) if isinstance(model, Descriptor) else None
    timed = replace(watch.model, describe=watch.describe) if watch else model
    with progress.describing(
        model.name, len(protocols[0].dataset), title, silent=not shown
    ) as advance:
        for record in evaluated(
            timed,
            protocols,
            cache=cache,
            batch_size=batch_size,
            progress=advance,
        ):
            facts = {
                "model": model.name,
                "finished": datetime.now(UTC).isoformat(timespec="seconds"),
                "host": platform.node(),
                "provider": model.provider,
                "seconds_since_start": round(time.perf_counter() - begun, 2),
                "command": " ".join(sys.argv[1:]),
            }
            keeper.keep(record, facts | (watch.speed if watch else {}))


def _listed(models: Models) -> Sequence[str | Path | Model]:
    return models if isinstance(models, Sequence) and not isinstance(models, str) else [models]


def _protocols(
    protocol: str | Protocol | Sequence[Protocol], options: Options, *, silent: bool
) -> Sequence[Protocol]:
    if isinstance(protocol, str):
        return loading.load_protocols(protocol, options, silent=silent)
    if options:
        raise InputError(
            f"{', '.join(options)}: options go to load_protocol; these protocols are loaded already"
        )
    protocols = [protocol] if isinstance(protocol, Protocol) else protocol
    if not protocols:
        raise InputError("no protocol to evaluate on: give one or several")
    return protocols
