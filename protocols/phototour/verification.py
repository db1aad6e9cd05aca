"""PhotoTour patch verification: do two patches show the same 3-D point? FPR95 of each scene."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float, Float32, Int

from harness import Descriptions, Protocol, Scores, parallel
from harness.metrics import (
    Ranking,
    average_precision,
    fpr_at_95,
    precision_recall_curve,
    rank,
    roc_auc,
    roc_curve,
)
from harness.types import Rows
from protocols.phototour.fpr95 import fpr_at_95_hardnet, fpr_at_95_tian
from protocols.phototour.reader import TEST, read_pairs
from protocols.phototour.scenes import Draws, cells, join, open_scenes, scores

VERSION = 1  # raised whenever a number could change

Match = Bool[np.ndarray, " m"]
Distances = Float32[np.ndarray, " m"]

FPR95: Mapping[str, Callable[[Ranking, Match, Distances], float]] = {
    "tie-aware": lambda ranking, match, distance: fpr_at_95(ranking),
    "hardnet": lambda ranking, match, distance: fpr_at_95_hardnet(match, distance),
    "tian": lambda ranking, match, distance: fpr_at_95_tian(ranking),
}

METRICS = ("fpr95", "ap", "auc")
RECALLS = (*range(5, 100, 5), 99, 100)  # percent: where the curves are kept

DRAWS = 1000  # for intervals; some milliseconds each
HELD = 1 << 20  # numbers of draws at a time

log = logging.getLogger(__name__)


def phototour(
    *,
    data: Path | None = None,
    split: str | None = None,
    pairs: str | None = None,
    fpr95: str = "tie-aware",
) -> Protocol:
    """False positive rate at 95 % recall over each scene's list of pairs, and its mean over scenes.

    `<scene>/fpr95`, `<scene>/ap` (step sum) and `<scene>/auc` (ROC), and `mean/...` of each. Only
    patches that the pairs name are described, once each. A model that was trained on a scene gets
    no score of it and then no mean.

    FPR95 is the share of non-matches accepted by the least threshold that accepts 95 % of matches,
    ties accepted together; "hardnet" and "tian" are two published variants, see `fpr95`, and give
    the protocol another name. Its interval draws the 3-D points of the pairs' first patches again,
    each with all pairs whose first patch shows it (what the second one shows has no say), and finds
    the threshold anew. These draws are tie-aware; for "hardnet" and "tian" they are shifted by as
    much as the variant's value differs from the tie-aware one, and clipped to [0, 1]: the width is
    the tie-aware one's, not their own. Breakdowns hold both curves:
    `fpr@<recall>` and `precision@<recall>`, recall in percent, at the least threshold that has it.

    Args:
        data: a folder of scene folders in the official format, or one scene.
        split: scenes to test, joined by "+"; where None all, but of liberty and liberty_harris
            (one place, two detectors) only the first.
        pairs: name of the file of the list of pairs; where None the papers' one, or the
            largest in a scene that lacks it. Another list than the papers' gives the split
            another name.
        fpr95: how it is counted.
    """
    if fpr95 not in FPR95:
        raise ValueError(f"fpr95 may be {', '.join(FPR95)}, not {fpr95!r}")
    opened = open_scenes(data, split)
    lists = [read_pairs(scene, pairs) for scene in opened.scenes]
    rows = [np.unique(np.concatenate([one.a, one.b])) for one in lists]
    names = list(dict.fromkeys(one.file.name for one in lists))
    if data is not None and pairs is None and names != [TEST]:  # the sample has no other list
        used = ", ".join(f"{one.file.name} of {one.file.parent.name}" for one in lists)
        log.warning("the papers' list %s is not everywhere: tested is %s", TEST, used)
    dataset = join(
        opened,
        rows,
        [np.zeros(len(own), int) for own in rows],  # no pair is told by its image
        [one.sha256 for one in lists],
        variant="" if names == [TEST] else "@" + "+".join(n.removesuffix(".txt") for n in names),
    )
    tasks = {}
    start = 0
    for scene, one, own in zip(opened.scenes, lists, rows, strict=True):
        a, b = (start + np.searchsorted(own, patch) for patch in (one.a, one.b))
        tasks[scene.name] = _Task(a, b, one.match, scene.point[one.a])
        start += len(own)
    return Protocol(
        "phototour" if fpr95 == "tie-aware" else f"phototour+{fpr95}-fpr95",
        VERSION,
        dataset,
        lambda described: _score(tasks, described, fpr95),
        headline="mean/fpr95",
        cells=cells(opened),
    )


@dataclass(frozen=True, eq=False)
class _Task:
    a: Rows  # in the data set
    b: Rows
    match: Match
    point: Rows  # that the first patch of each pair shows


def _score(tasks: Mapping[str, _Task], described: Descriptions, variant: str) -> Scores:
    def judge(number: int) -> tuple[dict[str, float], Draws | None]:
        task = list(tasks.values())[number]
        return _judged(task, described.paired(task.a, task.b), variant, number)

    found = dict(zip(tasks, parallel.each(judge, range(len(tasks))), strict=True))
    return scores(
        {scene: values for scene, (values, _) in found.items()},
        METRICS,
        {"fpr95": [drawn for _, drawn in found.values()]},
    )


def _judged(
    task: _Task, distance: Distances, variant: str, seed: int
) -> tuple[dict[str, float], Draws | None]:
    ranking = rank(task.match, distance)
    values = {
        "fpr95": float(FPR95[variant](ranking, task.match, distance)),
        "ap": float(average_precision(ranking)),
        "auc": float(roc_auc(ranking)),
    }
    share = np.array(RECALLS) / 100
    wrong, right = roc_curve(ranking)
    recall, precision = precision_recall_curve(ranking)
    for name, x, y in (("fpr", right, wrong), ("precision", recall, precision)):
        at = y[np.searchsorted(x, share)]
        values |= {f"{name}@{r}": v for r, v in zip(RECALLS, at.tolist(), strict=True)}
    drawn = _drawn(task, distance, seed)
    if drawn is not None:  # drawn tie-aware, shifted to the variant's value
        drawn = np.clip(drawn + (values["fpr95"] - fpr_at_95(ranking)), 0, 1)
    return values, drawn


def _drawn(task: _Task, distance: Distances, seed: int) -> Draws | None:
    """FPR95 when points are drawn again, each with the pairs whose first patch shows it."""
    names, point = np.unique(task.point, return_inverse=True)
    if len(names) < 2:
        return None
    positive, negative = (np.flatnonzero(kind) for kind in (task.match, ~task.match))
    positive, negative = (rows[np.argsort(distance[rows])] for rows in (positive, negative))
    accepted = np.searchsorted(distance[negative], distance[positive], side="right")
    rng = np.random.default_rng((0, seed))
    step = max(1, HELD // max(len(names), len(point)))
    parts = [
        _draw(rng, min(step, DRAWS - i), len(names), point[positive], point[negative], accepted)
        for i in range(0, DRAWS, step)
    ]
    return np.concatenate(parts)


def _draw(
    rng: np.random.Generator,
    draws: int,
    points: int,
    positive: Int[np.ndarray, " matches"],
    negative: Int[np.ndarray, " others"],
    accepted: Int[np.ndarray, " matches"],
) -> Float[np.ndarray, " draws"]:
    """Some draws.

    Args:
        rng: gives the points that are drawn.
        draws: how many.
        points: how many there are; each draw takes as many.
        positive: the point of each match, the nearest match first.
        negative: the point of each non-match, the nearest one first.
        accepted: non-matches no farther than each match.
    """
    first = np.arange(draws)[:, None] * points
    chosen = rng.integers(0, points, (draws, points)) + first
    times = np.bincount(chosen.ravel(), minlength=draws * points).reshape(draws, points)
    right = np.cumsum(times[:, positive], axis=1)
    wrong = np.zeros((draws, len(negative) + 1), int)
    np.cumsum(times[:, negative], axis=1, out=wrong[:, 1:])
    at = np.argmax(20 * right >= 19 * right[:, -1:], axis=1)
    rate = wrong[np.arange(draws), accepted[at]] / np.maximum(wrong[:, -1], 1)
    # Without a match, or without anything else, a draw says nothing: as bad as can be.
    return np.where((right[:, -1] > 0) & (wrong[:, -1] > 0), rate, 1.0)
