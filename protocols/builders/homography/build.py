"""Makes training data in the official PhotoTour format out of any images, by known homographies.

Points are found in each image, blobs and corners at all scales. Each gets some patches, its
*versions*: the region around it as a detector might have found it in other pictures, turned,
scaled, stretched, shifted and tilted at random, and read from the image in one go; then blurred,
relit, made noisy and compressed at random. `Strengths` has all that can be changed about this.

At strength 0 half a side is six times the detected scale, as in scenes that are built from
photographs (see `protocols.builders.phototour.build`), if `magnification` says nothing else: affine
regions are compared within three (`protocols.oxford`), and a network should have seen patches as
tight.
Scales are 1.6 pixels and more. A patch never shows what lies beyond the border of its image. Images
that are the same byte for byte are used once, and points whose squares overlap much become one:
training would learn that the same is not the same. For that reason give images of different
things. Photographs of one place show its points again and again, and each time as another one.

In `interest.txt` are the number of a patch's image, so that samplers find others of the same image,
and its own x, y, direction in radians and binary logarithm of the scale, as a detector would have
given them; `dataset.json` lists the images. Pairs of the m50 lists are any two versions of a point,
and versions of two points of one image.

A point's versions depend on the seed, the contents of its image and the point alone. The same
images give the same bytes with the same libraries; with others a grey value may differ here or
there.
"""

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from protocols.builders.homography.assemble import Report, assemble
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
    name: str | None = None,
    seed: int = 0,
    strengths: Strengths = DEFAULT,
    progress: Callable[[int, int], None] | None = None,
) -> Report:
    """Make a set in the folder `out` from the images in a folder and below it.

    `out` appears when the set is whole. What is done is kept beside it until then, so that a build
    that was stopped goes on where it was. Images that can't be read, or show nothing that stands
    out, are left out and reported.

    Args:
        images: a folder; those in folders below it are found too.
        out: a new folder, or an empty one. Its name is that of the scene.
        points: of each image, at most. A larger number gives the same points and others.
        versions: patches of each point.
        magnification: half a side of a patch at strength 0, in scales of its point.
        name: the data set is called "phototour-" and this; the name of `out` where None.
        seed: of all that is random.
        strengths: of the differences between versions.
        progress: called with the number of finished images and that of all.

    Raises:
        ValueError: if a number is out of range, or there are no images, or no points in them.
        FileExistsError: if there is something in `out`.
        BlockingIOError: if another process makes the same set.
    """
    asked = Asked(points, versions, magnification, seed)
    return assemble(
        images,
        out,
        partial(shot, make=partial(drawn, asked=asked, strengths=strengths)),
        asked,
        name=name,
        builder=VERSION,
        smallest=SMALLEST,
        parameters={"strengths": asdict(strengths)},
        progress=progress,
    )


def drawn(
    grey: UInt8[np.ndarray, "height width"], image: int, *, asked: Asked, strengths: Strengths
) -> Made:
    """Points of one image, and of each the regions that are drawn at random."""
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
