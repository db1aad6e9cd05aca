"""Options and names of scores that the three tasks share."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeVar, get_args

from harness import Dataset, Descriptions, Protocol, Scores
from harness.distances import L2
from harness.errors import InputError
from protocols.headlines import HEADLINES
from protocols.hpatches.reader import HPatches, open_set
from protocols.hpatches.sample import sample
from protocols.hpatches.whitening import whiten
from protocols.naming import PARTIAL, remarked, unusual

VERSION = 3  # raised whenever a number of any task could change
Ties = Literal["mean", "official"]
Whitening = Literal["none", "pcapl"]

Task = TypeVar("Task")


def protocol(
    name: str,
    prepare: Callable[[HPatches], tuple[Task, Dataset]],
    score: Callable[[HPatches, Task, Descriptions, bool], Scores],
    *,
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

    def judged(described: Descriptions) -> Scores:
        whitened = whiten(described, opened) if pcapl else described
        return score(opened, task, whitened, ties == "official")

    return Protocol(
        f"hpatches/{name}",
        VERSION,
        dataset,
        judged,
        headline=HEADLINES[f"hpatches/{name}"],
        distances=frozenset({L2.name}) if pcapl else None,
        options=unusual({"whitening": "none", "ties": "mean"}, whitening=whitening, ties=ties),
    )


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
