"""Accuracy of matches, and of the homography that RANSAC finds from them.

Mean matching accuracy is that of D2-Net's benchmark (Dusmanu and others, CVPR 2019), homography
accuracy that of SuperPoint (DeTone and others, CVPRW 2018). Both papers compare detectors, too;
here all descriptors have the same keypoints.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from harness import Descriptions, Parts, Protocol, Quantity, Scores, parallel
from harness.distances import Distance
from harness.errors import InputError
from harness.statistics import interval_of_mean
from harness.types import Rows, Vectors
from protocols.headlines import HEADLINES
from protocols.hpatches_sequences.homography import (
    Ransac,
    corner_error,
    estimate,
    transfer_errors,
)
from protocols.hpatches_sequences.images import OPENCV
from protocols.hpatches_sequences.matching import mutual
from protocols.hpatches_sequences.names import from_name
from protocols.hpatches_sequences.reader import ImagePair, open_set
from protocols.hpatches_sequences.sample import sample
from protocols.imaging.keypoint_patches import EXTENT, KeypointCut
from protocols.imaging.sift import DETECTOR
from protocols.naming import unusual

VERSION = 3  # raised whenever a number could change
KEYPOINTS = 2000  # most keypoints of an image
MATCHED = range(1, 11)  # pixels: a match is right if it is no farther off
ESTIMATED = (1, 3, 5)  # pixels: a homography is right if its corners are no farther off
USUAL = {"extent": EXTENT, "ransac": 3.0, "seeds": 5}
SCORES = (
    *(f"mma-{t}px" for t in MATCHED),
    *(f"homography-{t}px" for t in ESTIMATED),
    *(f"auc-{t}px" for t in ESTIMATED),
)
COUNT = "correct-3px"
QUANTITIES = {
    COUNT: Quantity(0),
    "matches": Quantity(0),
    "corner_error_px": Quantity(2, lower_is_better=True),
}
PARTS = {"illumination": "i_", "viewpoint": "v_"}  # beginnings of the names of sequences
UNSTEADY = {
    **{name: 0.25 for name in SCORES if not name.startswith("mma")},
    "corner_error_px": np.inf,  # of a wrong homography
}
"""Largest difference between machines in a sequence: twice the largest that was seen (0.12, when
keypoints differed by 1e-5 pixels). After one other match, RANSAC finds another homography."""
FARTHEST = 1e6  # pixels: a wrong homography may map a corner nearly to infinity
OF_PAIR = ("mma-3px", *QUANTITIES)  # in the breakdown of each pair


def hpatches_sequences(
    *,
    data: Path | None = None,
    split: str | None = None,
    keypoints: int = KEYPOINTS,
    size: int | None = None,
    extent: float = EXTENT,
    ransac: float = USUAL["ransac"],
    seeds: int = int(USUAL["seeds"]),
) -> Protocol:
    """Mean matching accuracy at 3 pixels over all pairs of images: `mma-3px`.

    The same SIFT keypoints of image 1 and of each other image are matched by every descriptor:
    mutual nearest neighbours. A score of a pair is:

    - `mma-1px` to `mma-10px`: the share of its matches whose keypoint of image 1, mapped by the
      true homography, is at most so many pixels from the matched keypoint; 0 without a match.
    - `correct-3px`: the number of its matches that are right at 3 pixels. A score of `mma` says how
      many of the matches are right, and not how many right matches there are.
    - `homography-1px`, `-3px`, `-5px`: whether the homography that RANSAC finds from the matches
      maps the four corners of image 1 at most so many pixels away from their true places, in the
      mean over the corners; the mean over the seeds of RANSAC. 0 if it finds none.
    - `auc-1px`, `-3px`, `-5px`: the area below the share of homographies whose error is at most e,
      for e from 0 to so many pixels t, over t. That is the mean of max(0, 1 - error / t). Papers
      join the steps of that share by lines, which adds at most half a pair: 1 / (2 pairs).

    `mma-3px` is the mean over all pairs, as papers give it; `sequences/mma-3px` is the mean over
    sequences of the mean over a sequence's pairs. The two differ only where sequences differ in
    their numbers of images. `illumination/mma-3px` and `viewpoint/mma-3px` are means over the pairs
    of the sequences whose names begin with i_ or v_. No pair is ever left out.

    Args:
        data: folder of sequences; None: the sample.
        split: "full", or "d2-net" for the 108 sequences of HPatches that D2-Net's benchmark tests.
            As records name it, it tells `keypoints` and `size`, too: "full-2000-480px".
        keypoints: most keypoints of an image, the strongest.
        size: the shorter side of all images, in pixels; they are resized, and all errors are in
            pixels of the resized images. None leaves images as they are.
        extent: from the middle of a patch to the centres of its outermost pixels, in scales of the
            keypoint.
        ransac: largest error of RANSAC's inliers, pixels.
        seeds: RANSAC is repeated with the seeds 0, 1, ... below this number.
    """
    if not 0 < ransac < np.inf or seeds < 1:
        raise InputError(
            f"ransac={ransac:g}, seeds={seeds}: ransac must be above 0, and seeds at least 1"
        )
    cut = KeypointCut(extent=float(extent))
    split, keypoints, size = _numbers(split, keypoints, size)
    root = sample() if data is None else data
    opened = open_set(root, split, keypoints=keypoints, size=size, cut=cut)
    how = Ransac(float(ransac), seeds)
    scenes = tuple(dict.fromkeys(pair.scene for pair in opened.pairs))

    def alone(described: Descriptions, names: Sequence[str]) -> Scores:
        return Scores({}, _scenes([p for p in opened.pairs if p.scene in names], described, how))

    return Protocol(
        "hpatches-sequences",
        VERSION,
        opened.dataset,
        lambda described: _score(opened.pairs, described, how),
        headline=HEADLINES["hpatches-sequences"],
        quantities=QUANTITIES,
        libraries=(OPENCV,),
        options=unusual(USUAL, extent=cut.extent, ransac=float(ransac), seeds=seeds),
        best_unknown=frozenset(SCORES),
        unsteady=UNSTEADY,
        settings={
            "keypoints": DETECTOR,
            "patches": f"side {cut.side} px, extent {cut.extent:g}, smoothing {cut.smoothing:g}",
            "ransac": str(how),
        },
        parts=Parts(
            scenes,
            partial(_rows, opened.pairs),
            alone,
            lambda found: replace(_sum_up(opened.pairs, found.scenes), scenes={}),
        ),
    )


def _numbers(
    split: str | None, keypoints: int, size: int | None
) -> tuple[str | None, int, int | None]:
    """The split, keypoints and size that are meant, if the split has a record's name."""
    plain, told, pixels = from_name(split)
    if told is None:
        return split, keypoints, size
    if keypoints not in (KEYPOINTS, told) or size not in (None, pixels):
        raise InputError(
            f"split {split}: it is of {told} keypoints and of the size {pixels or 'none'}, but"
            f" keypoints={keypoints}, size={size or 'none'} are given: leave one out"
        )
    return plain, told, pixels


def _rows(pairs: Sequence[ImagePair], scene: str) -> Rows:
    """Rows of all keypoints of a sequence."""
    ends = [(one.start, one.stop) for pair in pairs if pair.scene == scene for one in pair.rows]
    return np.arange(min(start for start, _ in ends), max(stop for _, stop in ends))


def _score(pairs: Sequence[ImagePair], described: Descriptions, how: Ransac) -> Scores:
    return _sum_up(pairs, _scenes(pairs, described, how))


def _scenes(
    pairs: Sequence[ImagePair], described: Descriptions, how: Ransac
) -> dict[str, dict[str, float]]:
    """The means of each sequence over its pairs, and the numbers of each pair in OF_PAIR."""

    def scored(pair: ImagePair) -> dict[str, float]:
        a, b = (described.vectors[rows] for rows in pair.rows)
        return pair_scores(described.distance, a, b, pair, how)

    of_scenes: dict[str, dict[int, dict[str, float]]] = defaultdict(dict)
    for pair, of_pair in zip(pairs, parallel.each(scored, pairs), strict=True):
        of_scenes[pair.scene][pair.number] = of_pair
    return {
        scene: {
            name: float(np.mean([one[name] for one in every.values()])) for name in (*SCORES, COUNT)
        }
        | {
            f"1-{number}/{name}": one[name]
            for number, one in every.items()
            for name in OF_PAIR
            if name in one
        }
        for scene, every in of_scenes.items()
    }


def _sum_up(pairs: Sequence[ImagePair], scenes: Mapping[str, Mapping[str, float]]) -> Scores:
    """The means over pairs and over sequences, with intervals over sequences."""
    counts = Counter(pair.scene for pair in pairs)
    values: dict[str, float] = {}
    intervals: dict[str, tuple[float, float]] = {}
    groups = {"": "", "sequences/": "", **{f"{part}/": of for part, of in PARTS.items()}}
    for group, beginning in groups.items():
        chosen = [scene for scene in counts if scene.startswith(beginning)]
        if not chosen:
            continue
        weights = [1 if group == "sequences/" else counts[scene] for scene in chosen]
        for name in SCORES if group == "sequences/" else (*SCORES, COUNT):
            of_each = [scenes[scene][name] for scene in chosen]
            values[group + name] = float(np.average(of_each, weights=weights))
            if name in SCORES and (bounds := interval_of_mean(of_each, weights)):
                intervals[group + name] = bounds
    return Scores(values, scenes, intervals)


def pair_scores(
    distance: Distance, a: Vectors, b: Vectors, pair: ImagePair, how: Ransac
) -> dict[str, float]:
    """Scores of two images, from the vectors of their keypoints.

    Besides SCORES and COUNT, `matches` is the number of matches, and `corner_error_px` the median
    error over the seeds, left out if it is above FARTHEST, or if most seeds find no homography.
    """
    rows, columns = mutual(distance, a, b)
    here, there = pair.places[0][rows], pair.places[1][columns]
    errors = transfer_errors(pair.homography, here, there)
    found = [estimate(here, there, how, seed) for seed in range(how.seeds)]
    corners = np.array([corner_error(one, pair.homography, pair.shape) for one in found])
    scores = {f"mma-{t}px": float(np.mean(errors <= t)) if len(errors) else 0.0 for t in MATCHED}
    scores |= {f"homography-{t}px": float(np.mean(corners <= t)) for t in ESTIMATED}
    scores |= {f"auc-{t}px": float(np.maximum(0, 1 - corners / t).mean()) for t in ESTIMATED}
    scores |= {"matches": float(len(rows)), COUNT: float(np.sum(errors <= 3))}
    middle = float(np.median(corners))
    return scores | ({"corner_error_px": middle} if middle <= FARTHEST else {})
