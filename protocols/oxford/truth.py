"""Finds the correspondences of two images of a plane: regions that overlap after mapping."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int

from harness.errors import InputError
from protocols.imaging.affine import AffineFrames
from protocols.imaging.sequences import Homography
from protocols.oxford.ellipses import Ellipses, Measure, ellipses_of, overlapping, warped
from protocols.oxford.matching import Matches, one_to_one

MAGNIFICATION = 3.0  # radii of a compared region, and of a patch by default
OVERLAP = 0.5  # a larger overlap is a correspondence for descriptors
REPEATED = 0.6  # for repeatability, a larger overlap is a correspondence of regions
RADIUS = 30.0  # pixels: radius to which the first image's regions are scaled for that


@dataclass(frozen=True, eq=False)
class Truth:
    """Correspondences: pairs of rows of two images, in the order of a, then b."""

    a: Int[np.ndarray, " pairs"]
    b: Int[np.ndarray, " pairs"]
    assigned: Int[np.ndarray, " m"]  # one-to-one pairs among them
    rows: int  # regions of the first image
    columns: int  # regions of the second

    def holds(self, matches: Matches) -> Bool[np.ndarray, " m"]:
        """Which matches are right. Any correspondence is right, assigned or not."""
        known = self.a * self.columns + self.b  # ascending
        asked = matches.a * self.columns + matches.b
        place = np.minimum(np.searchsorted(known, asked), max(len(known) - 1, 0))
        return known[place] == asked if len(known) else np.zeros(len(asked), bool)


def correspondences(
    a: AffineFrames, b: AffineFrames, homography: Homography, measure: Measure
) -> Truth:
    """Regions that overlap by more than a half after mapping the second image's regions back.

    As in VLB's mode "descriptors": regions are magnified by 3; regions outside the part that both
    images show are not left out; partners are assigned one to one, the largest overlap first.

    Args:
        a: regions of the first image.
        b: regions of the second image.
        homography: from pixels of the first image to pixels of the second.
        measure: of overlap.
    """
    back = warped(ellipses_of(b), np.linalg.inv(homography))
    return _truth(
        ellipses_of(a).scaled(MAGNIFICATION), back.scaled(MAGNIFICATION), OVERLAP, measure
    )


def repeatability(
    a: AffineFrames,
    b: AffineFrames,
    homography: Homography,
    shapes: tuple[tuple[int, int], tuple[int, int]],
    measure: Measure,
) -> tuple[float, int]:
    """Number of corresponding regions / number of regions in the image with fewer; and the former.

    Mikolajczyk et al., IJCV 2005, section 4.1: regions whose outlines lie in both images correspond
    if their overlap error is below 40 %, after scaling to a radius of 30 pixels.

    Args:
        a: regions of the first image.
        b: regions of the second image.
        homography: from pixels of the first image to pixels of the second.
        shapes: height and width of both images.
        measure: of overlap.

    Raises:
        InputError: if an image has no region in the part that both images show.
    """
    back = np.linalg.inv(homography)
    here, there = ellipses_of(a), ellipses_of(b)
    mapped = warped(there, back)
    seen_a = _inside(here, shapes[0]) & _inside(warped(here, homography), shapes[1])
    seen_b = _inside(there, shapes[1]) & _inside(mapped, shapes[0])
    here, mapped = here.take(np.flatnonzero(seen_a)), mapped.take(np.flatnonzero(seen_b))
    fewer = min(len(here), len(mapped))
    if not fewer:
        raise InputError(
            "an image has no region in the part that both show: repeatability is undefined"
        )
    count = len(_truth(here, mapped, REPEATED, measure, RADIUS).assigned)
    return count / fewer, count


def _truth(
    a: Ellipses, b: Ellipses, least: float, measure: Measure, radius: float | None = None
) -> Truth:
    pairs = overlapping(a, b, least, measure, radius)
    order = np.argsort(-pairs.overlap, kind="stable")
    chosen = one_to_one(pairs.a[order], pairs.b[order], len(a), len(b))
    return Truth(pairs.a, pairs.b, np.sort(order[chosen]), len(a), len(b))


def _inside(ellipses: Ellipses, shape: tuple[int, int]) -> Bool[np.ndarray, " n"]:
    """Whether the whole ellipse lies in an image, by VLB's bounds: from 0 to width and height."""
    low, high = ellipses.centre - ellipses.box, ellipses.centre + ellipses.box
    return np.all((low > 0) & (high < np.array(shape[::-1])), axis=1)
