"""Image sequences as one data set: SIFT keypoints of each image, their patches, and the pairs.

The split is named after the sequences, the most keypoints of an image, and the size of the images:
"full-2000", "d2-net-2000-480px".
"""

import hashlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from jaxtyping import Float64, Int
from scipy.spatial import KDTree

from harness import Dataset, parallel
from harness.errors import InputError
from protocols.hpatches_sequences.images import Image, block_of, images_of
from protocols.hpatches_sequences.names import (
    NAME,
    RELEASE,
    name_of,
    of_split,
    sources_of,
    split_name,
    unchecked,
)
from protocols.imaging.keypoint_patches import USUAL, KeypointCut
from protocols.imaging.sequences import Homography, find
from protocols.oxford.ellipses import linearised
from protocols.oxford.matching import one_to_one
from protocols.oxford.reader import check_fit
from protocols.oxford.regions import table

NEAR = 3.0  # pixels: keypoints of one point are no farther apart after mapping

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class ImagePair:
    """Image 1 of a sequence and another image: keypoints, and the homography between them."""

    scene: str  # name of the sequence
    number: int  # of the other image, from 2
    rows: tuple[slice, slice]  # of the patches of both images
    # of the keypoints, pixels
    places: tuple[Float64[np.ndarray, "n 2"], Float64[np.ndarray, "m 2"]]
    homography: Homography
    shape: tuple[int, int]  # of image 1


@dataclass(frozen=True, eq=False)
class Sequences:
    """An opened data set."""

    dataset: Dataset
    pairs: tuple[ImagePair, ...]  # by sequence, then by image


def open_set(
    root: Path, split: str | None, *, keypoints: int, size: int | None, cut: KeypointCut = USUAL
) -> Sequences:
    """Open a set: read its images, and detect their keypoints.

    Args:
        root: folder of the sequences, or a folder that has the official one in it.
        split: "full", or "d2-net" for HPatches without its eight sequences of large images.
        keypoints: most keypoints of an image, the strongest.
        size: the shorter side of all images, which are resized; None leaves them as they are.
        cut: how patches are cut.

    Raises:
        InputError: if a file is missing or malformed, if homographies don't fit the images, or if
            the split is not one of this set; names the file.
    """
    if keypoints < 1 or (size is not None and size < 1):
        raise InputError(f"keypoints={keypoints}, size={size}: numbers above 0 are wanted")
    if root.name != RELEASE and (root / RELEASE).is_dir():
        root = root / RELEASE
    every, _ = find(root)
    sequences = of_split(root, sorted(every, key=lambda one: one.folder), split)
    name = name_of(root, sequences, split)
    if name != NAME:
        check_fit(root, sequences)
    log.info("detecting keypoints in the images of %d sequences", len(sequences))
    images = images_of(sequences, keypoints, size)
    log.info("cutting out %d patches", sum(len(image.frames) for image in images))
    blocks = parallel.each(partial(block_of, size=size, cut=cut), images)
    ends = np.cumsum([0, *(len(image.frames) for image in images)])
    pairs = tuple(_pairs(images, ends))
    dataset = Dataset(
        name=name,
        split=split_name(split, keypoints, size),
        blocks=tuple(blocks),
        point=_points(images, pairs, ends),
        image=np.repeat(np.arange(len(images)), np.diff(ends)),
        truth=_truth_sha256(images),
        sources=frozenset(source for one in sequences for source in sources_of(name, one)),
        unchecked=unchecked(name),
    )
    return Sequences(dataset, pairs)


def _pairs(images: list[Image], ends: Int[np.ndarray, " images_and_one"]) -> Iterator[ImagePair]:
    """Image 1 of each sequence with each other image."""
    first = 0
    for i, image in enumerate(images):
        if image.k == 0:
            first = i
            continue
        one = images[first]
        yield ImagePair(
            image.sequence.folder,
            image.k + 1,
            (slice(ends[first], ends[first + 1]), slice(ends[i], ends[i + 1])),
            (one.places, image.places),
            image.to_size @ image.sequence.from_first[image.k] @ np.linalg.inv(one.to_size),
            one.shape,
        )


def _points(
    images: list[Image], pairs: tuple[ImagePair, ...], ends: Int[np.ndarray, " images_and_one"]
) -> Int[np.ndarray, " n"]:
    """Point numbers: a keypoint of image 1 and its partners in other images are one point."""
    point = np.arange(ends[-1])
    matrix = np.concatenate([image.frames.matrix for image in images])
    for pair in pairs:
        first, other = pair.rows
        a, b = _partners(pair, matrix[first], matrix[other])
        point[other.start + b] = first.start + a
    return point


def _partners(
    pair: ImagePair, first: Float64[np.ndarray, "n 2 2"], other: Float64[np.ndarray, "m 2 2"]
) -> tuple[Int[np.ndarray, " pairs"], Int[np.ndarray, " pairs"]]:
    """Keypoints of two images that show one point: near each other, and most alike in shape.

    One to one. The likeness is of scale and direction: the difference of their matrices after
    mapping, relative to the size of the matrix.
    """
    a, b = pair.places
    mapped, jacobian = linearised(pair.homography, a)
    seen = np.flatnonzero(np.isfinite(mapped).all(axis=1))
    near = KDTree(b).query_ball_point(mapped[seen], NEAR) if len(b) else [[] for _ in seen]
    row = np.repeat(seen, [len(some) for some in near])
    column = np.array([j for some in near for j in some], np.intp)
    apart = np.linalg.norm(jacobian[row] @ first[row] - other[column], axis=(1, 2))
    apart /= np.linalg.norm(other[column], axis=(1, 2))
    order = np.lexsort((column, row, apart))
    chosen = order[one_to_one(row[order], column[order], len(a), len(b))]
    return row[chosen], column[chosen]


def _truth_sha256(images: list[Image]) -> str:
    """A hash of all that decides the pairs and the errors: homographies, sizes and keypoints."""
    digest = hashlib.sha256()
    for image in images:
        numbers = " ".join(f"{n:.9g}" for n in image.sequence.from_first[image.k].ravel())
        digest.update(f"{image.sequence.folder} {image.k} {image.shape} {numbers}\n".encode())
        digest.update(table(image.frames).tobytes())
    return digest.hexdigest()
