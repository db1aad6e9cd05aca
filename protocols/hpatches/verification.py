"""HPatches patch verification: do two patches show the same point?"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float, Float64, Int

from harness import Descriptions, Protocol, parallel
from harness.metrics import (
    Ranking,
    Ties,
    rank_apart,
    roc_auc,
    trapezoid_average_precision,
)
from harness.statistics import Interval, interval
from harness.types import Rows
from protocols.hpatches import tasks, variant
from protocols.hpatches.reader import NOISES, HPatches

KINDS = ("positive", "inter", "intra")
IMBALANCED = 0.2  # "ap" uses all negatives and the first fifth of the positives
BINS = 512  # of distance; used for the interval only

Distances = Float64[np.ndarray, " n"]


def verification(
    *,
    data: Path | None = None,
    split: str | None = None,
    allow_partial: bool = False,
    whitening: variant.Whitening = "none",
    ties: variant.Ties = "mean",
) -> Protocol:
    """Average precision (trapezoid, imbalanced) and ROC AUC (balanced) over the official pairs.

    The scores are `verification/{easy,hard,tough}/{inter,intra}/{ap,auc}`; `verification/map` is
    the mean of the six "ap". With official ties, a negative ranks before a positive at equal
    distance.
    """
    return variant.protocol(
        "verification", tasks.verification, score,
        data=data, split=split, allow_partial=allow_partial, whitening=whitening, ties=ties,
    )  # fmt: skip


def score(
    opened: HPatches, task: tasks.Verification, described: Descriptions, official: bool
) -> variant.Summed:
    """Score vectors; if `official`, negatives rank first among equal distances."""
    values: dict[str, float] = {}
    scenes: dict[str, dict[str, float]] = {sequence: {} for sequence in opened.test}
    first = task.place < int(IMBALANCED * len(task.place))
    counts = []

    def judge(case: tuple[str, str]) -> _Judgement:
        matched, unmatched = measured[case[0], "positive"], measured[case]
        return _judged(matched, unmatched, task.positive.s1, first, len(opened.test), official)

    measured: dict[tuple[str, str], Distances] = {}
    for noise in NOISES:
        p = task.positive
        second = [opened.rows(q.s2, q.t2, q.idx2, noise) for q in (p, task.inter, task.intra)]
        distances = _paired(described, opened.rows(p.s1, p.t1, p.idx1, noise), np.stack(second))
        measured |= {(noise, kind): d for kind, d in zip(KINDS, distances, strict=True)}
    cases = [(noise, kind) for noise in NOISES for kind in KINDS[1:]]
    for (noise, kind), judged in zip(cases, parallel.each(judge, cases), strict=True):
        values[f"{noise}/{kind}/auc"] = judged.auc
        values[f"{noise}/{kind}/ap"] = judged.ap
        counts.append(judged.counts)
        for number, ap in judged.scenes.items():
            scenes[opened.test[number]][f"{noise}/{kind}/ap"] = ap
    values["map"] = float(np.mean([v for name, v in values.items() if name.endswith("/ap")]))
    intervals: dict[str, Interval | None] = {}
    if len(np.unique(task.positive.s1[first])) > 1:  # otherwise leaving one out leaves no matches
        present = np.unique(task.positive.s1)
        kept = np.ones((1 + len(present), len(opened.test)))
        kept[1 + np.arange(len(present)), present] = 0
        rough, *binned = _binned_map(counts, kept)
        without = values["map"] + np.array(binned) - rough
        intervals["map"] = interval(values["map"], without)
    return values, scenes, intervals


def _paired(
    described: Descriptions, a: Rows, b: Int[np.ndarray, "sets m"]
) -> Float64[np.ndarray, "sets m"]:
    """Distances between rows a[i] and b[:, i], measured on every core."""
    step = -(-len(a) // (4 * parallel.CORES))
    slices = [slice(i, i + step) for i in range(0, len(a), step)]
    parts = parallel.each(lambda rows: described.paired(a[rows], b[:, rows]), slices)
    return np.concatenate(parts, axis=1)


@dataclass(frozen=True, eq=False)
class _Judgement:
    """Scores of one noise level and one kind of negatives."""

    auc: float
    ap: float
    scenes: dict[int, float]  # by sequence: ap of the pairs whose first patch is of the sequence
    counts: tuple[np.ndarray, np.ndarray]  # see `_histograms`


def _judged(
    matched: Distances,
    unmatched: Distances,
    sequence: Int[np.ndarray, " n"],
    first: Bool[np.ndarray, " n"],
    sequences: int,
    official: bool,
) -> _Judgement:
    """Score one noise level and one kind of negatives; the pairs are in order of sequences."""
    ties: Ties = "matches-last" if official else "mean"
    scenes = {}
    for number in range(sequences):
        pairs = slice(*np.searchsorted(sequence, [number, number + 1]))
        if first[pairs].any():
            ranking = rank_apart(matched[pairs][first[pairs]], unmatched[pairs]).with_ties(ties)
            scenes[number] = float(trapezoid_average_precision(ranking))
    balanced = rank_apart(matched, unmatched).with_ties(ties)
    imbalanced = rank_apart(matched[first], unmatched).with_ties(ties)
    return _Judgement(
        float(roc_auc(balanced)),
        float(trapezoid_average_precision(imbalanced)),
        scenes,
        _histograms(matched, unmatched, sequence, first, sequences),
    )


def _histograms(
    matched: Distances,
    unmatched: Distances,
    sequence: Int[np.ndarray, " n"],
    first: np.ndarray,
    sequences: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Counts of matches and of non-matches, by sequence of the first patch and bin of distance.

    The bins hold about the same number of pairs.
    """
    edges = np.unique(
        np.quantile(np.concatenate([matched[::97], unmatched[::97]]), np.linspace(0, 1, BINS))
    )
    tables = []
    for distance, number in ((matched[first], sequence[first]), (unmatched, sequence)):
        bounds = np.searchsorted(number, np.arange(sequences + 1))
        # Counts from sorted distances: a search of every distance among the edges is slower.
        of_scenes = (np.sort(distance[slice(*pair)]) for pair in pairwise(bounds))
        upto = [[0, *np.searchsorted(of, edges, side="right"), len(of)] for of in of_scenes]
        tables.append(np.diff(np.array(upto, float), axis=1))
    return tables[0], tables[1]


def _binned_map(
    counts: Sequence[tuple[np.ndarray, np.ndarray]], kept: Float[np.ndarray, "some sequences"]
) -> Float[np.ndarray, " some"]:
    """Mean of the six average precisions, for each row of `kept` (1: keep the sequence, 0: not)."""
    total = np.zeros(len(kept))
    for matched, unmatched in counts:
        hits = kept @ matched
        size = hits + kept @ unmatched
        before = np.cumsum(size, axis=1) - size
        ranking = Ranking(hits, size, before, hits.sum(axis=1), size.sum(axis=1))
        total += trapezoid_average_precision(ranking)
    return total / len(counts)
