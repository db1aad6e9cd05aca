"""Options and names of scores that the three tasks share."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, Literal, TypeVar, get_args

import numpy as np

from harness import Dataset, Descriptions, Parts, Protocol, Scores
from harness.distances import L2
from harness.errors import InputError
from harness.types import Rows
from protocols.headlines import HEADLINES
from protocols.hpatches.reader import HPatches, open_set
from protocols.hpatches.sample import sample
from protocols.hpatches.whitening import whiten
from protocols.naming import PARTIAL, remarked, unusual

VERSION = 3  # raised whenever a number of any task could change
Ties = Literal["mean", "official"]
Whitening = Literal["none", "pcapl"]

Task = TypeVar("Task")
Scenes = Mapping[str, Mapping[str, float]]
Summed = tuple[Mapping[str, float], Scenes, Mapping[str, tuple[float, float] | None]]
"""Scores, breakdowns by sequence, and intervals, all without the name of the task."""


@dataclass(frozen=True, eq=False)
class Sequences(Generic[Task]):
    """How a task scores some sequences alone, and sums up all of them."""

    numbers: Callable[[HPatches, Task], Sequence[int]]  # of the sequences that have scores
    rows: Callable[[HPatches, int], Rows]  # rows that the score of a sequence needs
    # The numbers of some sequences, by sequence; the last argument tells how ties fall.
    score: Callable[[HPatches, Task, Descriptions, Sequence[int], bool], Scenes]
    # Scores, breakdowns that are sums of others, and intervals, from the numbers of all sequences.
    sum_up: Callable[[HPatches, Task, Scenes], Summed]

    def whole(
        self, opened: HPatches, task: Task, described: Descriptions, official: bool
    ) -> Summed:
        """The scores of all sequences."""
        scenes = self.score(opened, task, described, self.numbers(opened, task), official)
        values, _, intervals = self.sum_up(opened, task, scenes)
        return values, scenes, intervals


def protocol(
    name: str,
    prepare: Callable[[HPatches], tuple[Task, Dataset]],
    score: Callable[[HPatches, Task, Descriptions, bool], Summed],
    *,
    sequences: Sequences[Task] | None = None,
    data: Path | None,
    split: str | None,
    allow_partial: bool,
    whitening: Whitening,
    ties: Ties,
) -> Protocol:
    """The protocol of one task on one split.

    Args:
        name: the task's name.
        prepare: reads the task's files; returns them and the data set, named after their origin.
        score: scores vectors; its last argument says whether ties fall as in the official code.
        sequences: scores some sequences alone; None if the task can't.
        data: folder of the set; None: the sample.
        split: name of a split in the set's splits.json.
        allow_partial: score the sequences that are there if others are missing.
        whitening: "pcapl" first whitens the vectors; it is fitted on the split's training part.
        ties: "mean" over all orders of tied rows, or "official", the order in which the official
            code sorts them.
    """
    for option, value, known in (("ties", ties, Ties), ("whitening", whitening, Whitening)):
        if value not in get_args(known):
            raise InputError(f"{option} may be {' or '.join(get_args(known))}, not {value!r}")
    pcapl = whitening == "pcapl"
    root = sample() if data is None else data
    opened = open_set(root, split, allow_partial=allow_partial, training=pcapl)
    task, dataset = prepare(opened)
    if not dataset.complete:
        dataset = replace(dataset, split=remarked(dataset.split, PARTIAL))

    official = ties == "official"

    def whitened(described: Descriptions) -> Descriptions:
        return whiten(described, opened) if pcapl else described

    def judged(described: Descriptions) -> Scores:
        return scores(name, *score(opened, task, whitened(described), official))

    return Protocol(
        f"hpatches/{name}",
        VERSION,
        dataset,
        judged,
        headline=HEADLINES[f"hpatches/{name}"],
        distances=frozenset({L2.name}) if pcapl else None,
        options=unusual({"whitening": "none", "ties": "mean"}, whitening=whitening, ties=ties),
        parts=None
        if sequences is None
        else _parts(name, sequences, opened, task, whitened, official),
    )


def _parts(
    name: str,
    sequences: Sequences[Task],
    opened: HPatches,
    task: Task,
    whitened: Callable[[Descriptions], Descriptions],
    official: bool,
) -> Parts:
    """The sequences of a task, each of which can be scored alone."""
    number = {opened.test[i]: i for i in sequences.numbers(opened, task)}

    def rows(sequence: str) -> Rows:
        needed = sequences.rows(opened, number[sequence])
        return np.concatenate([needed, opened.train_rows()]) if opened.train else needed

    def score(described: Descriptions, names: Sequence[str]) -> Scores:
        of = [number[sequence] for sequence in names]
        return scores(
            name, {}, sequences.score(opened, task, whitened(described), of, official), {}
        )

    def sum_up(found: Scores) -> Scores:
        scenes = {
            sequence: {key.removeprefix(f"{name}/"): x for key, x in found.scenes[sequence].items()}
            for sequence in number
        }
        return scores(name, *sequences.sum_up(opened, task, scenes))

    return Parts(tuple(number), rows, score, sum_up)


def scores(
    task: str,
    values: Mapping[str, float],
    scenes: Mapping[str, Mapping[str, float]],
    intervals: Mapping[str, tuple[float, float] | None],
) -> Scores:
    """Scores under the names that tables use: they begin with the task's name."""
    return Scores(
        {f"{task}/{name}": value for name, value in values.items()},
        {
            scene: {f"{task}/{name}": value for name, value in of_scene.items()}
            for scene, of_scene in scenes.items()
        },
        {f"{task}/{name}": bounds for name, bounds in intervals.items() if bounds is not None},
    )
