"""A stricter PhotoTour task: is the match nearer than the nearest non-match in its image?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float

from harness import Descriptions, Protocol, Scores, parallel
from harness.distances import Distance, Proposal
from harness.errors import InputError
from harness.metrics import average_precision, rank_uncertain
from harness.statistics import Interval, interval_of_mean
from harness.types import Rows, Vectors
from protocols.headlines import HEADLINES
from protocols.phototour.reader import Numbers, read_reference_images, sha256
from protocols.phototour.scenes import cells, join, of_scenes, open_scenes, parts, whole

VERSION = 2  # raised whenever a number could change
FEW = 16  # candidates of a patch, on average: more are measured only if their vectors differ
HELD = 1 << 22  # distances held in memory at a time by each core
METRIC = "snn-map"


def snn(*, data: Path | None = None, split: str | None = None) -> Protocol:
    """Mean over reference images of the average precision (step) of pairs ranked by ratio.

    The scores are `<scene>/snn-map`; `mean/snn-map` is the mean over scenes. In each reference
    image, a pair is an anchor and its positive: two patches of one point, in both orders. The
    pair's negative is the patch of another point, with the same reference image, that is nearest
    to the anchor. The pair is correct if the positive is nearer to the anchor than the negative.
    Pairs are ranked by d1/d2, the smaller of the two distances divided by the larger; the smallest
    ratio comes first. Recall counts the correct pairs only. Intervals are over reference images.

    If the positive and k patches of other points are equally near, the pair is correct with
    probability 1/(k + 1), and its ratio is 1, even if all these distances are 0. An image without a
    correct pair scores 0. Images without a pair or without a negative are left out.

    The task is that of brown_phototour_revisited ("mAP by SNN ratio") without the faults of its
    code, so the numbers differ. That code searches the nearest negative only in images of more than
    1,000 patches, and there only for whole batches of 128 anchors; for all other anchors, the
    negative is the image's first patch, even if it shows the anchor's point. It counts ties as
    correct, so a constant descriptor gets the best score. On one of its paths, the distances of
    binary descriptors to negatives are Euclidean, not Hamming.

    Args:
        data: a folder of scene folders in the official format, each with interest.txt.
        split: scenes to test, joined by "+"; None: all, except that of liberty and liberty_harris
            (one place, two detectors) only the first is tested.
    """
    opened = open_scenes(data, split)
    images = [read_reference_images(scene) for scene in opened.scenes]
    for scene, image in zip(opened.scenes, images, strict=True):
        if not len(_groups(scene.point, image)):
            raise InputError(
                f"{scene.folder}: no reference image of interest.txt has two patches of one point"
                " and a patch of another point; the first column should say in which image the"
                " point was found, not the patch"
            )
    dataset = join(
        opened,
        [np.arange(len(scene)) for scene in opened.scenes],
        images,
        [sha256(scene.point, image) for scene, image in zip(opened.scenes, images, strict=True)],
    )
    of_scene = {}
    start = 0
    for scene, image in zip(opened.scenes, images, strict=True):
        of_scene[scene.name] = range(start, start + len(np.unique(image)))
        start = of_scene[scene.name].stop
    sizes = {scene.name: len(scene) for scene in opened.scenes}
    scenes = parts(
        dataset, sizes, (METRIC,), lambda described, names: _score(of_scene, described, names)
    )
    return Protocol(
        "phototour/snn",
        VERSION,
        dataset,
        lambda described: whole(scenes, described),
        headline=HEADLINES["phototour/snn"],
        cells=cells(opened),
        parts=scenes,
    )


def _score(of_scene: Mapping[str, range], described: Descriptions, names: Sequence[str]) -> Scores:
    """The numbers of some scenes; the number of an image tells its scene."""
    point, image = described.dataset.point, described.dataset.image
    wanted = {number for name in names for number in of_scene[name]}
    groups = [rows for rows in _groups(point, image) if image[rows[0]] in wanted]

    def scored(rows: Rows) -> float:
        return _average_precision(described.vectors[rows], point[rows], described.distance)

    precision = np.array(parallel.each(scored, groups))
    number = np.array([image[rows[0]] for rows in groups])
    means: dict[str, dict[str, float]] = {}
    intervals: dict[str, Interval | None] = {}
    for scene in names:
        numbers = of_scene[scene]
        of_images = precision[(number >= numbers.start) & (number < numbers.stop)]
        means[scene] = {METRIC: float(of_images.mean())}
        intervals[f"{scene}/{METRIC}"] = interval_of_mean(of_images.tolist())
    return of_scenes(means, (METRIC,), intervals)


def _groups(point: Rows, image: Rows) -> list[Numbers]:
    """Rows of each image that has two patches of one point, and a patch of another point."""
    order = np.argsort(image, kind="stable")
    starts = np.flatnonzero(np.diff(image[order], prepend=image[order[0]] - 1))
    groups = np.split(order, starts[1:])
    return [rows for rows in groups if 1 < len(np.unique(point[rows])) < len(rows)]


def _average_precision(vectors: Vectors, point: Rows, distance: Distance) -> float:
    """Average precision of all pairs of one image."""
    step = max(1, HELD // len(point))
    search = _Search(vectors, distance)
    parts = [_pairs(search, point, slice(i, i + step)) for i in range(0, len(point), step)]
    ratio, chance = (np.concatenate(part) for part in zip(*parts, strict=True))
    correct = float(chance.sum())
    if not correct:
        return 0.0
    ranking = replace(rank_uncertain(chance, ratio, len(ratio)), matches=correct)
    return float(average_precision(ranking))


@dataclass(frozen=True, eq=False)
class _Search:
    """A search among the vectors of one image."""

    vectors: Vectors
    distance: Distance

    def candidates(
        self, rows: Numbers, same: Bool[np.ndarray, "rows n"]
    ) -> tuple[Numbers, Numbers]:
        """Pairs of a place in `rows` and a vector: all vectors that may be nearest to the row.

        Vectors that `same` marks are left out.
        """
        entries = self.propose(self.vectors[rows])
        entries[same] = np.inf
        reach = self.distance.rounding(self.vectors)
        return _true(entries <= (entries.min(axis=1) + reach)[:, None])

    def measured(self, a: Rows, b: Rows) -> Float[np.ndarray, " m"]:
        """Exact distances of pairs; if there are very many, equal vectors are not measured."""
        if len(a) <= FEW * len(self.vectors):
            return self.distance.paired(self.vectors, a, b)
        unequal = self.value[a] != self.value[b]
        found = np.zeros(len(a))
        found[unequal] = self.distance.paired(self.vectors, a[unequal], b[unequal])
        return found

    @cached_property
    def propose(self) -> Proposal:
        """Rounded distances of some vectors to all."""
        return self.distance.propose(self.vectors)

    @cached_property
    def value(self) -> Rows:
        """Numbers of the vectors; equal vectors have equal numbers."""
        return np.unique(self.vectors, axis=0, return_inverse=True)[1]


def _pairs(
    search: _Search, point: Rows, anchors: slice
) -> tuple[Float[np.ndarray, " pairs"], Float[np.ndarray, " pairs"]]:
    """The ratio of each pair of some anchors, and the probability that the pair is correct."""
    rows = np.arange(len(point))[anchors]
    same = point[rows, None] == point
    anchor, negative = search.candidates(rows, same)
    measured = search.measured(rows[anchor], negative)
    hardest = np.full(len(rows), np.inf)
    np.minimum.at(hardest, anchor, measured)
    tied = np.bincount(anchor[measured == hardest[anchor]], minlength=len(rows))
    same[np.arange(len(rows)), rows] = False
    anchor, positive = _true(same)
    d = search.distance.paired(search.vectors, rows[anchor], positive)
    other = hardest[anchor]
    farther = np.maximum(d, other)
    # L2 distances are squared, and so is the ratio: the order is the same. 0/0 is a tie: 1.
    ratio = np.divide(np.minimum(d, other), farther, out=np.ones(len(d)), where=farther > 0)
    return ratio, np.where(d < other, 1.0, np.where(d == other, 1 / (tied[anchor] + 1), 0.0))


def _true(entries: Bool[np.ndarray, "rows n"]) -> tuple[Numbers, Numbers]:
    """`np.nonzero` of a matrix; one search of a flat array is several times faster."""
    row, column = np.divmod(np.flatnonzero(entries), entries.shape[1])
    return row, column
