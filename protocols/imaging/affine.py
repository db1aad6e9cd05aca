"""Affine regions of an image and their patches. The conventions of all regions are these:

- Pixel centres lie at integers, the first at (0, 0); x runs to the right, y down. COLMAP's
  keypoint coordinates are larger by 0.5, Matlab's and VLFeat's by 1.
- The matrix of a region maps the unit circle to an ellipse around the region's centre in the image.
  The patch shows the image of (1, 0) to the right of its middle and the image of (0, 1) below it.
  The identity is upright, with a radius of one pixel.
- An angle turns from the x axis towards the y axis: clockwise on the displayed image.
- `extent` is half a side of a patch in radii of the region, measured from the middle to the outer
  edge of the outermost pixels. Papers call it "magnification". VLFeat measures to pixel centres.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int, UInt8

from harness.errors import InputError
from protocols.imaging.frames import Maps
from protocols.imaging.sampling import READ, Image, levels, middles, read, rounded

FLATTEST = 100.0  # largest ratio of a region's radii; detectors stop at 5 to 20
ROUND = 1e-6  # largest relative deviation of a circle's matrix from that of a similarity
NEXT = 2**0.25  # a level's step differs from the wanted step by up to this factor


@dataclass(frozen=True, eq=False)
class AffineFrames:
    """Elliptical regions in one image, each with a direction."""

    x: Float64[np.ndarray, " n"]  # centre, pixels
    y: Float64[np.ndarray, " n"]
    matrix: Float64[np.ndarray, "n 2 2"]  # from the unit circle to the ellipse, pixels
    score: Float64[np.ndarray, " n"]  # of the detector; larger is stronger

    def __len__(self) -> int:
        """The number of regions."""
        return len(self.x)

    def take(self, rows: Int[np.ndarray, " m"]) -> "AffineFrames":
        """The regions at these rows, in this order."""
        return AffineFrames(*(values[rows] for values in vars(self).values()))


def from_similarity(
    x: Float64[np.ndarray, " n"],
    y: Float64[np.ndarray, " n"],
    scale: Float64[np.ndarray, " n"],
    angle: Float64[np.ndarray, " n"],
    score: Float64[np.ndarray, " n"] | None = None,
) -> AffineFrames:
    """Circular regions, as SIFT's detector finds them; without scores, each score is 0.

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


def are_circles(frames: AffineFrames) -> bool:
    """Whether every region is a circle that is not mirrored, up to rounding."""
    (a, b), (c, d) = np.moveaxis(frames.matrix, 0, 2)
    off = np.maximum(np.abs(a - d), np.abs(b + c))
    return bool((off <= ROUND * np.maximum(np.abs(a), np.abs(c))).all())


def scale_and_angle(
    frames: AffineFrames,
) -> tuple[Float64[np.ndarray, " n"], Float64[np.ndarray, " n"]]:
    """Radius of the circle of equal area, pixels, and the angle of the region's x axis, radians."""
    scale = np.sqrt(np.abs(np.linalg.det(frames.matrix)))
    return scale, np.arctan2(frames.matrix[:, 1, 0], frames.matrix[:, 0, 0])


def image_from_patch(frames: AffineFrames, extent: float) -> Maps:
    """The map from the square [-1, 1]^2 to the part of the image that each patch shows."""
    maps = np.zeros((len(frames), 3, 3))
    maps[:, :2, :2] = extent * frames.matrix
    maps[:, 0, 2] = frames.x
    maps[:, 1, 2] = frames.y
    maps[:, 2, 2] = 1
    return maps


def must_lie_on(frames: AffineFrames, width: int, height: int, subject: str) -> None:
    """Refuse regions that no detector can find in an image of this size.

    The larger radius must not exceed the longer side of the image. The centre must lie no farther
    outside than the larger radius. The radii may differ by a factor of at most FLATTEST. Patches of
    other regions would show only a repeated border, and take hours and gigabytes.

    Raises:
        InputError: if there is such a region; the message begins with `subject` and the region.
    """
    numbers = np.concatenate([frames.x, frames.y, frames.matrix.ravel()])
    radii = np.zeros((len(frames), 2))
    if (np.abs(numbers) < 1e12).all():  # otherwise not finite, or far from any image
        radii = np.linalg.svd(frames.matrix, compute_uv=False)
    large, small = radii.T
    good = (small > 0) & (large <= max(width, height)) & (large <= FLATTEST * small)
    good &= (frames.x >= -large) & (frames.x <= width - 1 + large)
    good &= (frames.y >= -large) & (frames.y <= height - 1 + large)
    if not good.all():
        bad = int(np.argmin(good))
        raise InputError(
            f"{subject}: region {bad} of {len(frames)}, counted from 0, at ({frames.x[bad]:g},"
            f" {frames.y[bad]:g}) with radii {large[bad]:g} and {small[bad]:g} can't have been"
            f" found in an image of {width} x {height} pixels: the file is damaged, or of an image"
            " of another size; write it again"
        )


def affine_patches(
    image: Image, frames: AffineFrames, *, extent: float, side: int, smoothing: float = 0.0
) -> UInt8[np.ndarray, "n side side"]:
    """The patch of each region; outside the image the border is repeated.

    The image is smoothed for the distance between the patch's pixels, separately along the two axes
    of the ellipse. If pixels lie s > 1 image pixels apart, the blur is 0.5 sqrt(s^2 - 1): a camera
    with pixels of that size would have added it.

    Args:
        image: grey values, 0 to 255.
        frames: the regions.
        extent: half a side of the patch, in radii of the region.
        side: pixels of the patch.
        smoothing: least blur, in units of the region's smaller radius; the image itself is taken
            to have a blur of half a pixel. VLFeat uses 1, rounded down by up to about a third to
            a level of its scale space.

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
    """Patches blurred in one image direction: the weighted mean of copies shifted along it."""
    total = np.zeros((len(maps), len(line), len(line)), np.float32)
    for at, weight in zip(*_bell(copies), strict=True):
        moved = maps.copy()
        moved[:, :2, 2] += at * along
        total += weight * read(image, moved, line, line)
    return rounded(total)


def _bell(n: int) -> tuple[list[float], list[np.float32]]:
    """Places and weights of n samples of a Gaussian, cut off at 2, rescaled to variance 1."""
    if n == 1:
        return [0.0], [np.float32(1)]
    at = np.linspace(-2, 2, n)
    weight = np.exp(-0.5 * at * at)
    weight /= weight.sum()
    return list(at / np.sqrt(weight @ (at * at))), list(weight.astype(np.float32))
