"""HPatches patch retrieval: find a point's five other patches in a pool of distractors."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float

from harness import Descriptions, Protocol, parallel
from harness.metrics import Ties, rank_counted, trapezoid_average_precision
from harness.statistics import interval_of_mean
from harness.types import Rows
from protocols.hpatches import tasks, variant
from protocols.hpatches.reader import NOISES, HPatches

POOLS = (100, 500, 1000, 5000, 10000, 15000, 20000)  # patches, including the five positives
POSITIVES = 5
NAMES = [f"{noise}/map@{pool}" for noise in NOISES for pool in POOLS]
QUERIES = 320  # at a time: their distances to 5,000 distractors take 6 MiB


def retrieval(
    *,
    data: Path | None = None,
    split: str | None = None,
    allow_partial: bool = False,
    whitening: variant.Whitening = "none",
    ties: variant.Ties = "mean",
) -> Protocol:
    """Mean over queries of average precision (trapezoid) in pools of 100 to 20,000 patches.

    The scores are `retrieval/{easy,hard,tough}/map@{100,...,20000}`; `retrieval/map` is the mean of
    these 21. Distractors of the query's own sequence are left out. A pool takes the first of the
    other distractors, or all of them if there are too few. With official ties, a positive ranks
    before a distractor at equal distance.
    """
    return variant.protocol(
        "retrieval", tasks.retrieval, SEQUENCES.whole, sequences=SEQUENCES,
        data=data, split=split, allow_partial=allow_partial, whitening=whitening, ties=ties,
    )  # fmt: skip


def queried(opened: HPatches, task: tasks.Retrieval) -> list[int]:
    """Numbers of the sequences that have a query, ascending."""
    return np.unique(task.queries.s).tolist()


def rows(opened: HPatches, sequence: int) -> Rows:
    """Rows of a sequence, and of the reference patches of all sequences: its distractors."""
    references = [opened.strip(number, "ref") for number in range(len(opened.test))]
    others = [np.arange(strip.start, strip.stop) for strip in references]
    return np.concatenate([opened.sequence_rows(sequence), *others])


def score(
    opened: HPatches,
    task: tasks.Retrieval,
    described: Descriptions,
    numbers: Sequence[int],
    official: bool,
) -> variant.Scenes:
    """Score some sequences; if `official`, positives rank first among equal distances."""
    parts: list[tuple[int, tasks.Patchlist]] = []
    for number in numbers:
        of_it = np.flatnonzero(task.queries.s == number)
        cuts = range(QUERIES, len(of_it), QUERIES)
        parts += [(number, task.queries.take(part)) for part in np.split(of_it, cuts)]

    def scored(part: tuple[int, tasks.Patchlist]) -> Float[np.ndarray, "queries 21"]:
        return _average_precisions(
            opened, *part, task.distractors, described, "matches-first" if official else "mean"
        )

    precisions = parallel.each(scored, parts)
    scenes: dict[str, dict[str, float]] = {}
    for number in numbers:
        precision = np.concatenate(
            [part for (n, _), part in zip(parts, precisions, strict=True) if n == number]
        )
        scene = scenes[opened.test[number]] = dict(
            zip(NAMES, precision.mean(0).tolist(), strict=True)
        )
        scene["map"] = float(precision.mean())
    return scenes


def sum_up(opened: HPatches, task: tasks.Retrieval, scenes: variant.Scenes) -> variant.Summed:
    """Means over queries, the interval of their mean, and the mean of each sequence."""
    queries = np.bincount(task.queries.s)[queried(opened, task)].tolist()
    values = {
        name: float(np.average([scene[name] for scene in scenes.values()], weights=queries))
        for name in NAMES
    }
    values["map"] = float(np.mean([values[name] for name in NAMES]))
    maps = [scene["map"] for scene in scenes.values()]
    means = {
        sequence: {"map": float(np.mean([scene[name] for name in NAMES]))}
        for sequence, scene in scenes.items()
    }
    return values, means, {"map": interval_of_mean(maps, queries)}


SEQUENCES = variant.Sequences(numbers=queried, rows=rows, score=score, sum_up=sum_up)


def _average_precisions(
    opened: HPatches,
    sequence: int,
    queries: tasks.Patchlist,
    distractors: tasks.Patchlist,
    described: Descriptions,
    ties: Ties,
) -> Float[np.ndarray, "queries 21"]:
    """Average precision of queries of one sequence; columns are noise levels, then pools."""
    vectors, distance = described.vectors, described.distance
    ref = np.zeros(1, int)
    query = opened.rows(queries.s, ref, queries.idx, "easy")
    image = np.arange(1, POSITIVES + 1)[:, None]
    positive = [opened.rows(queries.s, image, queries.idx, noise) for noise in NOISES]
    matched = np.moveaxis(described.paired(query, np.stack(positive)), 2, 0)  # query, noise, image
    matched = np.sort(matched, axis=2)
    kept = distractors.take(np.flatnonzero(distractors.s != sequence))
    pool_rows = opened.rows(kept.s, ref, kept.idx, "easy")
    flat = matched.reshape(len(query), -1)
    nearer = np.zeros(flat.shape, int)
    upto = np.zeros(flat.shape, int)
    precision = np.empty((len(query), len(NOISES), len(POOLS)))
    start = 0
    for place, pool in enumerate(POOLS):  # each pool contains the previous pool
        more = vectors[pool_rows[start : pool - POSITIVES]]
        start = pool - POSITIVES
        further = distance.count_nearer(vectors[query], more, flat)
        nearer += further[0]
        upto += further[1]
        ranking = rank_counted(matched.reshape(-1, POSITIVES), *(
            count.reshape(-1, POSITIVES) for count in (nearer, upto - nearer)
        ))  # fmt: skip
        of_pool = trapezoid_average_precision(ranking.with_ties(ties))
        precision[:, :, place] = np.reshape(of_pool, (len(query), -1))
    return precision.reshape(len(query), -1)
