"""Makes training data in the official PhotoTour format: what a detector finds in views of images.

Each image is a plane that is photographed from elsewhere, in other light, out of focus, as a JPEG
(`Cameras`). Harris-Affine finds regions in the image and in each view. Regions of two views that
overlap by more than a half, mapped to the image, are the same, as in `protocols.oxford`, if their
directions agree to 30 degrees; so patches of a point differ as a detector makes them differ, in
place, size, shape and direction. Points of an image overlap by less than a half, but may well lie
in each other: they are the negatives that tests have.

Half a side of a patch is `magnification` radii; it never shows what lies beyond the border of the
image. In `interest.txt` are the number of a patch's image, so that samplers find others of the same
image, and x, y, direction in radians and binary logarithm of the mean radius, in its own view;
`dataset.json` lists the images.

A point's patches depend on the seed and the contents of its image alone.
"""

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path

from harness.errors import InputError
from protocols.builders.homography.assemble import Report, assemble
from protocols.builders.homography.shots import Asked, shot
from protocols.builders.views.camera import DEFAULT, Cameras
from protocols.builders.views.points import detected
from protocols.imaging.harris_affine import FINEST
from protocols.oxford.truth import MAGNIFICATION

VERSION = 1  # raised whenever the same images could give other patches
MOST_VIEWS = 100


def build(
    images: Path,
    out: Path,
    *,
    points: int = 100,
    views: int = 8,
    versions: int = 4,
    magnification: float = MAGNIFICATION,
    name: str | None = None,
    seed: int = 0,
    cameras: Cameras = DEFAULT,
    progress: Callable[[int, int], None] | None = None,
) -> Report:
    """Make a set in the folder `out` from the images in a folder and below it.

    `out` appears when the set is whole. What is done is kept beside it until then, so that a build
    that was stopped goes on where it was. Images that can't be read, or show nothing that is found
    again, are left out and reported.

    Args:
        images: a folder; those in folders below it are found too.
        out: a new folder, or an empty one. Its name is that of the scene.
        points: of each image, at most.
        views: of each image, beside itself.
        versions: patches of each point; of what fewer views show, none is used.
        magnification: half a side of a patch, in radii of its region.
        name: the data set is called "phototour-" and this; the name of `out` where None.
        seed: of all that is random.
        cameras: how much views differ.
        progress: called with the number of finished images and that of all.

    Raises:
        InputError: if a number is out of range, or there are no images, or no points in them.
        FileInTheWayError: if there is something in `out`.
        BlockingIOError: if another process makes the same set.
    """
    if not versions - 1 <= views <= MOST_VIEWS:
        raise InputError(
            f"views is {views}: {versions} versions of a point need at least {versions - 1}, and"
            f" {MOST_VIEWS} are the most"
        )
    asked = Asked(points, versions, magnification, seed)
    return assemble(
        images,
        out,
        partial(shot, make=partial(detected, asked=asked, views=views, cameras=cameras)),
        asked,
        name=name,
        builder=VERSION,
        smallest=FINEST,
        parameters={"views": views, "cameras": asdict(cameras)},
        progress=progress,
    )
