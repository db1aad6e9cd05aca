"""Builds training data in the official PhotoTour format from regions detected in views of images.

A view shows the image as a plane, photographed from another place, in other light, out of focus, as
a JPEG (`ViewStrengths`). Harris-Affine finds regions in the image and in each view. Two regions
show the same point, as in `protocols.oxford`, if they overlap by more than a half when mapped to
the image, and their directions agree to 30 degrees. So the patches of a point differ in place,
size, shape and direction as a detector makes them differ. Two points of an image overlap by less
than a half, but one may lie inside the other: such negatives also occur in the tests.

Half a side of a patch is `magnification` radii; a patch shows nothing beyond the border of the
image. `interest.txt` has the number of a patch's image, so that samplers find others of the same
image, and x, y, direction in radians and binary logarithm of the mean radius, in the patch's own
view; `dataset.json` lists the images.

A point's patches depend only on the seed and the contents of its image.
"""

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path

from harness.errors import InputError
from protocols.builders.homography.assemble import SingleImagesReport, assemble
from protocols.builders.homography.shots import Asked, shot
from protocols.builders.views.camera import DEFAULT, ViewStrengths
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
    longest_side: int | None = None,
    name: str | None = None,
    seed: int = 0,
    cameras: ViewStrengths = DEFAULT,
    tests: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> SingleImagesReport:
    """Build a data set in the folder `out` from the images in a folder and below it.

    `out` appears when the set is complete. Until then, finished work is kept beside it, so that a
    build that was stopped can resume. Images that can't be read, or have no region that is found
    again, are left out and reported.

    Args:
        images: a folder; images in its subfolders are found too.
        out: a new or empty folder. Its name becomes the name of the scene.
        points: most points of each image.
        views: of each image, besides the image itself.
        versions: patches of each point; a point that fewer views show is not used.
        magnification: half a side of a patch, in radii of its region.
        longest_side: in pixels. Larger images are reduced to it first, by means over areas: regions
            and `interest.txt` are then of the smaller image. None reduces no image.
        name: the data set is called "phototour-NAME"; None takes the name of `out`.
        seed: of all random numbers.
        cameras: how much views differ.
        tests: a folder of test images. Images of the same photographs are left out and reported,
            also if they have another size, or are cut (`protocols.imaging.same_photograph`).
        progress: called with the number of finished images and the number of all images.

    Raises:
        InputError: if a number is out of range, or there are no images, or no points in them.
        FileInTheWayError: if `out` is not empty.
        BlockingIOError: if another process builds the same set.
    """
    if not versions - 1 <= views <= MOST_VIEWS:
        raise InputError(
            f"views is {views}: {versions} versions of a point need at least {versions - 1}, and"
            f" {MOST_VIEWS} are the most"
        )
    asked = Asked(points, versions, magnification, seed, longest_side)
    return assemble(
        images,
        out,
        partial(
            shot,
            make=partial(detected, asked=asked, views=views, cameras=cameras),
            longest_side=longest_side,
        ),
        asked,
        name=name,
        builder=VERSION,
        smallest=FINEST,
        parameters={"views": views, "cameras": asdict(cameras)},
        tests=tests,
        progress=progress,
    )
