"""Runs evaluations, in this process or on a cluster, and keeps each record as it is measured."""

import logging
import platform
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from harness import progress, unfinished
from harness.cache import Cache
from harness.cluster import fan_out
from harness.cluster.units import Work
from harness.errors import SystemRefusedError
from harness.evaluation import evaluate
from harness.records import record as results
from harness.records.record import Record, TrainedOnAll
from harness.types import Descriptor, Patches, Protocol, Vectors
from harness.vector_folder import Model

if TYPE_CHECKING:
    from distributed import Client

log = logging.getLogger(__name__)


class NotKeptError(SystemRefusedError):
    """Records were measured, but some could not be written; all of them are in `records`."""

    def __init__(self, message: str, records: Sequence[Record]) -> None:
        """Hold the records, so that no score is lost."""
        super().__init__(message)
        self.records = tuple(records)


@dataclass
class Keeper:
    """The records of one call of `evaluate`, and the folder where they are kept."""

    folder: Path | None
    records: list[Record] = field(default_factory=list)
    lost: dict[Path, OSError] = field(default_factory=dict)

    def must_be_free(self, model: Model, protocol: Protocol) -> None:
        """Refuse, before any work, an evaluation whose record would overwrite another."""
        if self.folder:
            results.must_be_free(self.folder, model, protocol)

    def keep(self, record: Record, begun: float, host: str, **facts: object) -> None:
        """Add a record and write it with facts of its run; failures are reported at the end.

        Args:
            record: the record.
            begun: `time.perf_counter` at the beginning.
            host: name of the machine that scored.
            facts: further facts.
        """
        self.records.append(record)
        if self.folder is None:
            return
        facts |= {
            "model": record.model.name,
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
            "host": host,
            "provider": record.environment.provider,
            "seconds_since_start": round(time.perf_counter() - begun, 2),
            "command": " ".join(sys.argv[1:]),
        }
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


def here(
    models: Sequence[Model],
    protocols: Sequence[Protocol],
    keeper: Keeper,
    *,
    title: str,
    batch_size: int,
    cache: Cache | None,
    shown: bool,
) -> None:
    """Score models on protocols in this process, one after the other.

    Args:
        models: models; one that was trained on all data that a protocol tests is passed over.
        protocols: protocols.
        keeper: gets each record as it is measured.
        title: of the protocols, in messages.
        batch_size: patches described at a time.
        cache: for vectors; None: no cache.
        shown: show progress on stderr.

    Raises:
        TrainedOnAll: if all models are passed over.
        HarnessError: as `evaluation.evaluate` does.
    """
    for model in models:
        with _passing_over(keeper, is_last=model is models[-1]):
            begun = time.perf_counter()
            watch = _Stopwatch(model) if isinstance(model, Descriptor) else None
            timed = replace(watch.model, describe=watch.describe) if watch else model
            size = len(protocols[0].dataset)
            with (
                unfinished.kept_until_end() as pieces,
                progress.describing(model.name, size, title, silent=not shown) as advance,
            ):
                for record in evaluate(
                    timed, protocols, cache=cache, batch_size=batch_size, progress=advance
                ):
                    keeper.keep(record, begun, platform.node(), **(watch.speed if watch else {}))
                if keeper.lost:
                    pieces.clear()  # the next try goes on from them


def on_cluster(
    client: "Client",
    work: Work,
    models: Sequence[str],
    protocols: Sequence[Protocol],
    keeper: Keeper,
    *,
    shown: bool,
) -> None:
    """Score models on protocols by the workers of a cluster; records are those of `here`.

    Args:
        client: of the cluster.
        work: the evaluation that workers are asked for.
        models: names or paths; one that was trained on all data is passed over, as by `here`.
        protocols: those of `work`.
        keeper: gets each record as it arrives.
        shown: show progress on stderr.

    Raises:
        TrainedOnAll: if all models are passed over.
        HarnessError: as `fan_out.outcomes` does.
    """
    begun = time.perf_counter()
    different = {id(one.dataset.blocks): len(one.dataset) for one in protocols}
    total = len(models) * sum(different.values())
    units = len(models) * fan_out.scoring_units(protocols)
    with (
        progress.shown("patches described by workers", total, silent=not shown) as advance,
        progress.step("units scored by workers", units) as scored,
    ):
        for outcome in fan_out.outcomes(client, work, models, protocols, advance, scored):
            with _passing_over(keeper, is_last=outcome.model == models[-1]):
                record, host = outcome.result()
                keeper.keep(record, begun, host)
                if not keeper.lost:
                    unfinished.remove(outcome.pieces)


@contextmanager
def _passing_over(keeper: Keeper, *, is_last: bool) -> Iterator[None]:
    """Log that a model was trained on all data; an error if it is the last, and no other scored."""
    try:
        yield
    except TrainedOnAll as error:
        if is_last and not keeper.records:
            raise
        log.warning("passed over: %s", error)
