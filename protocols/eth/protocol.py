"""Structure from motion: the sparse model that COLMAP reconstructs from a descriptor's matches.

J. L. Schönberger, H. Hardmeier, T. Sattler, M. Pollefeys, Comparative evaluation of hand-crafted
and learned local features, CVPR 2017. This is the sparse part; the dense part needs CUDA and is
not implemented.
"""

import hashlib
import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np

from harness import Block, Dataset, Descriptions, Parts, Protocol, Quantity, Scores, parallel
from harness.distances import Distance
from harness.errors import FileInTheWayError, InputError
from harness.files import atomic
from harness.statistics import COVERED
from harness.types import Patches, Rows, Vectors
from protocols.colmap.mapping import quiet
from protocols.eth import files as official
from protocols.eth.keypoints import table_of
from protocols.eth.matching import RATIO, axes, match, numbers_of
from protocols.eth.pairs import ImagePairs, pairs
from protocols.eth.sample import sample
from protocols.eth.scenes import TOTAL, ImageScene, ImageScenes, open_scenes
from protocols.eth.structure import Matched, reconstruct
from protocols.headlines import HEADLINES
from protocols.imaging.affine import AffineFrames
from protocols.imaging.grey import read_grey
from protocols.imaging.keypoint_patches import EXTENT, SIDE, SMOOTHING, KeypointCut
from protocols.naming import unusual

VERSION = 2  # raised whenever a number could change
PATCHES = 1  # raised whenever a patch could change: part of the hash of its block

QUANTITIES = {
    "registered": Quantity(decimals=0),
    "points": Quantity(decimals=0),
    "observations": Quantity(decimals=0),
    "track_length": Quantity(decimals=3),
    "observations_per_image": Quantity(decimals=1),
    "reprojection_error_px": Quantity(decimals=3, lower_is_better=True),
    "inlier_pairs": Quantity(decimals=0),
    "inlier_matches": Quantity(decimals=0),
    "position_error_m": Quantity(decimals=4, lower_is_better=True),
    "rotation_error_deg": Quantity(decimals=3, lower_is_better=True),
    "images": Quantity(decimals=0),  # from here on: only in the breakdown of a scene
    "keypoints": Quantity(decimals=0),
    "pairs": Quantity(decimals=0),
    "matched_pairs": Quantity(decimals=0),
    "matches": Quantity(decimals=0),
}
USUAL = {
    "ratio": RATIO,
    "repeats": 1,
    "side": SIDE,
    "extent": EXTENT,
    "smoothing": SMOOTHING,
}
SUMMED = ("registered", "points", "observations")
FEW = 15  # images; with fewer, the seed decides whether a run registers nearly all or only two
TOLD = 20  # pairs of images; matching this many takes long enough for a log message

T = TypeVar("T")

log = logging.getLogger(__name__)


def eth(
    *,
    data: Path | None = None,
    split: str | None = None,
    keypoints: str | None = None,
    side: int = SIDE,
    extent: float = EXTENT,
    smoothing: float = SMOOTHING,
    ratio: float = RATIO,
    repeats: int = 1,
    files: Path | None = None,
) -> Protocol:
    """Size and error of the sparse model that COLMAP makes from a descriptor's matches.

    Scores of each scene: `<scene>/registered` images, `points`, their `observations`,
    `track_length` (observations per point), `observations_per_image` (per registered image),
    `reprojection_error_px` (the mean over points of each point's mean error), and `inlier_pairs`
    and `inlier_matches` of geometric verification. If the cameras are known, there are also
    `position_error_m` and `rotation_error_deg`; see `truth.errors`. If COLMAP makes no model, the
    scores that need one are left out. `total/...` are sums over scenes.

    COLMAP verifies and maps with its default options and a fixed seed. Cameras come from the
    scene's database; if there is none, from the known intrinsics; if there are none, each image
    gets a camera of its own from its EXIF data or by a guess.

    Two mistakes of the official scripts are not repeated. Official keypoints count pixels from 0,
    but the scripts give them unchanged to VLFeat, which counts from 1, and to COLMAP, whose
    coordinates are larger by half a pixel.

    Args:
        data: a folder of scene folders in the official layout, or one scene; see `scenes`.
        split: scenes to test, joined by "+"; None: all.
        keypoints: "official", "database" or "sift" (COLMAP's detector); None: the official
            keypoints if a scene has them, otherwise SIFT's.
        side: side of a patch, in pixels.
        extent: from the middle of a patch to the centres of its outermost pixels, in scales of the
            keypoint.
        smoothing: blur of a patch, in scales of the keypoint. The defaults of `side`, `extent` and
            `smoothing` give the patches that VLFeat made for the published rows.
        ratio: largest accepted ratio of the distances to the nearest and second-nearest keypoint.
        repeats: runs of COLMAP, with the seeds 0, 1, ...; scores are means, and intervals hold the
            middle 95 % of runs (with few runs, nearly all). If there is one run and a scene has
            fewer than 15 images, the record and its tables carry a warning.
        files: a new folder for keypoints, descriptors and matches in the official formats, which
            the original pipeline can read; only with one model.
    """
    if repeats < 1:
        raise InputError(f"repeats {repeats}: it must be at least 1")
    if not 0 < ratio <= 1:
        raise InputError(f"ratio {ratio}: it must be above 0 and at most 1 (1 accepts all)")
    if files is not None:
        _must_be_free(files)
    cut = _Cut(side=side, extent=extent, smoothing=smoothing)
    opened = open_scenes(sample() if data is None else data, split, keypoints)
    listed = [pairs(scene.images, scene.names, scene.sha256) for scene in opened.scenes]

    def score(described: Descriptions, names: Sequence[str]) -> Scores:
        return _score(opened.scenes, listed, described, names, ratio, repeats, files)

    names = tuple(scene.name for scene in opened.scenes)
    return Protocol(
        "eth",
        VERSION,
        _dataset(opened, listed, cut),
        lambda described: score(described, names),
        headline=HEADLINES["eth"],
        quantities=QUANTITIES,
        libraries=("pycolmap",),
        options=unusual(USUAL, ratio=float(ratio), repeats=repeats, **vars(cut)),
        parts=Parts(
            names,
            partial(_rows, opened.scenes),
            lambda described, some: _without_total(score(described, some)),
            partial(_sum_up, names),
            sums_intervals=repeats == 1,  # those of totals are of the runs of all scenes together
        ),
    )


def _must_be_free(files: Path) -> None:
    try:
        atomic.must_be_free(files)
    except FileExistsError as error:
        raise FileInTheWayError(f"{error}, by --set files=DIR; only with one model") from error


class _Cut(KeypointCut):
    """How patches are cut; the name is part of the hash of a block."""

    def of_file(self, image: Path, frames: AffineFrames) -> Patches:
        """One patch for each keypoint of an image, in order."""
        return self.patches(read_grey(image).astype(np.float32), frames)


def _dataset(opened: ImageScenes, listed: Sequence[ImagePairs], cut: _Cut) -> Dataset:
    """The data set of all scenes; one block per image, so that few images are held at a time."""
    blocks, points, truth = [], [], hashlib.sha256()
    start = 0
    for scene, wanted in zip(opened.scenes, listed, strict=True):
        for name, sha256, frames in zip(scene.names, scene.sha256, scene.frames, strict=True):
            blocks.append(_block(f"{scene.name}/{name}", scene.images / name, sha256, frames, cut))
        sizes = sum(map(len, scene.frames))
        point = np.arange(sizes) if scene.points is None else np.concatenate(scene.points)
        points.append(start + point)
        start += int(point.max(initial=-1)) + 1
        truth.update(repr((scene.name, scene.evidence, wanted)).encode())
    return Dataset(
        opened.name,
        opened.split,
        tuple(blocks),
        np.concatenate(points),
        np.repeat(np.arange(len(blocks)), [block.size for block in blocks]),
        truth=truth.hexdigest(),
        sources=frozenset(f"eth/{scene.name}" for scene in opened.scenes),
        unchecked=opened.unchecked,
    )


def _block(name: str, image: Path, sha256: str, frames: AffineFrames, cut: _Cut) -> Block:
    digest = hashlib.sha256(f"{PATCHES} {sha256} {cut}".encode())
    for numbers in (frames.x, frames.y, frames.matrix):
        digest.update(np.ascontiguousarray(numbers, "<f8").tobytes())
    return Block(name, len(frames), digest.hexdigest(), lambda: cut.of_file(image, frames))


def _rows(scenes: Sequence[ImageScene], name: str) -> Rows:
    """Rows of all keypoints of a scene."""
    sizes = {scene.name: sum(map(len, scene.frames)) for scene in scenes}
    before = [scene.name for scene in scenes].index(name)
    start = sum(list(sizes.values())[:before])
    return np.arange(start, start + sizes[name])


def _without_total(scores: Scores) -> Scores:
    """The scores of single scenes."""

    def of_scenes(scored: Mapping[str, T]) -> dict[str, T]:
        return {name: x for name, x in scored.items() if name.partition("/")[0] != TOTAL}

    return replace(scores, values=of_scenes(scores.values), intervals=of_scenes(scores.intervals))


def _sum_up(names: Sequence[str], scored: Scores) -> Scores:
    """The totals over scenes: the mean of a sum is the sum of means."""
    return Scores(
        {
            f"{TOTAL}/{name}": sum(scored.values[f"{scene}/{name}"] for scene in names)
            for name in SUMMED
        }
    )


def _score(
    all_scenes: Sequence[ImageScene],
    all_listed: Sequence[ImagePairs],
    described: Descriptions,
    names: Collection[str],
    ratio: float,
    repeats: int,
    files: Path | None,
) -> Scores:
    """The scores of some scenes, and their sums."""
    each = zip(all_scenes, all_listed, _by_image(all_scenes, described), strict=True)
    chosen = [three for three in each if three[0].name in names]
    scenes, listed, vectors = (list(one) for one in zip(*chosen, strict=True))
    matched = []
    for scene, wanted, of_images in zip(scenes, listed, vectors, strict=True):
        if len(wanted) >= TOLD:
            log.info("%s: matching %d pairs of images", scene.name, len(wanted))
        matched.append(_matched(of_images, wanted, described.distance, ratio))
    if files is not None:
        _write(files, scenes, vectors, matched, described.distance)
    jobs = [(*job, seed) for job in zip(scenes, matched, strict=True) for seed in range(repeats)]
    with quiet(failures=False):
        runs = parallel.each(lambda job: reconstruct(*job), jobs)
    of_scenes = {
        scene.name: runs[i * repeats : (i + 1) * repeats] for i, scene in enumerate(scenes)
    }
    values, intervals = _summed_up(of_scenes)
    breakdowns = {
        scene.name: _breakdown(scene, m) for scene, m in zip(scenes, matched, strict=True)
    }
    return Scores(values, breakdowns, intervals, tuple(_warnings(scenes, of_scenes)))


def _warnings(
    scenes: Sequence[ImageScene], of_scenes: Mapping[str, Sequence[Mapping[str, float]]]
) -> Iterator[str]:
    few = [f"{scene.name} ({len(scene)})" for scene in scenes if len(scene) < FEW]
    if few and len(next(iter(of_scenes.values()))) == 1:
        yield (
            f"Fewer than {FEW} images, mapped by one run of COLMAP: {', '.join(few)}. Another seed"
            " may register many more of them, or many fewer; --set repeats=5 measures how much the"
            " runs differ."
        )
    for scene in scenes:
        failed = sum(not run["registered"] for run in of_scenes[scene.name])
        if failed:
            yield (
                f"COLMAP registered none of the {len(scene)} images of {scene.name} in {failed} of"
                f" {len(of_scenes[scene.name])} runs."
            )


def _by_image(scenes: Sequence[ImageScene], described: Descriptions) -> list[list[Vectors]]:
    sizes = [len(frames) for scene in scenes for frames in scene.frames]
    parts = iter(np.split(described.vectors, np.cumsum(sizes)[:-1]))
    return [[next(parts) for _ in scene.frames] for scene in scenes]


def _matched(
    vectors: Sequence[Vectors], wanted: ImagePairs, distance: Distance, ratio: float
) -> Matched:
    by = axes(vectors, distance)
    matches = parallel.each(lambda p: match(vectors[p[0]], vectors[p[1]], by, ratio), wanted)
    return dict(zip(wanted, matches, strict=True))


def _summed_up(
    of_scenes: Mapping[str, Sequence[Mapping[str, float]]],
) -> tuple[dict[str, float], dict[str, tuple[float, float]]]:
    """Means over runs and intervals of the middle 95 % of runs, by scene and for the total."""
    runs = dict(of_scenes)
    runs[TOTAL] = [
        {name: sum(run[name] for run in together) for name in SUMMED}
        for together in zip(*of_scenes.values(), strict=True)
    ]
    values, intervals = {}, {}
    for scene, of_scene in runs.items():
        for name in set.intersection(*map(set, of_scene)):  # scores that every run defines
            numbers = [run[name] for run in of_scene]
            values[f"{scene}/{name}"] = float(np.mean(numbers))
            if len(numbers) > 1:
                tails = [(1 - COVERED) / 2, (1 + COVERED) / 2]
                low, high = np.quantile(numbers, tails).tolist()
                intervals[f"{scene}/{name}"] = (low, high)
    return values, intervals


def _breakdown(scene: ImageScene, matched: Matched) -> dict[str, float]:
    counts = [len(matches) for matches in matched.values()]
    return {
        "images": float(len(scene)),
        "keypoints": float(sum(map(len, scene.frames))),
        "pairs": float(len(matched)),
        "matched_pairs": float(np.count_nonzero(counts)),
        "matches": float(sum(counts)),
    }


def _write(
    folder: Path,
    scenes: Sequence[ImageScene],
    vectors: Sequence[Sequence[Vectors]],
    matched: Sequence[Matched],
    distance: Distance,
) -> None:
    """Write keypoints, descriptors and matches in the official formats, scene by scene."""
    _must_be_free(folder)  # another model of this evaluation may have written it
    with atomic.placing(folder) as unfinished:
        for scene, of_images, pairs in zip(scenes, vectors, matched, strict=True):
            root = unfinished / scene.name
            for name, frames, rows in zip(scene.names, scene.frames, of_images, strict=True):
                numbers = numbers_of(rows, distance)
                official.write_keypoints(root / f"keypoints/{name}.bin", table_of(frames))
                official.write_descriptors(root / f"descriptors/{name}.bin", numbers)
            for (a, b), matches in pairs.items():
                file = f"{scene.names[a]}---{scene.names[b]}.bin"
                official.write_matches(root / f"matches/{file}", matches)
