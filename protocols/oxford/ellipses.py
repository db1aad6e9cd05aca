"""Ellipses in an image: their images under a homography, and their overlaps.

Mikolajczyk et al., A comparison of affine region detectors, IJCV 2005, section 4.1. An ellipse has
a centre c and a matrix S, its shape: the points p of (p - c)' S^-1 (p - c) < 1.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float64, Int

from protocols.imaging.affine import AffineFrames
from protocols.imaging.sequences import Homography

# If the overlap of two ellipses is over a half, each contains the other's centre. Proof: a line
# through the centre of A halves A, and a convex B without that centre lies on one side of such a
# line. Rasters have errors, so pairs at a slightly larger distance are measured, too.
REACH = 1.3  # radii
FAR = 4.0  # mean radii of a: VLB never pairs ellipses with centres farther apart
CERTAIN = 0.05  # of overlap: five times the largest error of a raster seen on real regions
COARSE, FINE = 64, 720  # directions: overlaps over a half are exact to 1e-3, and to 1e-5
TOGETHER = 1024  # pairs that are measured at a time


@dataclass(frozen=True, eq=False)
class Ellipses:
    """Ellipses in one image."""

    centre: Float64[np.ndarray, "n 2"]
    shape: Float64[np.ndarray, "n 2 2"]

    def __len__(self) -> int:
        """The number of ellipses."""
        return len(self.centre)

    def take(self, rows: Int[np.ndarray, " m"]) -> "Ellipses":
        """The ellipses at these rows, in this order."""
        return Ellipses(self.centre[rows], self.shape[rows])

    def scaled(self, factor: float | Float64[np.ndarray, " n"]) -> "Ellipses":
        """Ellipses with the same centres, and radii times a factor, or times a factor each."""
        return Ellipses(self.centre, self.shape * np.square(factor)[..., None, None])

    @property
    def radius(self) -> Float64[np.ndarray, " n"]:
        """Radius of the circle of the same area, pixels."""
        return np.linalg.det(self.shape) ** 0.25

    @property
    def box(self) -> Float64[np.ndarray, "n 2"]:
        """Half the width and half the height of the bounding box, pixels."""
        return np.sqrt(np.diagonal(self.shape, axis1=1, axis2=2))


Measure = Callable[[Ellipses, Ellipses], Float64[np.ndarray, " n"]]
"""The overlap of each ellipse with its partner: intersection over union."""


@dataclass(frozen=True, eq=False)
class Overlaps:
    """Pairs of overlapping ellipses, in the order of a, then b."""

    a: Int[np.ndarray, " pairs"]
    b: Int[np.ndarray, " pairs"]
    overlap: Float64[np.ndarray, " pairs"]


def ellipses_of(frames: AffineFrames) -> Ellipses:
    """The outlines of regions."""
    shape = frames.matrix @ frames.matrix.swapaxes(1, 2)
    return Ellipses(np.stack([frames.x, frames.y], axis=1), shape)


def warped(ellipses: Ellipses, homography: Homography) -> Ellipses:
    """The images of ellipses under a homography, which is linearised at each centre."""
    centre, jacobian = linearised(homography, ellipses.centre)
    return Ellipses(centre, jacobian @ ellipses.shape @ jacobian.swapaxes(1, 2))


def linearised(
    homography: Homography, points: Float64[np.ndarray, "n 2"]
) -> tuple[Float64[np.ndarray, "n 2"], Float64[np.ndarray, "n 2 2"]]:
    """Where a homography maps points, and its derivative there."""
    x, y = points.T
    u, v, w = homography @ np.stack([x, y, np.ones_like(x)])
    centre = np.stack([u / w, v / w], axis=1)
    jacobian = (homography[:2, :2] - centre[:, :, None] * homography[2, :2]) / w[:, None, None]
    return centre, jacobian


def overlapping(
    a: Ellipses, b: Ellipses, least: float, measure: Measure, radius: float | None = None
) -> Overlaps:
    """Every pair that overlaps by more than `least`, which must be at least a half.

    Args:
        a: ellipses in an image.
        b: other ellipses, in the same image.
        least: intersection over union.
        measure: of overlap, for pairs that are near enough: `exact_overlap`, or VLB's raster.
        radius: every ellipse of a is scaled to it, and its partner by the same factor.
    """
    pairs = _in_windows(a, b, radius)
    ratio = pairs.left.radius / pairs.right.radius
    apart = np.linalg.norm(pairs.right.centre - pairs.left.centre, axis=1)
    likely = (np.minimum(ratio, 1 / ratio) ** 2 > least) & (apart < FAR * pairs.left.radius)
    pairs = pairs.where(likely)
    if radius is not None:
        factor = radius / pairs.left.radius
        pairs = replace(pairs, left=pairs.left.scaled(factor), right=pairs.right.scaled(factor))
    pairs = pairs.where(_hold_centres(pairs.left, pairs.right))
    pairs = pairs.where(_overlap(pairs.left, pairs.right, COARSE) > least - CERTAIN)
    overlap = measure(pairs.left, pairs.right)
    kept = overlap > least
    return Overlaps(pairs.row[kept], pairs.column[kept], overlap[kept])


@dataclass(frozen=True, eq=False)
class _Candidates:
    row: Int[np.ndarray, " pairs"]
    column: Int[np.ndarray, " pairs"]
    left: Ellipses
    right: Ellipses

    def where(self, kept: Bool[np.ndarray, " pairs"]) -> "_Candidates":
        rows = np.flatnonzero(kept)
        return _Candidates(
            self.row[rows], self.column[rows], self.left.take(rows), self.right.take(rows)
        )


def _in_windows(a: Ellipses, b: Ellipses, radius: float | None) -> _Candidates:
    """Pairs with centres near enough along x and y, in the order of a, then b."""
    factor = 1.0 if radius is None else radius / a.radius
    reach = np.minimum(REACH * factor * a.box[:, 0], FAR * a.radius)
    order = np.argsort(b.centre[:, 0], kind="stable")
    x = b.centre[order, 0]
    low = np.searchsorted(x, a.centre[:, 0] - reach)
    count = np.searchsorted(x, a.centre[:, 0] + reach, side="right") - low
    row = np.repeat(np.arange(len(a)), count)
    place = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
    column = order[low[row] + place]
    tall = np.abs(b.centre[column, 1] - a.centre[row, 1]) < (REACH * factor * a.box[:, 1])[row]
    row, column = row[tall], column[tall]
    first = np.lexsort((column, row))
    row, column = row[first], column[first]
    return _Candidates(row, column, a.take(row), b.take(column))


def _hold_centres(a: Ellipses, b: Ellipses) -> Bool[np.ndarray, " n"]:
    """Whether each ellipse of a pair contains its partner's centre, or nearly does."""
    offset = (b.centre - a.centre).T
    return np.logical_and(*(_form(_inverse(e.shape), *offset) < REACH**2 for e in (a, b)))


def exact_overlap(a: Ellipses, b: Ellipses) -> Float64[np.ndarray, " n"]:
    """Intersection over union of each ellipse with its partner; exact to 1e-5 if over a half."""
    rows = [np.arange(i, min(i + TOGETHER, len(a))) for i in range(0, len(a), TOGETHER)]
    each = [_overlap(a.take(some), b.take(some), FINE) for some in rows]
    return np.concatenate([np.empty(0), *each])


def _overlap(a: Ellipses, b: Ellipses, directions: int) -> Float64[np.ndarray, " n"]:
    """Intersection over union, by integration over directions from the centre of a.

    The plane is mapped so that a becomes the unit circle. In each direction, b covers the part of
    the radius from `near` to `far`, and far^2 - near^2 of the sector's area.
    """
    to_circle = np.linalg.inv(np.linalg.cholesky(a.shape))
    x, y = (to_circle @ (b.centre - a.centre)[:, :, None])[:, :, 0].T[:, :, None]
    form = _inverse(to_circle @ b.shape @ to_circle.swapaxes(1, 2))[:, None]
    angle = 2 * np.pi * np.arange(directions) / directions
    cos, sin = np.cos(angle), np.sin(angle)
    # The rim of b is where square r^2 - 2 along r + beyond = 0.
    square, beyond = _form(form, cos, sin), _form(form, x, y) - 1
    along = cos * (form[..., 0, 0] * x + form[..., 0, 1] * y)
    along += sin * (form[..., 0, 1] * x + form[..., 1, 1] * y)
    half = np.sqrt(np.maximum(along * along - square * beyond, 0))
    far, near = (np.clip((along + way * half) / square, 0, 1) for way in (1, -1))
    both = np.mean(far * far - near * near, axis=1)  # of the circle's area
    other = np.square(b.radius / a.radius)
    return both / (1 + other - both)


def _inverse(shape: Float64[np.ndarray, "n 2 2"]) -> Float64[np.ndarray, "n 2 2"]:
    """Inverse of symmetric 2 x 2 matrices."""
    inverse = np.empty_like(shape)
    xx, xy, yy = shape[:, 0, 0], shape[:, 0, 1], shape[:, 1, 1]
    determinant = xx * yy - xy * xy
    inverse[:, 0, 0], inverse[:, 1, 1] = yy / determinant, xx / determinant
    inverse[:, 0, 1] = inverse[:, 1, 0] = -xy / determinant
    return inverse


def _form(
    shape: Float64[np.ndarray, "*n 2 2"],
    x: Float64[np.ndarray, "..."],
    y: Float64[np.ndarray, "..."],
) -> Float64[np.ndarray, "..."]:
    """The quadratic form of a symmetric matrix."""
    return shape[..., 0, 0] * x * x + 2 * shape[..., 0, 1] * x * y + shape[..., 1, 1] * y * y
