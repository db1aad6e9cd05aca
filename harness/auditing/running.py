"""Runs scenes of a record again, and compares their numbers with the record's.

The record's hash chooses the scenes, so whoever made the record did not. The numbers of the other
scenes are not measured, but totals and intervals must follow from the numbers of all scenes.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from harness import data_names, evaluation, progress
from harness.auditing.opening import open_model, open_protocol
from harness.auditing.verdict import EQUAL, TOTALS, Audit, Checked, Number, compared, ends
from harness.errors import InputError
from harness.records import record as results
from harness.records.record import Record
from harness.types import Parts, Protocol, Scores
from harness.vector_folder import Model

SCENES = 3  # run again, unless the user asks for another number

T = TypeVar("T")
Pair = tuple[dict[str, T], ...]


def audit(
    record: Record | str | Path,
    /,
    *,
    scenes: int = SCENES,
    salt: str = "",
    model: str | Path | Model | None = None,
    data: str | Path | None = None,
    split: str | None = None,
    device: str = "auto",
    batch_size: int | None = None,
    progress: bool = False,
    **options: Any,
) -> Audit:
    """Run scenes of a record again; says which of its numbers hold.

    Vectors are computed anew; the cache is not used. A protocol that can't score a scene alone is
    run as a whole.

    Args:
        record: a record, or its file.
        scenes: number of scenes to run again; the hash of the record chooses them.
        salt: a text that takes part in the choice. Somebody who tries many false numbers may find a
            record whose hash alone chooses other scenes; he can't know your salt.
        model: the record's model, in any form that `load_model` takes; None: by its name.
        data: the record's data; None: by their name.
        split: of the data; None: the record's.
        device: for a model that is loaded here, as for `load_model`.
        batch_size: patches described at a time; None: 512.
        progress: show a progress bar on stderr.
        options: options of the protocol that the record does not tell.

    Raises:
        InputError: if the record can't be read; if it is of another version of the protocol; if
            weights, model, data or options are not the record's: says both.
        HarnessError: if the model or the data can't be used.
    """
    kept = record if isinstance(record, Record) else results.read(Path(record))
    if scenes < 1:
        raise InputError(f"scenes is {scenes}: run 1 or more again")
    loaded = open_model(kept, model, device)  # first, since data may take long to open
    protocol = open_protocol(kept, data, split, options, silent=not progress)
    names = data_names.known()
    probe = evaluation.fingerprint(loaded)
    refused = results.refused(loaded, protocol, names)
    # Of the fresh record only the facts are used.
    fresh = results.record(
        loaded, protocol, Scores({protocol.headline: 0.0}), probe, refused, names
    )
    runner = _Runner(loaded, protocol, kept, batch_size or evaluation.BATCH, silent=not progress)
    facts = tuple(_facts(kept, fresh))
    machine = tuple(_machine(kept, fresh))
    parts = protocol.parts
    here = [] if parts is None else [name for name in parts.names if name not in refused]
    if parts is None or (scenes >= len(here) and not parts.sums_intervals):
        checked, totals = runner.whole()
        return Audit(kept, True, checked, (), totals, facts, machine)
    chosen = choose(kept, here, scenes, salt)
    summed, lacks = _summed(kept, parts, here)
    checked = runner.alone(parts, chosen, summed)
    totals, unchecked = _totals(kept, parts, here, summed)
    facts += (*lacks, *_strange(kept, here))
    not_run = tuple(name for name in here if name not in chosen)
    return Audit(kept, False, checked, not_run, totals, facts, machine, unchecked)


def choose(record: Record, names: Sequence[str], n: int, salt: str = "") -> list[str]:
    """n of the names of scenes, chosen by the sha256 of the record; in the order of the names."""
    digest = hashlib.sha256((salt + results.to_json(record)).encode()).hexdigest()
    drawn = sorted(names, key=lambda name: hashlib.sha256(f"{digest} {name}".encode()).digest())
    return [name for name in names if name in drawn[:n]]


FACTS = {  # that tables show or depend on
    "protocol": ("headline", "quantities"),
    "data": ("patches", "complete", "cells", "refused", "seen_in_training"),
    "model": ("trained_on", "stored"),
}


def _facts(kept: Record, fresh: Record) -> Iterator[str]:
    """Yields facts of the record that are not those of its model, data and protocol."""
    for part, names in FACTS.items():
        for name in names:
            told, true = (getattr(getattr(r, part), name) for r in (kept, fresh))
            if told != true:
                yield f"{part}.{name} is {told!r:.80}; {true!r:.80} is right"


def _strange(kept: Record, here: Sequence[str]) -> Iterator[str]:
    """Yields the scenes of the record that its data do not have, or the model was trained on."""
    for scene in sorted(kept.scenes.keys() - {*here}):
        yield f"it has numbers of a scene {scene}, which is not tested"


def _machine(kept: Record, fresh: Record) -> Iterator[str]:
    """Yields the facts by which this machine differs from the record's."""
    before, now = kept.environment, fresh.environment
    if before.fingerprint != now.fingerprint:
        yield "the model's vectors of made-up patches differ in some bit"
    for name in sorted({*before.libraries, *now.libraries}):
        versions = [found.libraries.get(name, "none") for found in (before, now)]
        if versions[0] != versions[1]:
            yield f"{name} {versions[0]}, here {versions[1]}"
    for fact in ("provider", "machine"):
        told, true = getattr(before, fact), getattr(now, fact)
        if told != true:
            yield f"{fact} {told}, here {true}"


@dataclass(frozen=True)
class _Runner:
    """Measures a record's numbers again."""

    model: Model
    protocol: Protocol
    kept: Record
    batch_size: int
    silent: bool = field(kw_only=True)

    def whole(self) -> tuple[tuple[Checked, ...], Checked]:
        """All scenes, then scores and intervals."""
        with self._shown(len(self.protocol.dataset)) as advance:
            (fresh,) = evaluation.evaluate(
                self.model, [self.protocol], batch_size=self.batch_size, progress=advance
            )
        scenes = sorted({*self.kept.scenes, *fresh.scenes})
        checked = [
            Checked(
                scene,
                compared(
                    self.kept.scenes.get(scene, {}),
                    fresh.scenes.get(scene, {}),
                    self.protocol.unsteady,
                ),
            )
            for scene in scenes
        ]
        before, now = (r.scores | ends(r.intervals) for r in (self.kept, fresh))
        totals = compared(before, now, self.protocol.unsteady)
        return tuple(checked), Checked(TOTALS, totals)

    def alone(self, parts: Parts, chosen: Sequence[str], summed: Scores) -> tuple[Checked, ...]:
        """Some parts; numbers that follow from others (`summed`) are checked with the totals."""
        dataset = self.protocol.dataset
        rows = np.unique(np.concatenate([parts.rows(name) for name in chosen]))
        with self._shown(len(dataset)) as advance:
            described = evaluation.describe(
                self.model, dataset, batch_size=self.batch_size, progress=advance, rows=rows
            )
        found = parts.score(described, chosen)
        return tuple(Checked(name, self._of(name, found, summed)) for name in chosen)

    def _of(self, name: str, found: Scores, summed: Scores) -> tuple[Number, ...]:
        """The numbers of one part in the record, and those that were found."""

        def own(
            of_record: Mapping[str, T], now: Mapping[str, T], follow: Mapping[str, T]
        ) -> Pair[T]:
            mine = [key for key in {**of_record, **now} if key.partition("/")[0] == name]
            mine = [key for key in mine if key in now or key not in follow]
            return tuple(
                {key: scored[key] for key in mine if key in scored} for scored in (of_record, now)
            )

        scores = own(self.kept.scores, found.values, summed.values)
        intervals = own(self.kept.intervals, found.intervals, summed.intervals)
        scenes = (scored.scenes.get(name, {}) for scored in (self.kept, found))
        before, now = (
            {**scene, **values, **ends(bounds)}
            for scene, values, bounds in zip(scenes, scores, intervals, strict=True)
        )
        return compared(before, now, self.protocol.unsteady)

    def _shown(self, patches: int) -> AbstractContextManager[Callable[[int], None]]:
        model, name = self.model.name, self.protocol.name
        return progress.describing(model, patches, name, silent=self.silent)


def _summed(kept: Record, parts: Parts, here: Sequence[str]) -> tuple[Scores, list[str]]:
    """The scores and intervals that follow from a record's scenes; and facts that are wrong.

    Args:
        kept: the record.
        parts: of its protocol.
        here: the parts that the model was not trained on; without the others nothing follows.
    """
    if len(here) < len(parts.names):
        return Scores({}), []
    try:
        return parts.sum_up(Scores(kept.scores, kept.scenes, kept.intervals)), []
    except LookupError as error:
        return Scores({}), [f"it lacks {error.args[0]!r}, from which its totals follow"]


def _totals(
    kept: Record, parts: Parts, here: Sequence[str], summed: Scores
) -> tuple[Checked, tuple[str, ...]]:
    """The numbers that follow from the scenes, and names of intervals that can't be checked."""

    def follows(name: str, known: Mapping[str, object]) -> bool:
        return name in known or name.partition("/")[0] not in here

    scores = {name: x for name, x in kept.scores.items() if follows(name, summed.values)}
    bounds = {name: x for name, x in kept.intervals.items() if follows(name, summed.intervals)}
    unchecked = () if parts.sums_intervals else tuple(bounds)
    bounds = {name: x for name, x in bounds.items() if name not in unchecked}
    before, now = scores | ends(bounds), {**summed.values, **ends(summed.intervals)}
    for scene, derived in summed.scenes.items():
        of_scene = kept.scenes[scene]
        before |= {f"{scene}: {name}": of_scene[name] for name in derived if name in of_scene}
        now |= {f"{scene}: {name}": value for name, value in derived.items()}
    return Checked(TOTALS, compared(before, now), within=EQUAL), unchecked
