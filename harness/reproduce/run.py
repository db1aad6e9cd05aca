"""Reproduces an item: trains and evaluates what is missing, and collects the numbers of its cells.

Everything that is finished is kept in the folder and reused: trainings by their key, evaluations by
their records, measures by a hash of all that decides them. So a run that was killed goes on, and
items share trainings.
"""

import hashlib
import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from harness import api, loading, registry
from harness.code import code_sha256
from harness.data import training_sets
from harness.errors import (
    ComputeError,
    FileMissingError,
    HarnessError,
    InputError,
    SystemRefusedError,
    one_line,
    text_of,
)
from harness.files import atomic, texts
from harness.metrics import lower_is_better
from harness.records import record as results
from harness.records.record import Record
from harness.reproduce import budgets, items, outcomes, places, trainings
from harness.reproduce.budgets import Budget, Place
from harness.reproduce.items import Cell
from harness.reproduce.outcomes import Measured, Outcome, Seen, Value
from harness.reproduce.places import Located
from harness.reproduce.trainings import Training
from harness.statistics import interval_over_parts
from harness.types import Descriptor, Protocol

TOLD = 3  # parts of a cell's error that are kept

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Bench:
    """The folders of a run, and what it has opened."""

    budget: Budget
    out: Path
    data: Path | None = None
    device: str = "auto"
    located: dict[str, Located] = field(default_factory=dict)
    protocols: dict[str, Protocol] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)  # key of a training -> its error
    wanted: dict[str, list[Protocol]] = field(default_factory=dict)  # by the name of a subject

    def locate(self, name: str) -> Located:
        """The data of a name."""
        if name not in self.located:
            place = self.budget.places.get(name, Place())
            self.located[name] = places.locate(name, place, self.data, self.out / "data")
        return self.located[name]

    def protocol(self, name: str, test: str, options: Mapping[str, Any]) -> Protocol:
        """A protocol on the data of a name."""
        where = self.locate(test)
        given = {**self.budget.protocols.get(name.partition("/")[0], {}), **options}
        given |= {**where.options, "data": where.folder}
        if where.place.frames:
            given["frames"] = self._frames(where.place.frames)
        key = f"{name} {test} {sorted(map(str, given.items()))}"
        if key not in self.protocols:
            self.protocols[key] = loading.load_protocol(name, **given)
        return self.protocols[key]

    def _frames(self, folder: str) -> Path:
        if self.data is None or not (self.data / folder).is_dir():
            raise FileMissingError(f"there is no folder of regions {folder}: give --data DIR")
        return self.data / folder


@dataclass(frozen=True, eq=False)
class Subject:
    """What is scored: an installed model, or a training, at one epoch."""

    model: str = ""
    training: Training | None = None
    seed: int = 0
    epoch: int | None = None
    wrap: str = ""

    @property
    def name(self) -> str:
        """The name of the model in its records."""
        base = self.training.name if self.training else self.model
        base += f"@epoch-{self.epoch}" if self.epoch is not None else ""
        return f"{base}|{self.wrap}" if self.wrap else base


def reproduce(name: str, budget: str, bench: Bench) -> Outcome:
    """Measure all cells of an item, and keep the outcome.

    A cell that fails is kept with the reason, and the others are measured.

    Raises:
        UnknownNameError: if there is no such item.
        SystemRefusedError: if a file can't be written.
    """
    item = items.find(name).item
    cells = [*items.cells(item, budget, bench.budget.keep)]
    planned = [_attempt(_trainings, cell, bench) for _, cell in cells]
    _train_all([one for plan in planned if isinstance(plan, list) for one in plan], bench)
    for (_, cell), plan in zip(cells, planned, strict=True):
        _attempt(_want, cell, plan, bench)
    measured = []
    for (at, cell), plan in zip(cells, planned, strict=True):
        if isinstance(plan, str):
            measured.append(Measured(at=at, missing=plan))
            continue
        got = _attempt(_measured, at, cell, plan, bench)
        if isinstance(got, str):
            log.warning("%s, %s: %s", name, ", ".join(at.values()), got)
            got = Measured(at=at, missing=got)
        measured.append(got)
    used = [cell for _, cell in cells]
    outcome = Outcome(
        item=name,
        budget=budget,
        trained_on=_names(bench, (one for cell in used for one in cell.train), _trained),
        tested_on=_tested(bench, used),
        cells=tuple(measured),
    )
    outcomes.save(bench.out, outcome)
    return outcome


def plan(name: str, budget: str, bench: Bench) -> list[Training]:
    """All trainings of an item, each once, those first that others start from.

    Raises:
        HarnessError: if data are missing.
    """
    item = items.find(name).item
    found: dict[str, Training] = {}
    for _, cell in items.cells(item, budget, bench.budget.keep):
        for one in _trainings(cell, bench):
            found |= {each.key: each for each in (one.start, one) if each}
    return [*found.values()]


def _attempt(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function returns; the text of an error that concerns one cell only."""
    try:
        return function(*arguments)
    except (SystemRefusedError, MemoryError):
        raise
    except HarnessError as error:
        return text_of(error)


def _trainings(cell: Cell, bench: Bench) -> list[Training]:
    """The trainings of a cell, one for each seed."""
    if not cell.recipe:
        return []
    seeds = min(cell.seeds, bench.budget.seeds or cell.seeds)
    return [_training(cell, seed, bench) for seed in range(seeds)]


def _training(cell: Cell, seed: int, bench: Bench) -> Training:
    where = [bench.locate(name) for name in cell.train]
    data, precision = tuple(one.training for one in where), bench.budget.precision
    of_both = [setting for one in where for setting in one.place.settings]
    of_both += [*cell.common, f"seed={seed}"]
    start = None
    if cell.start:
        settings = trainings.settled(bench.budget, cell.start, of_both)
        start = Training(cell.start, settings, data, precision)
    settings = trainings.settled(bench.budget, cell.recipe, [*of_both, *cell.settings])
    if cell.epochs:
        epochs = registry.load("trainers", "identity")(cell.recipe, settings)["epochs"]
        settings = (*settings, f"checkpoints.every={max(1, epochs // bench.budget.points)}")
    return Training(cell.recipe, settings, data, precision, start, kept=cell.epochs)


def _train_all(wanted: Sequence[Training], bench: Bench) -> None:
    """Train each training that is not finished; an error is kept, and the others go on."""
    each: dict[str, Training] = {}
    for one in wanted:
        each |= {step.key: step for step in (one.start, one) if step}
    todo = [one for one in each.values() if not one.is_done(bench.out)]
    for number, one in enumerate(todo, 1):
        log.info("training %d of %d: %s", number, len(todo), one.name)
        error = _attempt(trainings.train, one, bench.out, bench.device)
        if error is not None:
            log.warning("%s: %s", one.name, error)
            bench.failed[one.key] = error


def _want(cell: Cell, plan: Sequence[Training] | str, bench: Bench) -> None:
    """Note the protocols of a cell, so that tasks on the same patches are evaluated together."""
    if isinstance(plan, str) or not cell.protocol:
        return
    tasks = [bench.protocol(cell.protocol, test, cell.options) for test in cell.test]
    for subject in _subjects(cell, [one for one in plan if one.is_done(bench.out)], bench):
        bench.wanted.setdefault(subject.name, []).extend(tasks)


def _measured(at: dict[str, str], cell: Cell, plan: Sequence[Training], bench: Bench) -> Measured:
    """The numbers of a cell."""
    for one in plan:
        if one.key in bench.failed:
            raise InputError(f"{one.name} failed: {bench.failed[one.key]}")
    subjects = [*_subjects(cell, plan, bench)]
    if cell.measure:
        seen = [_seen(cell, one, bench) for one in subjects]
        values = [
            Value(value=found.value, seed=one.seed, epoch=one.epoch)
            for one, found in zip(subjects, seen, strict=True)
            if found.value is not None
        ]
        last = seen[-1]
        return Measured(
            at=at,
            values=tuple(values),
            seen=last,
            decimals=last.decimals,
            lower_is_better=last.lower_is_better,
        )
    tasks = [bench.protocol(cell.protocol, test, cell.options) for test in cell.test]
    scored = [_value(one, tasks, cell.score, bench) for one in subjects]
    quantities = tasks[0].quantities
    score = cell.score or tasks[0].headline
    quantity = quantities.get(score.rpartition("/")[2])
    return Measured(
        at=at,
        values=tuple(scored),
        decimals=quantity.decimals if quantity else None,
        lower_is_better=lower_is_better(score, quantities),
    )


def _subjects(cell: Cell, plan: Sequence[Training], bench: Bench) -> Iterator[Subject]:
    """Yields what a cell scores: each seed, and each kept epoch if it asks for them."""
    if not plan:
        yield Subject(model=cell.model, wrap=cell.wrap)
        return
    for seed, one in enumerate(plan):
        for epoch in trainings.epochs(one, bench.out) if cell.epochs else [None]:
            yield Subject(training=one, seed=seed, epoch=epoch, wrap=cell.wrap)


def _value(subject: Subject, tasks: Sequence[Protocol], score: str, bench: Bench) -> Value:
    """The mean of a score over tasks, from their records; a task without a record is run."""
    found = [_record(subject, task, bench) for task in tasks]
    values, intervals = [], []
    for one in found:
        name = _score(one, score)
        values.append(one.scores[name])
        intervals.append(one.intervals.get(name))
    files = (results.place(bench.out, one).relative_to(bench.out) for one in found)
    return Value(
        value=float(np.mean(values)),
        seed=subject.seed,
        epoch=subject.epoch,
        parts=tuple(values) if len(values) > 1 else (),
        interval=intervals[0] if len(found) == 1 else interval_over_parts(values, intervals),
        records=tuple(file.as_posix() for file in files),
    )


def _score(record: Record, score: str) -> str:
    """The name of a score in a record; "*/NAME" is that of the only scene.

    Raises:
        InputError: if the record has no such score, or several.
    """
    wanted = score or record.protocol.headline
    names = [wanted]
    if wanted.startswith("*/"):
        scenes = [f"{scene}{wanted[1:]}" for scene in record.scenes]
        names = [name for name in scenes if name in record.scores]
    if len(names) != 1 or names[0] not in record.scores:
        known = ", ".join(sorted(record.scores)[:TOLD])
        raise InputError(
            f"{record.model.name} has no score {wanted} on {record.data.name}: it has {known}, ..."
        )
    return names[0]


def _record(subject: Subject, task: Protocol, bench: Bench) -> Record:
    """The record of a model on a task: the kept one if it is of these weights and data."""
    kept = _kept(subject, task, bench)
    if kept is not None:
        return kept
    # Tasks on the same patches share their description.
    others = {
        (one.name, *sorted(one.options.items())): one
        for one in bench.wanted.get(subject.name, [])
        if one.dataset.blocks is task.dataset.blocks and one is not task
    }
    missing = [one for one in others.values() if _kept(subject, one, bench) is None]
    model = _model(subject, bench)
    made, *_ = api.evaluate(model, [task, *missing], results=bench.out, cache=False)
    return made


def _kept(subject: Subject, task: Protocol, bench: Bench) -> Record | None:
    """The kept record, if it is of these weights and data; a record that is not is removed."""
    file = results.file_of(bench.out, subject.name, task)
    if not file.is_file():
        return None
    kept = results.read(file)
    revised = False
    if subject.training is None:
        model = _model(subject, bench)
        weights, revised = model.weights, kept.model.revision != model.revision
    else:
        weights = _weights(subject, bench)
    same = (kept.data.sha256, kept.protocol.version, kept.model.weights)
    if same == (task.dataset.sha256, task.version, weights) and not revised:
        return kept
    file.unlink()
    return None


def _weights(subject: Subject, bench: Bench) -> str | None:
    assert subject.training is not None
    folder = subject.training.folder(bench.out)
    if subject.epoch is not None:
        folder = folder / trainings.EPOCHS / f"{subject.epoch:05}"
    weights: str | None = trainings.facts(folder)["weights"]
    return weights


def _model(subject: Subject, bench: Bench) -> Descriptor:
    """The descriptor of a subject."""
    if subject.training is None:
        model = loading.load_model(subject.model, device=bench.device)
    else:
        model = trainings.opened(
            subject.training, bench.out, bench.budget, device=bench.device, epoch=subject.epoch
        )
    if not isinstance(model, Descriptor):
        raise InputError(f"{subject.model} is a folder of vectors: an item names a descriptor")
    return loading.wrap(model, subject.wrap) if subject.wrap else model


def _seen(cell: Cell, subject: Subject, bench: Bench) -> Seen:
    """What a measure gives, kept in a file by a hash of all that decides it."""
    measure = registry.load("measures", cell.measure)
    arguments = {**cell.arguments, **bench.budget.measures.get(cell.measure, {})}
    folder = None
    if subject.training is not None:
        folder = subject.training.folder(bench.out)
        if subject.epoch is not None:
            folder = folder / trainings.EPOCHS / f"{subject.epoch:05}"
    data = [bench.locate(name).training for name in cell.test]
    facts = {
        "measure": cell.measure,
        "code": code_sha256(measure.__module__),
        "arguments": arguments,
        "model": _weights(subject, bench) if subject.training else "",
        "data": [_told(one) for one in data],
    }
    key = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
    file = bench.out / "measures" / f"{cell.measure}-{key:.10}.json"
    if not file.is_file():
        try:
            made = Seen.model_validate(measure(folder, data, **arguments))
        except ValidationError as error:
            raise ComputeError(f"the measure {cell.measure} gave {one_line(error)}") from error
        atomic.write_json(file, made.model_dump(mode="json", exclude_defaults=True))
    return Seen.model_validate(texts.read_json(file))


def _told(folder: Path) -> str:
    """Hash of a folder of data, or of its files if it is in none of the known forms."""
    try:
        return training_sets.open_set(str(folder)).sha256
    except InputError:
        files = sorted(file for file in folder.iterdir() if file.is_file())
        sizes = [f"{file.name} {hashlib.sha256(file.read_bytes()).hexdigest()}" for file in files]
        return hashlib.sha256("\n".join(sizes).encode()).hexdigest()


def _names(bench: Bench, wanted: Iterator[str], told: Callable[[Located], str]) -> dict[str, str]:
    """What stands for each name of data; names without data are left out."""
    found = {}
    for name in dict.fromkeys(wanted):
        text = _attempt(lambda name=name: told(bench.locate(name)))
        if name in bench.located:
            found[name] = text
    return found


def _trained(where: Located) -> str:
    return training_sets.open_set(str(where.training)).name


def _called(where: Located) -> str:
    """The name of data in a known form, else of their folder."""
    try:
        return _trained(where)
    except InputError:
        return where.folder.name


def _tested(bench: Bench, used: Sequence[Cell]) -> dict[str, str]:
    """The data set and split that stand for each tested name; of measures, the training data."""
    found: dict[str, str] = {}
    for cell in used:
        for test in cell.test:
            if test in found or test not in bench.located:
                continue
            if cell.measure:
                found[test] = _called(bench.locate(test))
                continue
            opened = _attempt(bench.protocol, cell.protocol, test, cell.options)
            if isinstance(opened, Protocol):
                found[test] = f"{opened.dataset.name}, split {opened.dataset.split}"
    return found


def bench_of(budget: str, out: Path, data: Path | None, device: str) -> Bench:
    """A bench for a budget."""
    return Bench(budgets.find(budget), out, data, device)
