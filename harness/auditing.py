"""`harness audit`: runs scenes of a record again, and says whether the record's numbers hold.

The record's hash chooses the scenes, so whoever made the record did not. The numbers of the other
scenes are not measured, but totals and intervals must follow from the numbers of all scenes.
"""

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from harness import data_names, evaluation, expression, loading, progress, registry, settings
from harness.data import datasets
from harness.errors import InputError, UnknownNameError
from harness.records import record as results
from harness.records.record import Record
from harness.settings import Options, Typed
from harness.types import Parts, Protocol, Scores
from harness.vector_folder import Model

EQUAL = 1e-8  # differences up to this are rounding on one machine
# 20 times as much as any score of 212 records moved when another machine measured them again
# (5e-7), and a tenth of the last digit that tables show.
OTHER_MACHINES = 1e-5
SCENES = 3  # run again, unless the user asks for another number
SAMPLE = "-sample"  # end of the names of the sets that protocols make themselves
TOTALS = "totals"
PLAIN = r"[\w.+-]+(\|[\w-]+)*"  # names of models without a path, as "sift|root"

T = TypeVar("T")
Pair = tuple[dict[str, T], ...]


class Verdict(IntEnum):
    """How the numbers of a record compare with those that were found; the worst is the highest."""

    EQUAL = 0  # to EQUAL
    CLOSE = 1  # to OTHER_MACHINES
    WRONG = 2


@dataclass(frozen=True)
class Number:
    """One number of a record, and the number that was found."""

    name: str
    kept: float | None  # None: the record lacks it
    found: float | None  # None: there is no such number

    @property
    def difference(self) -> float:
        """The difference; of a quantity above 1, as a share of the record's number."""
        if self.kept is None or self.found is None:
            return float("inf")
        return abs(self.kept - self.found) / max(1.0, abs(self.kept))

    def __str__(self) -> str:
        """A sentence about the two numbers."""
        if self.found is None:
            return f"{self.name} is {self.kept!r}, but there is no such number"
        if self.kept is None:
            return f"{self.name} is missing; it is {self.found!r}"
        return f"{self.name} is {self.kept!r}; {self.found!r} was found"


@dataclass(frozen=True)
class Checked:
    """The numbers of one scene, or those that follow from all scenes."""

    name: str
    numbers: tuple[Number, ...]
    within: float = OTHER_MACHINES  # largest difference that is not wrong

    @property
    def difference(self) -> float:
        """The largest difference."""
        return max((number.difference for number in self.numbers), default=0.0)

    @property
    def wrong(self) -> list[Number]:
        """The numbers that do not hold, the most different first."""
        found = [number for number in self.numbers if number.difference > self.within]
        return sorted(found, key=lambda number: -number.difference)

    @property
    def verdict(self) -> Verdict:
        """The verdict on these numbers."""
        if self.wrong:
            return Verdict.WRONG
        return Verdict.EQUAL if self.difference <= EQUAL else Verdict.CLOSE


@dataclass(frozen=True)
class Audit:
    """The result of running scenes of a record again."""

    record: Record
    whole: bool  # whether the protocol was run as a whole, since no scene can be run alone
    scenes: tuple[Checked, ...]  # those that were run again
    not_run: tuple[str, ...]  # the other scenes
    totals: Checked  # scores and intervals that follow from the scenes
    facts: tuple[str, ...]  # sentences about facts of the record that are wrong
    machine: tuple[str, ...]  # what differs between this machine and the record's
    unchecked: tuple[str, ...] = ()  # numbers that could not be checked without the other scenes

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of all."""
        if self.facts:
            return Verdict.WRONG
        return max(checked.verdict for checked in (*self.scenes, self.totals))


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
    protocol = _protocol(kept, data, split, options, silent=not progress)
    loaded = _model(kept, model, device)
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
    totals, unchecked = _totals(kept, parts, summed)
    facts += (*lacks, *_strange(kept, parts))
    not_run = tuple(name for name in here if name not in chosen)
    return Audit(kept, False, checked, not_run, totals, facts, machine, unchecked)


def choose(record: Record, names: Sequence[str], n: int, salt: str = "") -> list[str]:
    """n of the names of scenes, chosen by the sha256 of the record; in the order of the names."""
    digest = hashlib.sha256((salt + results.to_json(record)).encode()).hexdigest()
    drawn = sorted(names, key=lambda name: hashlib.sha256(f"{digest} {name}".encode()).digest())
    return [name for name in names if name in drawn[:n]]


def _protocol(
    kept: Record, data: str | Path | None, split: str | None, options: Options, *, silent: bool
) -> Protocol:
    """The protocol of a record, on the record's data, if both are here."""
    name = kept.protocol.name
    if name not in registry.names("protocols"):
        raise UnknownNameError(registry.unknown("protocols", name, registry.names("protocols")))
    known = settings.named(registry.load("protocols", name))
    given: Options = {key: Typed(value) for key, value in kept.protocol.options.items()}
    place = _data(kept, data)
    if place is not None:
        given["data"] = place
    tested, _, remarks = kept.data.split.partition("@")
    if "split" in known:
        given["split"] = tested if split is None else split
    elif split is not None:
        raise UnknownNameError(f"{name} has no option split")
    if not kept.data.complete and "allow_partial" in known and "partial" in remarks.split("+"):
        given["allow_partial"] = True
    protocol = loading.open_protocol(name, given | options, silent=silent)
    if protocol.version != kept.protocol.version:
        raise InputError(
            f"the record is of version {kept.protocol.version} of {name}, and this harness has"
            f" version {protocol.version}: their numbers can't be compared; evaluate the model"
            f" again, or audit by harness {kept.environment.harness}"
        )
    if dict(protocol.options) != kept.protocol.options:
        told = [
            results.options_text(o) or "none" for o in (kept.protocol.options, protocol.options)
        ]
        raise InputError(
            f"the record has the options {told[0]}, these are {told[1]}: give the record's"
        )
    dataset = protocol.dataset
    if dataset.sha256 != kept.data.sha256:
        raise InputError(
            f"the record is of other data: of {kept.data.name}, split {kept.data.split}, sha256"
            f" {kept.data.sha256[:12]}; {place or 'the sample'} is {dataset.name}, split"
            f" {dataset.split}, sha256 {dataset.sha256[:12]}. Give the record's data by --data,"
            " and further options of the protocol by --set"
        )
    return protocol


def _data(kept: Record, data: str | Path | None) -> Path | None:
    """The folder of a record's data; None for a sample, which its protocol makes."""
    if data is not None:
        return Path(data)
    if kept.data.name.endswith(SAMPLE):
        return None
    if os.environ.get("HARNESS_DATA"):
        return Path(os.environ["HARNESS_DATA"])
    try:
        found = datasets.path(kept.data.name)
    except UnknownNameError:
        found = None
    if found is None:
        raise InputError(
            f"the record is of {kept.data.name}, split {kept.data.split}: give the folder of these"
            " data by --data"
        )
    return found


def _model(kept: Record, given: str | Path | Model | None, device: str) -> Model:
    """The model of a record, if the given or installed one is the same.

    A stranger's record loads no file: unless the user gives a model, it must be an installed name,
    and wrappers without arguments.
    """
    if given is None:
        name = kept.model.name
        base, *_ = name.split(expression.BAR)
        if base not in registry.names("descriptors") or not re.fullmatch(PLAIN, name):
            raise UnknownNameError(
                f"the record is of a model {name!r}, which is no installed name: give the model by"
                " --model"
            )
        given = name
    model = loading.load_model(given, device=device)
    wanted = kept.model.identity
    here: dict[str, object] = {
        "weights": model.weights,
        "revision": model.revision,
        "dim": model.dim,
        "distance": model.distance.name,
    }
    if model.weights is None:  # nothing but the name tells it from other models
        here["name"] = model.name
    for fact, value in here.items():
        if value != wanted[fact]:
            told = "sha256 of weights" if fact == "weights" else fact
            raise InputError(
                f"the record is of another model: its {told} is {_short(wanted[fact])}, but that of"
                f" {model.name} is {_short(value)}. Give the record's model by --model"
            )
    return model


def _short(value: object) -> str:
    text = "none" if value is None else str(value)
    return text[:12] if re.fullmatch("[0-9a-f]{64}", text) else text


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


def _strange(kept: Record, parts: Parts) -> Iterator[str]:
    """Yields the scenes of the record that its data do not have."""
    for scene in sorted(kept.scenes.keys() - {*parts.names}):
        yield f"it has numbers of a scene {scene}, which its data do not have"


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
            Checked(scene, _compared(self.kept.scenes.get(scene, {}), fresh.scenes.get(scene, {})))
            for scene in scenes
        ]
        totals = _compared(*(r.scores | _ends(r.intervals) for r in (self.kept, fresh)))
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

        def own(of_record: Mapping[str, T], now: Mapping[str, T], follow: Mapping[str, T]) -> Pair:
            mine = [key for key in {**of_record, **now} if key.partition("/")[0] == name]
            mine = [key for key in mine if key in now or key not in follow]
            return tuple(
                {key: scored[key] for key in mine if key in scored} for scored in (of_record, now)
            )

        scores = own(self.kept.scores, found.values, summed.values)
        bounds = own(self.kept.intervals, found.intervals, summed.intervals)
        scenes = (scored.scenes.get(name, {}) for scored in (self.kept, found))
        before, now = (
            {**scene, **values, **_ends(ends)}
            for scene, values, ends in zip(scenes, scores, bounds, strict=True)
        )
        return _compared(before, now)

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


def _totals(kept: Record, parts: Parts, summed: Scores) -> tuple[Checked, tuple[str, ...]]:
    """The numbers that follow from the scenes, and names of intervals that can't be checked."""
    of_parts = {*parts.names}

    def follows(name: str, known: Mapping[str, object]) -> bool:
        return name in known or name.partition("/")[0] not in of_parts

    scores = {name: x for name, x in kept.scores.items() if follows(name, summed.values)}
    bounds = {name: x for name, x in kept.intervals.items() if follows(name, summed.intervals)}
    unchecked = () if parts.sums_intervals else tuple(bounds)
    bounds = {name: x for name, x in bounds.items() if name not in unchecked}
    before, now = scores | _ends(bounds), {**summed.values, **_ends(summed.intervals)}
    for scene, derived in summed.scenes.items():
        of_scene = kept.scenes[scene]
        before |= {f"{scene}: {name}": of_scene[name] for name in derived if name in of_scene}
        now |= {f"{scene}: {name}": value for name, value in derived.items()}
    return Checked(TOTALS, _compared(before, now), within=EQUAL), unchecked


def _ends(intervals: Mapping[str, tuple[float, float]]) -> dict[str, float]:
    """The ends of intervals, by names of their own."""
    return {
        f"{name}, {end} end of the interval": value
        for name, ends in intervals.items()
        for end, value in zip(("lower", "upper"), ends, strict=True)
    }


def _compared(kept: Mapping[str, float], found: Mapping[str, float]) -> tuple[Number, ...]:
    return tuple(
        Number(name, kept.get(name), found.get(name)) for name in dict.fromkeys([*kept, *found])
    )
