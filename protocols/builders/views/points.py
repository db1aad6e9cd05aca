"""Finds the regions of views that show the same point: they overlap and agree in direction."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64, Int, UInt8

from protocols.builders.homography.shots import Asked, Made, interest_of
from protocols.builders.homography.warps import squares, turn_of
from protocols.builders.views.camera import ViewStrengths, view
from protocols.imaging.affine import AffineFrames, affine_patches, image_from_patch
from protocols.imaging.frames import compose, inside, uniform
from protocols.imaging.harris_affine import harris_affine
from protocols.imaging.sequences import Homography
from protocols.oxford.ellipses import ellipses_of, exact_overlap, linearised, overlapping, warped
from protocols.oxford.matching import one_to_one
from protocols.phototour.writer import SIDE

OVERLAP = 0.5  # least overlap of regions of one point; largest overlap of two points of an image
TURN = 30.0  # most degrees between the directions of regions of one point
DETECTED = 4  # regions detected for each point that is wanted
WHICH = 0xC40  # stream of random numbers that chooses views


@dataclass(frozen=True, eq=False)
class View:
    """A view, its map from the first image, and its regions whose patches lie on both images."""

    grey: UInt8[np.ndarray, "height width"]
    from_first: Homography
    regions: AffineFrames


def detected(
    grey: UInt8[np.ndarray, "height width"],
    image: int,
    *,
    asked: Asked,
    views: int,
    cameras: ViewStrengths,
) -> Made:
    """Points of one image that enough views show; the image itself counts as a view.

    Args:
        grey: the image.
        image: its number, part of the seed.
        asked: how many points, and how many patches of each.
        views: number of views besides the image.
        cameras: how much views differ.
    """
    most = DETECTED * asked.points
    first = _seen(grey, np.eye(3), grey.shape, most, asked.magnification)
    all_views = [first]
    for k in range(views):
        taken, from_first = view(grey, cameras, (asked.seed, image, k))
        all_views.append(_seen(taken, from_first, grey.shape, most, asked.magnification))
    partner = np.stack(
        [np.arange(len(first.regions)), *(_partners(first, other) for other in all_views[1:])],
        axis=1,
    )
    rows = _points(first.regions, np.count_nonzero(partner >= 0, axis=1) >= asked.versions)
    rows = rows[: asked.points]
    chosen = _versions(partner[rows], asked.versions, (asked.seed, image, WHICH))
    patches = np.zeros((len(rows), asked.versions, SIDE, SIDE), np.uint8)
    interest = np.zeros((len(rows), asked.versions, 4))
    for k, this_view in enumerate(all_views):
        point, version = np.nonzero(chosen == k)
        regions = this_view.regions.take(partner[rows[point], k])
        patches[point, version] = affine_patches(
            this_view.grey.astype(np.float32), regions, extent=asked.magnification, side=SIDE
        )
        shown = squares(image_from_patch(regions, asked.magnification))
        interest[point, version] = interest_of(shown, asked.magnification)
    points = squares(image_from_patch(first.regions.take(rows), asked.magnification))
    return Made(points, interest, patches)


def _seen(
    grey: UInt8[np.ndarray, "height width"],
    from_first: Homography,
    shape: tuple[int, ...],
    most: int,
    magnification: float,
) -> View:
    regions = harris_affine(grey, most)
    maps = image_from_patch(regions, magnification)
    back = np.broadcast_to(np.linalg.inv(from_first), maps.shape)
    whole = inside(maps, *grey.shape) & inside(compose(back, maps), *shape[:2])
    return View(grey, from_first, regions.take(np.flatnonzero(whole)))


def _partners(first: View, other: View) -> Int[np.ndarray, " regions"]:
    """For each region of the first view its partner in another view, or -1; one to one."""
    a, b = ellipses_of(first.regions), ellipses_of(other.regions)
    mapped = warped(b, np.linalg.inv(other.from_first))
    pairs = overlapping(a, mapped, OVERLAP, exact_overlap)
    turn = _turn(first.regions.take(pairs.a), other.regions.take(pairs.b), other.from_first)
    order = np.argsort(-pairs.overlap, kind="stable")
    order = order[np.abs(turn[order]) <= np.radians(TURN)]
    taken = order[one_to_one(pairs.a[order], pairs.b[order], len(a), len(b))]
    partner = np.full(len(a), -1)
    partner[pairs.a[taken]] = pairs.b[taken]
    return partner


def _turn(
    a: AffineFrames, b: AffineFrames, homography: Homography
) -> Float64[np.ndarray, " pairs"]:
    """Radians from the direction of a, mapped to the image of b, to the direction of b."""
    _, jacobian = linearised(homography, np.stack([a.x, a.y], axis=1))
    return turn_of(np.linalg.inv(jacobian @ a.matrix) @ b.matrix)


def _points(
    regions: AffineFrames, enough: Bool[np.ndarray, " regions"]
) -> Int[np.ndarray, " points"]:
    """Regions that enough views show and that are different points; the strongest first."""
    outlines = ellipses_of(regions)
    pairs = overlapping(outlines, outlines, OVERLAP, exact_overlap)
    kept: list[int] = []
    free = enough.copy()
    for row in range(len(regions)):  # the detector puts the strongest first
        if free[row]:
            kept.append(row)
            low, high = np.searchsorted(pairs.a, [row, row + 1])
            free[pairs.b[low:high]] = False
    return np.array(kept, np.int64)


def _versions(
    partner: Int[np.ndarray, "points views"], versions: int, seed: tuple[int, ...]
) -> Int[np.ndarray, "points versions"]:
    """A random choice of the views that show a point, in ascending order."""
    drawn = np.where(partner >= 0, uniform(seed, *partner.shape), 2.0)
    return np.sort(np.argsort(drawn, axis=1, kind="stable")[:, :versions], axis=1)
