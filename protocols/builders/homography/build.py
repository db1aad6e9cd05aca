"""Builds training data in the official PhotoTour format from any images, by known homographies.

Points are blobs and corners at all scales of each image. A point has several patches, its
*versions*. A version is the region around the point as a detector might find it in another picture:
turned, scaled, stretched, shifted and tilted at random, and sampled from the image once; then
blurred, relit, made noisy and compressed at random. `Strengths` has all settings of this.

By default, half a side at strength 0 is six times the detected scale, as in scenes that are built
from photographs (see `protocols.builders.phototour.build`). A smaller `magnification` gives tighter
patches: `protocols.oxford` compares regions at three, and a network should see such patches in
training.
Scales are 1.6 pixels and more. A patch shows nothing beyond the border of its image. Of images with
the same bytes one is used, and of points whose squares overlap much: otherwise training would
learn that two equal patches differ. For the same reason, give images of different things: in
photographs of one place, each photograph shows the same points, and they count as different.

`interest.txt` has the number of a patch's image, so that samplers find others of the same image,
and the version's own x, y, direction in radians and binary logarithm of the scale, as a detector
would give them; `dataset.json` lists the images. The matches of the m50 lists are two versions of
one point, the non-matches versions of two points of one image.

A point's versions depend only on the seed, the contents of its image and the point. The same
images give the same bytes with the same libraries; with other libraries some grey values may
differ.
"""

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from protocols.builders.homography.assemble import SingleImagesReport, assemble
from protocols.builders.homography.cut import cut
from protocols.builders.homography.points import choose
from protocols.builders.homography.shots import Asked, Made, interest_of, shot
from protocols.builders.homography.strengths import DEFAULT, Strengths
from protocols.builders.homography.warps import squares
from protocols.builders.phototour.observations import MAGNIFICATION
from protocols.imaging.detect import SMALLEST

VERSION = 1  # raised whenever the same images could give other patches


def build(
    images: Path,
    out: Path,
    *,
    points: int = 100,
    versions: int = 8,
    magnification: float = MAGNIFICATION,
    longest_side: int | None = None,
    name: str | None = None,
    seed: int = 0,
    strengths: Strengths = DEFAULT,
    tests: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> SingleImagesReport:
    """Build a data set in the folder `out` from the images in a folder and below it.

    `out` appears when the set is complete. Until then, finished work is kept beside it, so that a
    build that was stopped can resume. Images that can't be read, or have no points, are left out
    and reported.

    Args:
        images: a folder; images in its subfolders are found too.
        out: a new or empty folder. Its name becomes the name of the scene.
        points: most points of each image. A larger number adds points and keeps the others.
        versions: patches of each point.
        magnification: half a side of a patch at strength 0, in units of its point's scale.
        longest_side: in pixels. Larger images are reduced to it first, by means over areas: regions
            and `interest.txt` are then of the smaller image. None reduces no image.
        name: the data set is called "phototour-NAME"; None takes the name of `out`.
        seed: of all random numbers.
        strengths: of the differences between versions.
        tests: a folder of test images. Images of the same photographs are left out and reported,
            also if they have another size, or are cut (`protocols.imaging.same_photograph`).
        progress: called with the number of finished images and the number of all images.

    Raises:
        InputError: if a number is out of range, or there are no images, or no points in them.
        FileInTheWayError: if `out` is not empty.
        BlockingIOError: if another process builds the same set.
    """
    asked = Asked(points, versions, magnification, seed, longest_side)
    return assemble(
        images,
        out,
        partial(
            shot,
            make=partial(drawn, asked=asked, strengths=strengths),
            longest_side=longest_side,
        ),
        asked,
        name=name,
        builder=VERSION,
        smallest=SMALLEST,
        parameters={"strengths": asdict(strengths)},
        tests=tests,
        progress=progress,
    )


def drawn(
    grey: UInt8[np.ndarray, "height width"], image: int, *, asked: Asked, strengths: Strengths
) -> Made:
    """Points of one image, and the patches of each point's randomly drawn regions."""
    points = choose(
        grey,
        most=asked.points,
        versions=asked.versions,
        magnification=asked.magnification,
        strengths=strengths,
        seed=asked.seed,
        image=image,
    )
    patches = cut(grey, points, strengths=strengths, seed=asked.seed, image=image)
    interest = interest_of(squares(points.maps.reshape(-1, 3, 3)), asked.magnification)
    return Made(points.frames, interest.reshape(*patches.shape[:2], 4), patches)
