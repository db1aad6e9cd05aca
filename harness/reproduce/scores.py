"""Scores of the models of an item: kept records are reused, missing ones are evaluated."""

from collections.abc import Sequence

import numpy as np

from harness import api
from harness.errors import InputError
from harness.records import record as results
from harness.records.record import Record
from harness.reproduce.bench import Bench, Subject, model_of, weights_of
from harness.reproduce.outcomes import Value
from harness.statistics import interval_over_parts
from harness.types import Protocol

TOLD = 3  # scores that an error names


def value_of(subject: Subject, tasks: Sequence[Protocol], score: str, bench: Bench) -> Value:
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
    model = model_of(subject, bench)
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
        model = model_of(subject, bench)
        weights, revised = model.weights, kept.model.revision != model.revision
    else:
        weights = weights_of(subject, bench)
    same = (kept.data.sha256, kept.protocol.version, kept.model.weights)
    if same == (task.dataset.sha256, task.version, weights) and not revised:
        return kept
    file.unlink()
    return None
