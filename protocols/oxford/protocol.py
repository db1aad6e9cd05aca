"""Average precision of matching the regions of image 1 with the regions of each other image."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np

from harness import Descriptions, Parts, Protocol, Quantity, Scores, parallel
from harness.distances import Distance
from harness.metrics import (
    Ranking,
    average_precision,
    rank_uncertain,
    step_average_precision,
    trapezoid_average_precision,
)
from harness.statistics import interval_of_mean
from harness.types import Rows, Vectors
from protocols.headlines import HEADLINES
from protocols.naming import plain, unusual
from protocols.oxford import matching
from protocols.oxford.ellipses import exact_overlap
from protocols.oxford.raster import raster_overlap
from protocols.oxford.reader import EIGHT, SIX, Oxford, Plane, open_set
from protocols.oxford.sample import sample
from protocols.oxford.truth import MAGNIFICATION, Truth

VERSION = 5  # raised whenever a number could change
OF_OTHERS = 6  # the version for other sets than the published one: there `map` is of all sequences
FEATURES = 3000  # most regions of an image
MEASURES = {"raster": raster_overlap, "exact": exact_overlap}
STRATEGIES = {
    "greedy": matching.greedy,
    "nearest": matching.nearest,
    "mutual": matching.mutual,
    "ratio": matching.ratio,
}
USUAL = {"frames": None, "magnification": MAGNIFICATION, "matching": "greedy", "overlap": "raster"}
QUANTITIES = {"correct": Quantity(0), "correspondences": Quantity(0)}


def oxford(
    *,
    data: Path | None = None,
    frames: Path | None = None,
    features: int | None = FEATURES,
    magnification: float = MAGNIFICATION,
    matching: Literal["greedy", "nearest", "mutual", "ratio", "threshold"] = "greedy",
    overlap: Literal["raster", "exact"] = "raster",
    allow_partial: bool = False,
) -> Protocol:
    """Mean over pairs of images of average precision (step sum): `map` of the papers' sequences.

    The papers use six sequences; `map8` is the mean over all eight, and `<sequence>/map` is the
    score of one sequence. In other sets, `map` is the mean over all sequences. Regions of image 1
    are matched with the regions of images 2 to 6 one to one, nearest first (VLB's "nn", which is
    not mutual neighbours). A match is right if the regions overlap by more than a half. On the same
    regions and vectors, all numbers equal those of VLB (lenck/vlb) to six digits.

    Args:
        data: folder of sequences; None: the sample.
        frames: folder of regions to use instead of the regions of our own detector.
        features: most regions of an image, the strongest first; none: all regions of a folder.
        magnification: half the side of a patch, in radii of its region.
        matching: "greedy" matches one to one, nearest first; "nearest" matches each region of
            image 1 with its nearest neighbour; "mutual" keeps only mutual nearest neighbours;
            "ratio" ranks the matches of "nearest" by Lowe's ratio; "threshold" accepts every pair
            below a threshold, as VLB's strategy of that name does.
        overlap: "exact" computes the area of the overlap; "raster" counts points, as VLB does.
        allow_partial: score the sequences that are there if published sequences are missing.
    """
    opened = open_set(
        sample() if data is None else data,
        frames=frames,
        features=features,
        magnification=magnification,
        measure=MEASURES[overlap],
        allow_partial=allow_partial,
    )

    def alone(described: Descriptions, names: Sequence[str]) -> Scores:
        return Scores({}, _scenes(opened, described, matching, names))

    return Protocol(
        "oxford",
        VERSION if opened.published else OF_OTHERS,
        opened.dataset,
        lambda described: _score(opened, described, matching),
        headline=HEADLINES["oxford"],
        quantities=QUANTITIES,
        options=unusual(
            USUAL,
            frames=plain(frames) if frames else None,
            magnification=float(magnification),
            matching=matching,
            overlap=overlap,
        ),
        parts=Parts(
            tuple(plane.name for plane in opened.planes),
            partial(_rows, opened),
            alone,
            partial(_sum_up, opened),
        ),
    )


def _rows(opened: Oxford, sequence: str) -> Rows:
    """Rows of all regions of a sequence."""
    (plane,) = (plane for plane in opened.planes if plane.name == sequence)
    return np.concatenate([np.arange(len(opened.dataset))[rows] for rows in plane.rows])


def _score(opened: Oxford, described: Descriptions, strategy: str) -> Scores:
    names = [plane.name for plane in opened.planes]
    scenes = _scenes(opened, described, strategy, names)
    return replace(_sum_up(opened, Scores({}, scenes)), scenes=scenes)


def _scenes(
    opened: Oxford, described: Descriptions, strategy: str, names: Collection[str]
) -> dict[str, dict[str, float]]:
    """The numbers of all pairs of images of some sequences."""
    planes = [plane for plane in opened.planes if plane.name in names]
    pairs = [(plane, k) for plane in planes for k in range(1, len(plane.rows))]

    def scored(pair: tuple[Plane, int]) -> dict[str, float]:
        plane, k = pair
        a, b = (described.vectors[plane.rows[i]] for i in (0, k))
        return pair_scores(described.distance, a, b, plane.truths[k - 1], strategy)

    scenes: dict[str, dict[str, float]] = {plane.name: {} for plane in planes}
    for (plane, k), of_pair in zip(pairs, parallel.each(scored, pairs), strict=True):
        scenes[plane.name] |= {f"1-{k + 1}/{name}": value for name, value in of_pair.items()}
    return scenes


def _sum_up(opened: Oxford, scored: Scores) -> Scores:
    """The mean of each sequence, the means over sequences, and their intervals."""
    maps = {
        plane.name: float(
            np.mean([scored.scenes[plane.name][f"1-{k}/ap"] for k in range(2, len(plane.rows) + 1)])
        )
        for plane in opened.planes
    }
    of_papers = opened.published and set(SIX) <= set(maps)
    groups = {"map": SIX, "map8": EIGHT} if of_papers else {"map": tuple(maps)}
    whole = {name: [maps[s] for s in of] for name, of in groups.items() if set(of) <= set(maps)}
    values = {f"{name}/map": value for name, value in maps.items()}
    values |= {name: float(np.mean(some)) for name, some in whole.items()}
    # A sequence gets no interval: its pairs get harder by design, so they are not a sample.
    intervals = {name: interval_of_mean(some) for name, some in whole.items()}
    known = {name: bounds for name, bounds in intervals.items() if bounds is not None}
    return Scores(values, intervals=known)


def pair_scores(
    distance: Distance, a: Vectors, b: Vectors, truth: Truth, strategy: str
) -> dict[str, float]:
    """Scores of two images, from the vectors of their regions.

    `ap` (step sum) and `auc` (trapezoid) are average precisions, both as in VLB. `correct` is the
    number of correct matches, `correspondences` the number of matches that could be found. A greedy
    match may be correct although it is not the assigned correspondence. So there may be more
    correct matches than correspondences, and then `ap` is above 1.
    """
    if strategy == "threshold":
        ranking = _all_pairs(distance, a, b, truth)
        return {"ap": float(average_precision(ranking)), "correspondences": float(len(truth.a))}
    matches = STRATEGIES[strategy](distance, a, b)
    right = truth.holds(matches)
    one_to_one = strategy in ("greedy", "mutual")
    total = len(truth.assigned) if one_to_one else len(np.unique(truth.a))
    ranked = rank_uncertain(right.astype(float), matches.distance.astype(float), total)
    ranking = replace(ranked, squared_hits=None)  # each match is right or wrong
    return {
        "ap": float(step_average_precision(ranking)),
        "auc": float(trapezoid_average_precision(ranking)),
        "correct": float(np.count_nonzero(right)),
        "correspondences": float(total),
    }


def _all_pairs(distance: Distance, a: Vectors, b: Vectors, truth: Truth) -> Ranking:
    """All pairs of regions, ranked by distance; tied pairs are accepted together."""
    value, below, upto = matching.count_nearer(distance, a, b, truth.a, truth.b)
    first = np.flatnonzero(np.diff(value, prepend=-np.inf))
    hits = np.diff(first, append=len(value)).astype(float)
    return Ranking(
        hits,
        (upto - below)[first].astype(float),
        below[first].astype(float),
        float(len(value)),
        float(len(a) * len(b)),
    )
