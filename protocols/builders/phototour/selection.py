"""Chooses the observations of a reconstruction that become patches, and their squares."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Int

from harness.errors import InputError
from protocols.builders.phototour import observations
from protocols.builders.phototour.observations import Observations
from protocols.builders.phototour.sparse import Photograph
from protocols.imaging.frames import Frames, image_from_patch, inside, uniform


@dataclass(frozen=True)
class ObservationTally:
    """Counts of observations, by what happened to them; those left out and `patches` add up."""

    observations: int  # of points that two images or more see, each image in one place
    behind: int  # the image sees the back of the point's surface
    outside: int  # the patch extends beyond the border
    alone: int  # the point has no other patch left
    over_cap: int  # beyond `max_patches`
    patches: int
    points: int


STREAM = 0  # the stream of random numbers of a seed that is used here


def choose(
    photos: Sequence[Photograph], seen: Observations, how: str, max_patches: int | None, seed: int
) -> tuple[Observations, Frames, Int[np.ndarray, " n"], ObservationTally]:
    """The observations that become patches, their squares, their reference images, and counts.

    A point's reference image shows it largest. The chosen points get new numbers, from 0.
    """
    largest = observations.largest(seen)
    if how == "projected":
        squares = observations.frames_projected(seen, largest)
    else:
        squares = observations.frames_detected(seen)
    maps = image_from_patch(squares)
    within = np.zeros(len(seen), bool)
    for k, photo in enumerate(photos):
        here = np.flatnonzero(seen.image == k)
        within[here] = inside(maps[here], photo.height, photo.width)
    front = np.linalg.det(seen.image_from_plane) > 0
    kept = front & within
    group = np.unique(seen.point, return_inverse=True)[1]
    alone = kept & (np.bincount(group, kept)[group] < 2)
    kept &= ~alone
    rows = np.flatnonzero(kept)
    if not len(rows):
        raise InputError(
            f"none of {len(seen)} observations gives a patch that lies within its image and has a"
            " partner: give larger images, or more images that overlap"
        )
    point = np.unique(seen.point[rows], return_inverse=True)[1]
    if max_patches is not None:
        number = np.bincount(point)
        order = np.argsort(uniform((seed, STREAM), len(number)), kind="stable")
        under = order[np.cumsum(number[order]) <= max_patches]
        if len(under) < 2:
            raise InputError(
                f"max_patches is {max_patches}, too few for two points: give a larger number"
                " (--set max-patches=NUMBER)"
            )
        rows = rows[np.isin(point, under)]
        point = np.unique(seen.point[rows], return_inverse=True)[1]
    tally = ObservationTally(
        observations=len(seen),
        behind=int(np.count_nonzero(~front)),
        outside=int(np.count_nonzero(front & ~within)),
        alone=int(np.count_nonzero(alone)),
        over_cap=int(np.count_nonzero(kept)) - len(rows),
        patches=len(rows),
        points=int(point[-1]) + 1,
    )
    return (
        replace(seen.take(rows), point=point),
        squares.take(rows),
        seen.image[largest[rows]],
        tally,
    )
