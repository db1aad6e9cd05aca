"""What the three tasks have in common: options, and a name for each variant."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from harness import Dataset, Descriptions, Protocol, Scores
from harness.distances import L2
from harness.errors import InputError
from protocols.hpatches.reader import HPatches, open_set
from protocols.hpatches.sample import sample
from protocols.hpatches.whitening import whiten

VERSION = 3  # raised whenever a number of any task could change
TIES = ("mean", "official")

Task = TypeVar("Task")


def protocol(
    name: str,
    prepare: Callable[[HPatches], tuple[Task, Dataset]],
    score: Callable[[HPatches, Task, Descriptions, bool], Scores],
    *,
    data: Path | None,
    split: str | None,
    allow_partial: bool,
    pcapl: bool,
    ties: str,
) -> Protocol:
    """One task on one split; what changes a number changes the name: "hpatches+pcapl/matching".

    Args:
        name: the task's.
        prepare: reads its files; gives them and the data set named after their origin.
        score: judges vectors; the last argument is whether ties fall as in the official code.
        data: folder of the set; the sample where None.
        split: name in the set's splits.json.
        allow_partial: score what is there where sequences are missing.
        pcapl: whiten on the split's training part first.
        ties: "mean" over all orders, or "official": as the official code's sorting leaves them.
    """
    if ties not in TIES:
        raise InputError(f"ties may be {' or '.join(TIES)}, not {ties!r}")
    root = sample() if data is None else data
    opened = open_set(root, split, allow_partial=allow_partial, training=pcapl)
    task, dataset = prepare(opened)

    def judged(described: Descriptions) -> Scores:
        whitened = whiten(described, opened) if pcapl else described
        return score(opened, task, whitened, ties == "official")

    family = "hpatches" + "+pcapl" * pcapl + "+official-ties" * (ties == "official")
    return Protocol(
        f"{family}/{name}",
        VERSION,
        dataset,
        judged,
        headline=f"{name}/map",
        distances=frozenset({L2.name}) if pcapl else None,
    )


def scores(
    task: str,
    values: Mapping[str, float],
    scenes: Mapping[str, Mapping[str, float]],
    intervals: Mapping[str, tuple[float, float] | None],
) -> Scores:
    """Scores under the names that all tables use, which begin with the task's."""
    return Scores(
        {f"{task}/{name}": value for name, value in values.items()},
        {
            scene: {f"{task}/{name}": value for name, value in own.items()}
            for scene, own in scenes.items()
        },
        {f"{task}/{name}": bounds for name, bounds in intervals.items() if bounds is not None},
    )
