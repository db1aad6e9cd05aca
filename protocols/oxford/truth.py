"""Which regions of two images of a plane are the same: those that overlap where one is mapped."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int

from harness.errors import InputError
from protocols.imaging.affine import AffineFrames
from protocols.imaging.sequences import Homography
from protocols.oxford.ellipses import Ellipses, Measure, ellipses_of, overlapping, warped
from protocols.oxford.matching import Matches, one_to_one

MAGNIFICATION = 3.0  # radii of what is compared; and of patches, if not told otherwise
OVERLAP = 0.5  # more than this is a correspondence of descriptors
REPEATED = 0.6  # more than this is a correspondence of regions,
RADIUS = 30.0  # once they are scaled so that those of the first image have this radius, in pixels


@dataclass(frozen=True, eq=False)
class Truth:
    """Pairs of rows of two images that show the same; in the order of a, then b."""

    a: Int[np.ndarray, " pairs"]
    b: Int[np.ndarray, " pairs"]
    assigned: Int[np.ndarray, " m"]  # which of the pairs are left if each row may have one partner
    rows: int  # regions of the first image
    columns: int  # regions of the second

    def holds(self, matches: Matches) -> Bool[np.ndarray, " m"]:
        """Which matches are right. A match need not be the assigned one."""
        known = self.a * self.columns + self.b  # ascending
        asked = matches.a * self.columns + matches.b
        place = np.minimum(np.searchsorted(known, asked), max(len(known) - 1, 0))
        return known[place] == asked if len(known) else np.zeros(len(asked), bool)


def correspondences(
    a: AffineFrames, b: AffineFrames, homography: Homography, measure: Measure
) -> Truth:
    """Regions that overlap by more than a half when those of the second image are mapped back.

    As VLB has it in its mode "descriptors": regions are magnified by 3, none is left out for lying
    outside the part that both images show, and each gets the partner it overlaps most with, the
    largest overlap of all first.

    Args:
        a: regions of the first image.
        b: regions of the second.
        homography: from pixels of the first image to those of the second.
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
    """Share of regions that are found again, of the image that has fewer, and their number.

    Mikolajczyk et al., IJCV 2005, section 4.1: overlap error below 40 % of regions scaled to a
    radius of 30 pixels, among those whose outlines lie in both images.

    Args:
        a: regions of the first image.
        b: regions of the second.
        homography: from pixels of the first image to those of the second.
        shapes: height and width of both images.
        measure: of overlap.

    Raises:
        InputError: if an image has no region in the part that both show.
    """
    back = np.linalg.inv(homography)
    here, there = ellipses_of(a), ellipses_of(b)
    mapped = warped(there, back)
    seen_a = _inside(here, shapes[0]) & _inside(warped(here, homography), shapes[1])
    seen_b = _inside(there, shapes[1]) & _inside(mapped, shapes[0])
    here, mapped = here.take(np.flatnonzero(seen_a)), mapped.take(np.flatnonzero(seen_b))
    fewer = min(len(here), len(mapped))
    if not fewer:
        raise InputError("an image has no region where both images see: repeatability is undefined")
    found = len(_truth(here, mapped, REPEATED, measure, RADIUS).assigned)
    return found / fewer, found


def _truth(
    a: Ellipses, b: Ellipses, least: float, measure: Measure, radius: float | None = None
) -> Truth:
    pairs = overlapping(a, b, least, measure, radius)
    order = np.argsort(-pairs.overlap, kind="stable")
    chosen = one_to_one(pairs.a[order], pairs.b[order], len(a), len(b))
    return Truth(pairs.a, pairs.b, np.sort(order[chosen]), len(a), len(b))


def _inside(ellipses: Ellipses, shape: tuple[int, int]) -> Bool[np.ndarray, " n"]:
    """Whether the whole ellipse lies in an image, by VLB's bounds: from 0 to its width."""
    low, high = ellipses.centre - ellipses.box, ellipses.centre + ellipses.box
    return np.all((low > 0) & (high < np.array(shape[::-1])), axis=1)
