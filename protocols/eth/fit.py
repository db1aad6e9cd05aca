"""Checks known cameras against the images: matches should lie on epipolar lines.

Cameras are stored in several conventions, and only the images tell which one is meant: a rotation
may map from the camera to the world or back, and three numbers may be a centre or a translation.
"""

import hashlib
import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import cv2
import numpy as np
from jaxtyping import Float64

from harness import cache as caches
from harness import parallel
from harness.code import code_sha256
from harness.errors import InputError
from protocols.eth.truth import FOLDER, KnownCameras
from protocols.imaging.grey import read_grey

SIDE = 800  # pixels of the longer side of an image in which keypoints are detected
RATIO = 0.8  # largest distance to the nearest / distance to the second, Lowe (2004)
NEAR = 0.005  # a match this near its epipolar line, relative to the diagonal, lies on the line
FEWEST = 20  # with fewer matches, cameras are not judged

LEAST = 0.6
"""Below this share of matches on their epipolar lines, the cameras do not belong to the images.

Over all pairs, the four scenes of Strecha et al. reach 0.77 to 0.94 and `eth-sample` 0.93. Cameras
that are read in a wrong convention, or belong to other images, reach 0.00 to 0.39.
"""

log = logging.getLogger(__name__)

Pixels = Float64[np.ndarray, "_ 2"]


def check(images: Path, names: Sequence[str], known: KnownCameras) -> None:
    """Check that cameras have the size of their images and fit them.

    Each image is compared with the next two in the order of names; pairs with few matches are
    ignored.

    Raises:
        InputError: if an image has another size than its camera, or if too few matches of an image
            lie on the epipolar lines of the cameras; says in which convention they would fit.
    """
    keypoints = parallel.each(lambda name: _keypoints(images / name), names)
    for name, (shape, _, _), size in zip(names, keypoints, known.size.tolist(), strict=True):
        if [*shape[::-1]] != size:
            raise InputError(
                f"{images / name} is {shape[1]} x {shape[0]} pixels, its camera"
                f" {FOLDER}/{name}.camera is of {size[0]} x {size[1]}: give images of that size, or"
                " cameras of these (K and the size scaled alike)"
            )
    asked = [(i, j) for i in range(len(names)) for j in (i + 1, i + 2) if j < len(names)]
    pairs = parallel.each(lambda pair: _matched(*pair, keypoints), asked)
    shares: dict[int, float] = {}  # best of each image: one good pair proves its camera right
    for pair in pairs:
        share = _share([pair], known)
        for k in (pair.i, pair.j) if share is not None else ():
            shares[k] = max(share or 0.0, shares.get(k, 0.0))
    bad = [k for k, share in shares.items() if share < LEAST]
    if not bad:
        return
    judged = [pair for pair in pairs if pair.i in bad or pair.j in bad]
    fitting = {said: _share(judged, cameras) or 0.0 for said, cameras in _readings(known).items()}
    best = max(fitting, key=lambda said: fitting[said])
    cause = (
        f"{best} ({fitting[best]:.0%} lie on them then)"
        if fitting[best] >= LEAST
        else "they may be those of other images, or in another order"
    )
    share = _share(judged, known) or 0.0
    raise InputError(
        f"{images.parent / FOLDER}: the cameras of {len(bad)} of {len(names)} images,"
        f" {names[bad[0]]}{' and others' * (len(bad) > 1)}, do not fit the images: only {share:.0%}"
        f" of their matches lie on the epipolar lines; {cause}; or move {FOLDER} away to go without"
        " known cameras"
    )


def check_once(
    images: Path, names: Sequence[str], sha256: Sequence[str], known: KnownCameras
) -> None:
    """Like `check`, but images and cameras that passed before are not compared again.

    Args:
        images: folder that the names are relative to.
        names: of the images, in order.
        sha256: of the file of each image.
        known: the camera of each image.

    Raises:
        InputError: as `check` does.
    """
    numbers = (known.intrinsics, known.rotation, known.centre, known.size)
    kept = caches.kept("fits")
    origin = {
        "names": list(names),
        "images": list(sha256),
        "cameras": [hashlib.sha256(array.tobytes()).hexdigest() for array in numbers],
        "opencv": cv2.__version__,
        "code": code_sha256(__name__),
    }
    if kept.read(origin) is None:
        log.info("comparing %d images with their cameras", len(names))
        check(images, names, known)
        kept.write(origin, b"fits")


Keypoints = tuple[tuple[int, ...], Pixels, np.ndarray]  # shape of the image, places, descriptors


@dataclass(frozen=True, eq=False)
class ImageMatches:
    """Matches of images i and j."""

    i: int
    j: int
    a: Pixels  # in image i
    b: Pixels  # in image j
    near: float  # pixels


def _keypoints(file: Path) -> Keypoints:
    grey = read_grey(file)
    scale = min(1.0, SIDE / max(grey.shape))
    small = cv2.resize(grey, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    keypoints, vectors = cv2.SIFT.create(2000).detectAndCompute(small, np.ones_like(small))
    places = np.array([keypoint.pt for keypoint in keypoints], float).reshape(-1, 2)
    return grey.shape, (places + 0.5) / scale - 0.5, np.asarray(vectors)


def _matched(i: int, j: int, keypoints: Sequence[Keypoints]) -> ImageMatches:
    """Matches of images i and j: nearest neighbours that pass the ratio test."""
    (shape, a, vectors_a), (_, b, vectors_b) = keypoints[i], keypoints[j]
    rows = np.empty((0, 2), int)
    if min(len(a), len(b)) >= 2:
        two = cv2.BFMatcher().knnMatch(vectors_a, vectors_b, k=2)
        kept = [first for first, second in two if first.distance < RATIO * second.distance]
        rows = np.array([(match.queryIdx, match.trainIdx) for match in kept], int).reshape(-1, 2)
    return ImageMatches(i, j, a[rows[:, 0]], b[rows[:, 1]], NEAR * math.hypot(*shape))


def _readings(known: KnownCameras) -> dict[str, KnownCameras]:
    """The cameras of the same files in other conventions, by the advice to the user."""
    back = known.rotation.swapaxes(1, 2)
    of_back, of_stored = (
        -np.einsum("nij,nj->ni", rotation, known.centre) for rotation in (back, known.rotation)
    )
    upwards = known.rotation * np.array([1, -1, -1])
    given = {
        "the rotations lead from the world to the camera: transpose them": (back, known.centre),
        "the last three numbers are translations t: give the centres, -R t": (
            known.rotation,
            of_stored,
        ),
        "rotations and translations lead from the world to the camera: give R' and -R' t": (
            back,
            of_back,
        ),
        "y points up and z backwards: turn both axes of the cameras": (upwards, known.centre),
    }
    return {said: replace(known, rotation=r, centre=c) for said, (r, c) in given.items()}


def _share(pairs: Sequence[ImageMatches], known: KnownCameras) -> float | None:
    """Share of matches on their epipolar lines; None if there are too few matches."""
    on_line = []
    for pair in pairs:
        i, j = pair.i, pair.j
        if np.array_equal(known.centre[i], known.centre[j]):
            continue  # no epipolar lines
        # A ray of camera i is rotated to the world, then projected by camera j: x = K R' (X - C).
        to_j = known.intrinsics[j] @ known.rotation[j].T
        ray = np.linalg.solve(known.intrinsics[i], np.vstack([pair.a.T, np.ones(len(pair.a))]))
        epipole = to_j @ (known.centre[i] - known.centre[j])
        line = np.cross(epipole, (to_j @ known.rotation[i] @ ray).T)
        off = np.abs(line[:, 0] * pair.b[:, 0] + line[:, 1] * pair.b[:, 1] + line[:, 2])
        on_line.append(off <= pair.near * np.hypot(line[:, 0], line[:, 1]))
    every = np.concatenate(on_line or [np.empty(0, bool)])
    return float(every.mean()) if len(every) >= FEWEST else None
