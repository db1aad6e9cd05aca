"""HPatches image matching: find each patch's point among the patches of another image."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from harness import Descriptions, Protocol, parallel
from harness.distances import Distance
from harness.metrics import rank_uncertain, trapezoid_average_precision
from harness.statistics import interval_of_mean
from harness.types import Vectors
from protocols.hpatches import tasks, variant
from protocols.hpatches.reader import NOISES, HPatches

SUBSETS = {"all": "", "illum": "i_", "view": "v_"}  # prefix of the sequences' names


def matching(
    *,
    data: Path | None = None,
    split: str | None = None,
    allow_partial: bool = False,
    whitening: variant.Whitening = "none",
    ties: variant.Ties = "mean",
) -> Protocol:
    """Average precision (trapezoid) of nearest neighbours in 5 images, mean over sequences.

    The scores are `matching/{easy,hard,tough}/{all,illum,view}/map`; `matching/map` is the mean of
    the three "all". There is no ratio test and no mutual check. If several patches are equally
    near, each counts as the nearest with equal probability; with official ties, the first counts.
    """
    return variant.protocol(
        "matching", tasks.matching, SEQUENCES.whole, sequences=SEQUENCES,
        data=data, split=split, allow_partial=allow_partial, whitening=whitening, ties=ties,
    )  # fmt: skip


def score(
    opened: HPatches,
    task: None,
    described: Descriptions,
    numbers: Sequence[int],
    official: bool,
) -> variant.Scenes:
    """Score some sequences; if `official`, the first of equally near patches is the nearest."""

    def scored(number: int) -> dict[str, float]:
        precisions = _precisions(opened, number, described, official)
        return precisions | _means(precisions)

    each = parallel.each(scored, numbers)
    return {opened.test[number]: scene for number, scene in zip(numbers, each, strict=True)}


def sum_up(opened: HPatches, task: None, scenes: variant.Scenes) -> variant.Summed:
    """Means over sequences, their intervals, and the means of each sequence."""
    values = {}
    for noise in NOISES:
        for subset, prefix in SUBSETS.items():
            maps = [scene[f"{noise}/map"] for s, scene in scenes.items() if s.startswith(prefix)]
            if maps:  # a split may have no sequence of this kind
                values[f"{noise}/{subset}/map"] = float(np.mean(maps))
    values["map"] = float(np.mean([values[f"{noise}/all/map"] for noise in NOISES]))
    headlines = {"map": "map", **{f"{noise}/all/map": f"{noise}/map" for noise in NOISES}}
    intervals = {
        name: interval_of_mean([scene[of_scene] for scene in scenes.values()])
        for name, of_scene in headlines.items()
    }
    return values, {scene: _means(own) for scene, own in scenes.items()}, intervals


SEQUENCES = variant.Sequences(
    numbers=lambda opened, task: range(len(opened.test)),
    rows=HPatches.sequence_rows,
    score=score,
    sum_up=sum_up,
)


def _precisions(
    opened: HPatches, number: int, described: Descriptions, official: bool
) -> dict[str, float]:
    """Average precision of each pair of strips of a sequence."""
    values: dict[str, float] = {}
    ref = described.vectors[opened.strip(number, "ref")]
    for noise in NOISES:
        for k in range(1, 6):
            other = described.vectors[opened.strip(number, f"{noise[0]}{k}")]
            precision = _average_precision(ref, other, described.distance, official)
            values[f"{noise}/{k}/ap"] = precision
    return values


def _means(precisions: Mapping[str, float]) -> dict[str, float]:
    """Means over the pairs of strips of a sequence."""
    means = {
        f"{noise}/map": float(np.mean([precisions[f"{noise}/{k}/ap"] for k in range(1, 6)]))
        for noise in NOISES
    }
    return means | {"map": float(np.mean([means[f"{noise}/map"] for noise in NOISES]))}


def _average_precision(ref: Vectors, other: Vectors, distance: Distance, official: bool) -> float:
    """Average precision of the nearest neighbours of n patches, ranked by distance; n matches."""
    nearest = distance.nearest(ref, other)
    correct = nearest.row == nearest.column
    first = np.searchsorted(nearest.row, np.arange(len(ref)))
    if official:
        chance = correct[first].astype(float)
        order = np.argsort(nearest.distance, kind="stable")
        ranking = rank_uncertain(chance[order], np.arange(len(order), dtype=float), len(ref))
    else:
        ties = np.diff(first, append=len(nearest.row))
        chance = np.add.reduceat(correct, first, dtype=float) / ties
        ranking = rank_uncertain(chance, nearest.distance, len(ref))
    return float(trapezoid_average_precision(ranking))
