"""Finds observations that the matcher missed: keypoints where the model says that a point is.

What was matched is what SIFT finds alike, which is easy for it and for all other descriptors. The
official matches were found by geometry alone; this does so as far as a sparse model goes.
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
from protocols.builders.phototour.sparse import Shot, observe

NEAR = 1.0
"""Pixels between the keypoint and the point. The official 5 were for the errors of dense stereo."""

FACING = 0.5  # least cosine of the angle between a ray and the mean ray of those who see the point
BESIDE = ((32.0, 0.0), (-32.0, 0.0), (0.0, 32.0), (0.0, -32.0))  # pixels, where the point is not


def extend(shots: Sequence[Shot], seen: Observations) -> tuple[Observations, float]:
    """The observations with those added that were missed, and the share of these by chance.

    A keypoint that is no observation becomes that of a point which is not observed in its image,
    if it lies where the point is, and agrees in scale and direction with the observation that
    shows the point largest, as matches have to. A point that something hides in this image can be
    mistaken for that. The share is how often a keypoint lies beside the point instead.
    """
    reference = observations.largest(seen)
    sizes, angles = observations.on_plane(seen, observations.frames_detected(seen))
    first = np.unique(seen.point, return_index=True)[1]
    points, reference = seen.take(first), reference[first]
    group = np.searchsorted(points.point, seen.point)
    tables = [np.stack([group, seen.image, seen.index], 1)]
    hits = by_chance = 0.0
    for k, shot in enumerate(shots):
        here = np.flatnonzero(seen.image == k)
        wanted = _faces(shot, points)
        wanted[group[here]] = False
        of = np.flatnonzero(wanted)
        free = np.delete(np.arange(len(shot.detected)), seen.index[here])
        own = sizes[reference[of]], angles[reference[of]]
        place, image_from_plane = shot.look(points.xyz[of], points.axes[of])
        p, q = _near(shot, free, place, image_from_plane, *own)
        hits += len(np.unique(p))
        for aside in BESIDE:
            beside, _ = _near(shot, free, place + np.array(aside), image_from_plane, *own)
            by_chance += len(np.unique(beside)) / len(BESIDE)
        once = _firsts(p)  # the nearest keypoint of a point,
        p, q = p[once], q[once]
        once = _firsts(q)  # then the nearest point of a keypoint
        p, q = p[once], q[once]
        tables.append(np.stack([of[p], np.full(len(p), k), q], 1))
    table = np.concatenate(tables)
    of, image, index = table[np.lexsort((table[:, 1], table[:, 0]))].T
    extended = observe(shots, points.point[of], image, index, points.xyz[of], points.axes[of])
    return extended, by_chance / max(hits, 1)


def _faces(shot: Shot, points: Observations) -> Bool[np.ndarray, " n"]:
    """Whether the image could show the points: from the front, and not too obliquely."""
    ray = points.xyz - shot.centre
    mean = np.cross(points.axes[:, :, 0], points.axes[:, :, 1])
    cosine = (ray * mean).sum(1) / np.linalg.norm(ray, axis=1)
    place, image_from_plane = shot.look(points.xyz, points.axes)
    x, y = place.T  # not a number behind the camera, and so not in the image
    faces = (x >= 0) & (y >= 0) & (x <= shot.width - 1) & (y <= shot.height - 1)
    faces &= cosine >= FACING
    faces[faces] = np.linalg.det(image_from_plane[faces]) > 0
    return faces


def _near(
    shot: Shot,
    free: Int[np.ndarray, " m"],
    place: Places,
    image_from_plane: Matrices,
    half: Float64[np.ndarray, " n"],
    angle: Float64[np.ndarray, " n"],
) -> tuple[Int[np.ndarray, " k"], Int[np.ndarray, " k"]]:
    """Points, and free keypoints that are near them and agree with them; the nearest first."""
    if shot.keypoint is None or not len(free) or not len(place):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    tree = cKDTree(shot.detected[free])
    near = cKDTree(place).sparse_distance_matrix(tree, NEAR, output_type="ndarray")
    near = near[np.lexsort((near["j"], near["i"], near["v"]))]
    p, q = near["i"].astype(np.int64), free[near["j"]]
    on_plane = np.linalg.inv(image_from_plane[p]) @ (MAGNIFICATION * shot.keypoint[q])
    turn = np.abs(direction(on_plane) - angle[p])
    agree = np.abs(np.log2(size(on_plane) / half[p])) <= OCTAVES
    agree &= np.minimum(turn, 2 * np.pi - turn) <= ANGLE
    return p[agree], q[agree]


def _firsts(values: Int[np.ndarray, " k"]) -> Int[np.ndarray, " m"]:
    """Where each value comes first, in order."""
    return np.sort(np.unique(values, return_index=True)[1])
