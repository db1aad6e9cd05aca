"""PhotoTour patch verification: do two patches show the same 3-D point? FPR95 of each scene."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float64

from harness import Descriptions, Protocol, Scores, parallel
from harness.errors import InputError
from harness.metrics import (
    Ranking,
    average_precision,
    fpr_at_95,
    precision_recall_curve,
    rank,
    roc_auc,
    roc_curve,
)
from harness.statistics import Interval
from harness.types import Rows
from protocols.headlines import HEADLINES
from protocols.naming import unusual
from protocols.phototour.fpr95 import fpr_at_95_hardnet, fpr_at_95_tian
from protocols.phototour.fpr95_interval import interval_of_fpr95
from protocols.phototour.reader import TEST, read_pairs
from protocols.phototour.scenes import cells, join, of_scenes, open_scenes, parts, whole

VERSION = 2  # raised whenever a number could change

Match = Bool[np.ndarray, " m"]
Distances = Float64[np.ndarray, " m"]

FPR95: Mapping[str, Callable[[Ranking, Match, Distances], float]] = {
    "tie-aware": lambda ranking, match, distance: fpr_at_95(ranking),
    "hardnet": lambda ranking, match, distance: fpr_at_95_hardnet(match, distance),
    "tian": lambda ranking, match, distance: fpr_at_95_tian(ranking),
}

METRICS = ("fpr95", "ap", "auc")
RECALLS = (*range(5, 100, 5), 99, 100)  # percent: the points of the curves that records keep

log = logging.getLogger(__name__)


def phototour(
    *,
    data: Path | None = None,
    split: str | None = None,
    pairs: str | None = None,
    fpr95: str = "tie-aware",
) -> Protocol:
    """False positive rate at 95 % recall over each scene's list of pairs, and its mean over scenes.

    The scores are `<scene>/fpr95`, `<scene>/ap` (step sum) and `<scene>/auc` (ROC), and their means
    `mean/...`. Only patches in the pairs are described, each of them once. A model that was
    trained on a scene gets no score on that scene, and then no mean.

    FPR95 is the share of non-matches that are accepted by the smallest threshold that accepts 95 %
    of the matches; tied pairs are accepted together. "hardnet" and "tian" are two published
    variants; see `fpr95`. The interval of FPR95 is over 3-D points; see `fpr95_interval`. The
    intervals of the variants use the variance of the tie-aware FPR95. Breakdowns hold both curves:
    `fpr@<recall>` and `precision@<recall>`, with recall in percent, at the smallest threshold that
    reaches the recall.

    Args:
        data: a folder of scene folders in the official format, or one scene.
        split: scenes to test, joined by "+"; None: all, except that of liberty and liberty_harris
            (one place, two detectors) only the first is tested.
        pairs: name of the file with the list of pairs; None: the papers' list or, if a scene lacks
            it, the scene's largest list. If the list is not the papers', the split gets another
            name.
        fpr95: variant of FPR95: "tie-aware", "hardnet" or "tian".
    """
    if fpr95 not in FPR95:
        raise InputError(f"fpr95 may be {', '.join(FPR95)}, not {fpr95!r}")
    opened = open_scenes(data, split)
    lists = [read_pairs(scene, pairs) for scene in opened.scenes]
    rows = [np.unique(np.concatenate([listed.a, listed.b])) for listed in lists]
    names = list(dict.fromkeys(listed.file.name for listed in lists))
    if data is not None and pairs is None and names != [TEST]:  # the sample has no other list
        used = ", ".join(f"{listed.file.name} of {listed.file.parent.name}" for listed in lists)
        log.warning("not every scene has the papers' list %s; the test uses %s", TEST, used)
    dataset = join(
        opened,
        rows,
        [np.zeros(len(of_scene), int) for of_scene in rows],  # the task does not use images
        [listed.sha256 for listed in lists],
        lists=() if names == [TEST] else [name.removesuffix(".txt") for name in names],
    )
    tasks: dict[str, _Task] = {}
    start = 0
    for scene, listed, of_scene in zip(opened.scenes, lists, rows, strict=True):
        a, b = (start + np.searchsorted(of_scene, patch) for patch in (listed.a, listed.b))
        tasks[scene.name] = _Task(a, b, listed.match)
        start += len(of_scene)
    sizes = dict(zip(tasks, map(len, rows), strict=True))
    scenes = parts(
        dataset, sizes, METRICS, lambda described, names: _score(tasks, described, fpr95, names)
    )
    return Protocol(
        "phototour",
        VERSION,
        dataset,
        lambda described: whole(scenes, described),
        headline=HEADLINES["phototour"],
        cells=cells(opened),
        options=unusual({"fpr95": "tie-aware"}, fpr95=fpr95),
        parts=scenes,
    )


@dataclass(frozen=True, eq=False)
class _Task:
    """The pairs of one scene."""

    a: Rows  # in the data set
    b: Rows
    match: Match


def _score(
    tasks: Mapping[str, _Task], described: Descriptions, variant: str, names: Sequence[str]
) -> Scores:
    """The numbers of some scenes."""
    point = described.dataset.point

    def judge(task: _Task) -> tuple[dict[str, float], Interval | None]:
        distance = described.paired(task.a, task.b)
        values = _judged(task.match, distance, variant)
        return values, interval_of_fpr95(
            values["fpr95"], task.match, distance, point[task.a], point[task.b]
        )

    each = parallel.each(judge, [tasks[name] for name in names])
    judged = dict(zip(names, each, strict=True))
    return of_scenes(
        {scene: values for scene, (values, _) in judged.items()},
        METRICS,
        {f"{scene}/fpr95": interval for scene, (_, interval) in judged.items()},
    )


def _judged(match: Match, distance: Distances, variant: str) -> dict[str, float]:
    ranking = rank(match, distance)
    values = {
        "fpr95": float(FPR95[variant](ranking, match, distance)),
        "ap": float(average_precision(ranking)),
        "auc": float(roc_auc(ranking)),
    }
    share = np.array(RECALLS) / 100
    wrong, right = roc_curve(ranking)
    recall, precision = precision_recall_curve(ranking)
    for name, x, y in (("fpr", right, wrong), ("precision", recall, precision)):
        at = y[np.searchsorted(x, share)]
        values |= {f"{name}@{r}": v for r, v in zip(RECALLS, at.tolist(), strict=True)}
    return values
