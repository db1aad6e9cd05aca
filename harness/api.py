"""The functions of `import harness`: evaluate models, read records, rank them, export to ONNX."""

from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness import cache as caches
from harness import extras, loading, running
from harness.cluster import fan_out
from harness.errors import InputError, InputTypeError
from harness.evaluation import BATCH
from harness.files import atomic
from harness.records import leaderboard as boards
from harness.records import record as results
from harness.records.record import Record
from harness.running import Keeper
from harness.settings import Options
from harness.types import Dataset, Descriptor, Patches, Protocol
from harness.vector_folder import Model

if TYPE_CHECKING:
    import pandas as pd

    from harness.onnx.export import Exported

Models = str | Path | Model | Sequence[str | Path | Model]


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
    workers: int | None = None,
    scheduler: str | None = None,
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
        workers: number of processes on this machine that share the work; None: this process alone.
            The records are the same.
        scheduler: address of a Dask scheduler whose workers share the work, for example
            "tcp://10.0.0.1:8786". Models and the protocol must be names or paths that each worker
            can open, and all must have one cache.
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
    loaded = loading.named_models(_listed(models), device=device)
    if not loaded:
        raise InputError("no model to evaluate: give one or several")
    given = loading.of_data(options, data, split)
    protocols = _protocols(protocol, given, silent=not progress)
    title = protocol if isinstance(protocol, str) else ", ".join(p.name for p in protocols)
    keeper = Keeper(None if results is None else Path(results))
    for (_, model), task in product(loaded, protocols):
        keeper.must_be_free(model, task)
    batch = batch_size or BATCH
    if workers is None and scheduler is None:
        running.here(
            [model for _, model in loaded],
            protocols,
            keeper,
            title=title,
            batch_size=batch,
            cache=caches.kept("vectors") if cache else None,
            shown=progress,
        )
    else:
        if not isinstance(protocol, str) or not cache:
            raise InputError("workers need the name of a protocol, and the cache")
        if not all(isinstance(one, str | Path) for one in _listed(models)):
            raise InputError("workers need names or paths of models, which they load themselves")
        names = [name for name, _ in loaded]
        with (
            fan_out.connected(workers, scheduler, device) as client,
            fan_out.shared_work(protocol, given, device, batch) as work,
        ):
            running.on_cluster(client, work, names, protocols, keeper, shown=progress)
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
