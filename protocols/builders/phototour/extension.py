"""Finds observations that the matcher missed: keypoints where the model projects a point.

Matched keypoints are alike for SIFT, so they are easy for SIFT and for all other descriptors. The
official matches were found by geometry alone; this file does the same as far as a sparse model can.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float64, Int
from scipy.spatial import cKDTree

from protocols.builders.phototour import observations
from protocols.builders.phototour.observations import (
    MAGNIFICATION,
    Matrices,
    Observations,
    Places,
    direction,
    size,
)
from protocols.builders.phototour.pairs import ANGLE, OCTAVES
from protocols.builders.phototour.sparse import Photograph, observe

NEAR = 1.0
"""Most pixels between keypoint and point. The official 5 allow for errors of dense stereo."""

FACING = 0.5  # least cosine of the angle between a ray to the point and the point's mean ray
BESIDE = ((32.0, 0.0), (-32.0, 0.0), (0.0, 32.0), (0.0, -32.0))  # pixels from the point: control


def extend(photos: Sequence[Photograph], seen: Observations) -> tuple[Observations, float]:
    """The observations plus the missed ones, and the estimated share of chance hits among these.

    A free keypoint becomes an observation of a point that its image does not observe yet, if it
    lies where the model projects the point, and agrees in scale and direction, as matches must,
    with the observation that shows the point largest. If the point is hidden in this image, the
    keypoint can be a false observation. The share of chance hits is the number of such keypoints
    at places beside the point (`BESIDE`) over the number at the point.
    """
    reference = observations.largest(seen)
    sizes, angles = observations.on_plane(seen, observations.frames_detected(seen))
    first = np.unique(seen.point, return_index=True)[1]
    points, reference = seen.take(first), reference[first]
    group = np.searchsorted(points.point, seen.point)
    tables = [np.stack([group, seen.image, seen.index], 1)]
    hits = by_chance = 0.0
    for k, photo in enumerate(photos):
        here = np.flatnonzero(seen.image == k)
        wanted = _faces(photo, points)
        wanted[group[here]] = False
        rows = np.flatnonzero(wanted)
        free = np.delete(np.arange(len(photo.detected)), seen.index[here])
        expected = sizes[reference[rows]], angles[reference[rows]]
        place, image_from_plane = photo.look(points.xyz[rows], points.axes[rows])
        p, q = _near(photo, free, place, image_from_plane, *expected)
        hits += len(np.unique(p))
        for aside in BESIDE:
            beside, _ = _near(photo, free, place + np.array(aside), image_from_plane, *expected)
            by_chance += len(np.unique(beside)) / len(BESIDE)
        once = _firsts(p)  # only the nearest keypoint of each point
        p, q = p[once], q[once]
        once = _firsts(q)  # then only the nearest point of each keypoint
        p, q = p[once], q[once]
        tables.append(np.stack([rows[p], np.full(len(p), k), q], 1))
    table = np.concatenate(tables)
    rows, image, index = table[np.lexsort((table[:, 1], table[:, 0]))].T
    extended = observe(
        photos, points.point[rows], image, index, points.xyz[rows], points.axes[rows]
    )
    return extended, by_chance / max(hits, 1)


def _faces(photo: Photograph, points: Observations) -> Bool[np.ndarray, " n"]:
    """Whether the image can show each point: from the front, and not too obliquely."""
    ray = points.xyz - photo.centre
    mean = np.cross(points.axes[:, :, 0], points.axes[:, :, 1])
    cosine = (ray * mean).sum(1) / np.linalg.norm(ray, axis=1)
    place, image_from_plane = photo.look(points.xyz, points.axes)
    x, y = place.T  # NaN behind the camera, so not in the image
    faces = (x >= 0) & (y >= 0) & (x <= photo.width - 1) & (y <= photo.height - 1)
    faces &= cosine >= FACING
    faces[faces] = np.linalg.det(image_from_plane[faces]) > 0
    return faces


def _near(
    photo: Photograph,
    free: Int[np.ndarray, " m"],
    place: Places,
    image_from_plane: Matrices,
    half: Float64[np.ndarray, " n"],
    angle: Float64[np.ndarray, " n"],
) -> tuple[Int[np.ndarray, " k"], Int[np.ndarray, " k"]]:
    """Pairs of a point and a free keypoint that is near it and agrees; the nearest first."""
    if photo.keypoint is None or not len(free) or not len(place):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    tree = cKDTree(photo.detected[free])
    near = cKDTree(place).sparse_distance_matrix(tree, NEAR, output_type="ndarray")
    near = near[np.lexsort((near["j"], near["i"], near["v"]))]
    p, q = near["i"].astype(np.int64), free[near["j"]]
    on_plane = np.linalg.inv(image_from_plane[p]) @ (MAGNIFICATION * photo.keypoint[q])
    turn = np.abs(direction(on_plane) - angle[p])
    agree = np.abs(np.log2(size(on_plane) / half[p])) <= OCTAVES
    agree &= np.minimum(turn, 2 * np.pi - turn) <= ANGLE
    return p[agree], q[agree]


def _firsts(values: Int[np.ndarray, " k"]) -> Int[np.ndarray, " m"]:
    """The index of each value's first occurrence, ascending."""
    return np.sort(np.unique(values, return_index=True)[1])
