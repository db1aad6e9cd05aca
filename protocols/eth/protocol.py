"""Structure from motion: the sparse model that COLMAP reconstructs from a descriptor's matches.

J. L. Schönberger, H. Hardmeier, T. Sattler, M. Pollefeys, Comparative evaluation of hand-crafted
and learned local features, CVPR 2017. This is the sparse part; the dense part needs CUDA and is
not implemented.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from harness import Block, Dataset, Parts, Protocol, Quantity
from harness.errors import InputError
from harness.types import Ahead, Patches
from protocols.eth.matching import RATIO
from protocols.eth.pair_lists import ImagePairs
from protocols.eth.pairs import Choice, chosen, listed
from protocols.eth.sample import sample
from protocols.eth.scenes import ImageScenes, open_scenes
from protocols.eth.scoring import Scoring, must_be_free
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
    pairs: str | Path | None = None,
    neighbours: int | None = None,
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
        pairs: the pairs of images to match: "exhaustive" (all), "vocabulary-tree" (images that
            COLMAP's vocabulary tree finds alike, by SIFT, so the same for every descriptor),
            "retrieval" (images that the descriptor itself finds alike, as `harness colmap --pairs
            retrieval`), or a file of two names of images a line, if one scene is tested. None: all,
            or from 2,000 images on those of the vocabulary tree.
        neighbours: images that each image is matched with, for "vocabulary-tree" and "retrieval";
            None: 100.
        files: a new folder for keypoints, descriptors and matches in the official formats, which
            the original pipeline can read; only with one model.
    """
    if repeats < 1:
        raise InputError(f"repeats {repeats}: it must be at least 1")
    if not 0 < ratio <= 1:
        raise InputError(f"ratio {ratio}: it must be above 0 and at most 1 (1 accepts all)")
    if files is not None:
        must_be_free(files)
    cut = _Cut(side=side, extent=extent, smoothing=smoothing)
    opened = open_scenes(sample() if data is None else data, split, keypoints)
    sizes = [len(scene) for scene in opened.scenes]
    choice = chosen(pairs, neighbours, sizes)
    wanted = [listed(scene, choice) for scene in opened.scenes]
    scoring = Scoring(opened.scenes, wanted, choice.neighbours, ratio, repeats, files)
    return Protocol(
        "eth",
        VERSION,
        _dataset(opened, wanted, choice, cut),
        lambda described: scoring.score(described, scoring.names),
        headline=HEADLINES["eth"],
        quantities=QUANTITIES,
        libraries=("pycolmap",),
        options=unusual(USUAL, ratio=float(ratio), repeats=repeats, **vars(cut))
        | choice.options(sizes),
        # Files are written of all scenes together.
        parts=None
        if files is not None
        else Parts(
            scoring.names,
            scoring.rows,
            scoring.alone,
            scoring.sum_up,
            sums_intervals=repeats == 1,  # those of totals are of the runs of all scenes together
            ahead=Ahead(scoring.units, scoring.match_ahead),
        ),
    )


class _Cut(KeypointCut):
    """How patches are cut; the name is part of the hash of a block."""

    def of_file(self, image: Path, frames: AffineFrames) -> Patches:
        """One patch for each keypoint of an image, in order."""
        return self.patches(read_grey(image).astype(np.float32), frames)


def _dataset(
    opened: ImageScenes, listed: Sequence[ImagePairs | None], choice: Choice, cut: _Cut
) -> Dataset:
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
        told = [choice.way, choice.neighbours] if wanted is None else wanted
        truth.update(repr((scene.name, scene.evidence, told)).encode())
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
