"""Affine regions of an image, and patches of them: the one place where conventions are written.

- Pixel centres lie at integers, the first at (0, 0); x runs to the right, y down. COLMAP's
  keypoints are half a pixel larger, Matlab's and VLFeat's a whole one.
- The matrix of a region maps its own unit circle to an ellipse around its centre in the image:
  (1, 0) to the point that its patch shows to the right of the middle, (0, 1) to the one below. The
  identity is upright and one pixel in radius.
- An angle turns from the x axis towards the y axis: clockwise, as an image is looked at.
- `extent` is half a side of a patch in radii of the region, from the middle to the outer edge of
  the outermost pixels: the "magnification" of papers. VLFeat counts to their centres.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int, UInt8

from harness.errors import InputError
from protocols.imaging.frames import Maps
from protocols.imaging.sampling import READ, Image, levels, middles, read, rounded

FLATTEST = 100.0  # largest ratio of a region's radii; detectors stop at 5 to 20
NEXT = 2**0.25  # levels are rounded by up to this factor of the step


@dataclass(frozen=True, eq=False)
class AffineFrames:
    """Elliptical regions in one image, with a direction each."""

    x: Float64[np.ndarray, " n"]  # centre, pixels
    y: Float64[np.ndarray, " n"]
    matrix: Float64[np.ndarray, "n 2 2"]  # from the unit circle to the ellipse, pixels
    score: Float64[np.ndarray, " n"]  # of the detector; larger is stronger

    def __len__(self) -> int:
        """How many there are."""
        return len(self.x)

    def take(self, rows: Int[np.ndarray, " m"]) -> "AffineFrames":
        """These regions, in this order."""
        return AffineFrames(*(values[rows] for values in vars(self).values()))


def from_similarity(
    x: Float64[np.ndarray, " n"],
    y: Float64[np.ndarray, " n"],
    scale: Float64[np.ndarray, " n"],
    angle: Float64[np.ndarray, " n"],
    score: Float64[np.ndarray, " n"] | None = None,
) -> AffineFrames:
    """Circular regions, as SIFT's detector finds them; without scores, all are alike.

    Args:
        x: of the centre, pixels.
        y: of the centre, pixels.
        scale: radius of the circle in pixels; half the `size` of an OpenCV keypoint.
        angle: from the image's x axis to the region's, radians.
        score: of the detector.
    """
    right, down = scale * np.cos(angle), scale * np.sin(angle)
    matrix = np.stack([np.stack([right, -down], axis=1), np.stack([down, right], axis=1)], axis=1)
    return AffineFrames(x, y, matrix, np.zeros_like(x) if score is None else score)


def image_from_patch(frames: AffineFrames, extent: float) -> Maps:
    """Maps from the square [-1, 1]^2 to the part of the image that each patch shows."""
    maps = np.zeros((len(frames), 3, 3))
    maps[:, :2, :2] = extent * frames.matrix
    maps[:, 0, 2] = frames.x
    maps[:, 1, 2] = frames.y
    maps[:, 2, 2] = 1
    return maps


def must_lie_on(frames: AffineFrames, width: int, height: int, what: str) -> None:
    """Refuse regions that no detector finds in an image of this size.

    A region is at most as large as the image (its larger radius is no more than the longer side),
    its centre lies no farther outside than its larger radius, and its radii differ by a factor of
    at most FLATTEST. Patches of others show only a repeated border, and take hours and gigabytes.

    Raises:
        InputError: if there is one; says which, and that it is of `what`.
    """
    numbers = np.concatenate([frames.x, frames.y, frames.matrix.ravel()])
    radii = np.zeros((len(frames), 2))
    if (np.abs(numbers) < 1e12).all():  # else neither finite nor near any image
        radii = np.linalg.svd(frames.matrix, compute_uv=False)
    large, small = radii.T
    good = (small > 0) & (large <= max(width, height)) & (large <= FLATTEST * small)
    good &= (frames.x >= -large) & (frames.x <= width - 1 + large)
    good &= (frames.y >= -large) & (frames.y <= height - 1 + large)
    if not good.all():
        bad = int(np.argmin(good))
        raise InputError(
            f"{what}: region {bad} of {len(frames)}, counted from 0, at ({frames.x[bad]:g},"
            f" {frames.y[bad]:g}) with radii {large[bad]:g} and {small[bad]:g} can't have been"
            f" found in an image of {width} x {height} pixels: the file is damaged, or of an image"
            " of another size; write it again"
        )


def affine_patches(
    image: Image, frames: AffineFrames, *, extent: float, side: int, smoothing: float = 0.0
) -> UInt8[np.ndarray, "n side side"]:
    """The patch of each region, one for every region; outside the image its border is repeated.

    What it shows is smoothed for the distance of its pixels in the image, apart in the ellipse's
    two directions: by 0.5 sqrt(s^2 - 1) where they lie s > 1 image pixels apart, the blur that a
    camera with such pixels would have added.

    Args:
        image: grey values, 0 to 255.
        frames: the regions.
        extent: half a side of the patch, in radii of the region.
        side: pixels of the patch.
        smoothing: least blur of the image, in radii of the region, the smaller where they differ;
            the image's own is taken to be half a pixel. VLFeat has 1, rounded down by a third or
            so to a level of its scale space.

    Raises:
        InputError: if a region is not finite.
    """
    maps = image_from_patch(frames, extent)
    if not np.isfinite(maps).all():
        bad = np.flatnonzero(~np.isfinite(maps).all(axis=(1, 2)))
        raise InputError(f"region {bad[0]} of {len(frames)} has a coordinate that is not finite")
    across, radius, _ = np.linalg.svd(frames.matrix)  # the larger radius first
    step = radius * (extent / (side / 2))
    line = middles(side)
    out = np.empty((len(frames), side, side), np.uint8)
    least = np.maximum(step[:, 1], 2 * smoothing * radius[:, 1])
    for rows, smoothed, done in levels(image, least):
        lacking = 0.5 * np.sqrt(np.maximum(step[rows, 0] ** 2 - done**2, 0))
        copies = np.where(step[rows, 0] > NEXT * done, 1 + 2 * np.ceil(2 * lacking / done), 1)
        for n in np.unique(copies.astype(int)).tolist():
            alike = copies == n
            chosen, along = rows[alike], lacking[alike, None] * across[rows[alike], :, 0]
            for i in range(0, len(chosen), READ):
                some = slice(i, i + READ)
                out[chosen[some]] = _mean_along(smoothed, maps[chosen[some]], along[some], n, line)
    return out


def _mean_along(
    image: Image,
    maps: Maps,
    along: Float64[np.ndarray, "n 2"],
    copies: int,
    line: Float64[np.ndarray, " side"],
) -> UInt8[np.ndarray, "n side side"]:
    """Patches blurred in one direction of the image: the mean of copies that are moved along it."""
    total = np.zeros((len(maps), len(line), len(line)), np.float32)
    for at, weight in zip(*_bell(copies), strict=True):
        moved = maps.copy()
        moved[:, :2, 2] += at * along
        total += weight * read(image, moved, line, line)
    return rounded(total)


def _bell(n: int) -> tuple[list[float], list[np.float32]]:
    """Places and weights of n samples of a Gaussian, cut off at 2, of variance 1 all the same."""
    if n == 1:
        return [0.0], [np.float32(1)]
    at = np.linspace(-2, 2, n)
    weight = np.exp(-0.5 * at * at)
    weight /= weight.sum()
    return list(at / np.sqrt(weight @ (at * at))), list(weight.astype(np.float32))
