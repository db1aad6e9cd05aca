"""What `import harness` offers beside the types: evaluate, read records, rank them, export."""

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
    """Score models on a protocol: a record for each model and protocol.

    Args:
        models: one or several of what `load_model` takes; a family stands for its models.
        protocol: a name, a family of protocols, or protocols that were loaded before.
        data: folder of the data set, as for `load_protocol`.
        split: a split of the data set, as for `load_protocol`.
        device: for models that are loaded here, as for `load_model`.
        batch_size: patches described at a time; 512 where None.
        cache: keep vectors in the cache of the harness, and take from it those that it has.
        progress: show a progress bar on stderr; where that is no terminal, a line now and then.
        results: folder in which each record is kept as soon as it is measured.
        options: further options of the protocol: ties="official".

    Raises:
        UnknownNameError: if a name is not known; says the nearest.
        TrainedOnAll: if the models were trained on all that the protocol tests.
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
    called = protocol if isinstance(protocol, str) else ", ".join(one.name for one in protocols)
    keeper = _Keeper(None if results is None else Path(results))
    for model, one in product(loaded, protocols):
        keeper.must_be_free(model, one)
    kept = caches.kept("vectors") if cache else None
    for model in loaded:
        try:
            _evaluate(model, protocols, called, keeper, batch_size or BATCH, kept, progress)
        except TrainedOnAll as error:
            if model is loaded[-1] and not keeper.records:
                raise
            log.warning("passed over: %s", error)
    keeper.must_have_kept_all()
    return keeper.records


def read_records(folder: str | Path) -> list[Record]:
    """Every record below a folder of results, in the order of their paths.

    Raises:
        InputError: if a JSON file there is no record; names the file and the field.
    """
    return results.load(Path(folder))


def leaderboard(records: Iterable[Record]) -> "pd.DataFrame":
    """A table with a row for each model, of one or several protocols and data sets.

    Columns: `protocol` (a family, as "hpatches"), `data`, `split`, `model`, `options` (of the
    protocol, as "ties=official"; empty for the default), `dim`, `distance`,
    `trained_on_tested_data` ("yes", "no" or "unknown"), `weights` (sha256, or None), `revision`,
    `rank` ("2", "1-3" for models that can't be told apart, or None; see `harness.records.ranks`);
    then one for each score, and for each that has a 95 % interval also "SCORE low" and
    "SCORE high". Scores are fractions, or quantities that the protocol counts, at full precision,
    never percent; NaN was not measured. Rows stand as in the committed tables: by protocol, data
    and split, the best model first. Records of incomplete data are left out.

    Raises:
        InputError: if records of one table can't be compared; says which, and why.
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
    """Write a model as one ONNX file, which appears only if it gives the model's vectors.

    The graph takes uint8 patches of any size and gives vectors; resizing and normalisation are in
    it. Returns the file, its size, and its largest distance from the network's vectors.

    Args:
        model: what `load_model` takes; it must have a network (`Descriptor.network`).
        file: where to write.
        precision: of convolutions and linear layers: "fp32", "fp16" or "int8".
        calibration: for int8, whose scales are taken from them: patches like those to be described,
            or a data set, of which patches from all over are taken.

    Raises:
        ImportFailedError: if PyTorch or ONNX is not installed; says how to install it.
        InputError: if there is no network, if it can't be exported, or if the graph does not give
            its vectors; says where.
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
    """The records of one call, and the folder where each is kept."""

    folder: Path | None
    records: list[Record] = field(default_factory=list)
    lost: dict[Path, OSError] = field(default_factory=dict)

    def must_be_free(self, model: Model, protocol: Protocol) -> None:
        """Refuse, before any work, an evaluation whose record would take another's place."""
        if self.folder:
            results.must_be_free(self.folder, model, protocol)

    def keep(self, record: Record, facts: dict[str, object]) -> None:
        """Take a record, and write it with the facts of its run; a failure is told at the end."""
        self.records.append(record)
        if self.folder is None:
            return
        try:
            results.save_run(results.save(self.folder, record), facts)
        except OSError as error:
            self.lost[results.place(self.folder, record)] = error

    def must_have_kept_all(self) -> None:
        """Raise an error that holds all records where some could not be written."""
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
    """Speed of a model. Its first call, which loads and compiles, does not count."""

    model: Descriptor
    calls: int = 0
    patches: int = 0
    seconds: float = 0.0

    def describe(self, patches: Patches) -> Vectors:
        """Describe as the model does."""
        begun = time.perf_counter()
        vectors = self.model.describe(patches)
        if self.calls:
            self.patches += len(patches)
            self.seconds += time.perf_counter() - begun
        self.calls += 1
        return vectors

    @property
    def speed(self) -> dict[str, object]:
        """Patches a second, if any were described: vectors from the cache say nothing."""
        return {"patches_per_second": round(self.patches / self.seconds)} if self.patches else {}


def _evaluate(
    model: Model,
    protocols: Sequence[Protocol],
    called: str,
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
        model.name, len(protocols[0].dataset), called, silent=not shown
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
        raise InputError("no protocol to evaluate by: give one or several")
    return protocols
