"""Observations of points in images, and the squares around them that become patches.

Pixel (0, 0) is the centre of the upper left pixel, not its corner as in COLMAP.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float64, Int

from harness.errors import InputError
from protocols.imaging.frames import Frames

MAGNIFICATION = 6.0
"""Half a side of a patch / scale of its keypoint: SIFT has 4 x 4 cells of 3 scales each."""

HALF = 32.0
"""Half a side, in pixels, of a patch without a keypoint's scale: patch pixels = image pixels."""

Matrices = Float64[np.ndarray, "n 2 2"]
Places = Float64[np.ndarray, "n 2"]


@dataclass(frozen=True, eq=False)
class Observations:
    """Observations of points in images, one a row; the rows of a point are adjacent."""

    point: Int[np.ndarray, " n"]
    image: Int[np.ndarray, " n"]
    index: Int[np.ndarray, " n"]  # of the keypoint, in its image
    xyz: Float64[np.ndarray, "n 3"]  # of the point
    axes: Float64[np.ndarray, "n 3 2"]  # of the plane through the point that faces its cameras
    detected: Places  # pixels: the keypoint
    projected: Places  # pixels: the model's point, projected
    keypoint: Matrices | None  # from units of the keypoint's scale, along its axes, to pixels
    image_from_plane: Matrices  # from units of the model, along the axes, to pixels

    def __len__(self) -> int:
        """The number of observations."""
        return len(self.point)

    def take(self, rows: Int[np.ndarray, " m"]) -> "Observations":
        """The observations at these rows, in this order."""
        values: dict[str, Any] = {
            name: None if column is None else column[rows] for name, column in vars(self).items()
        }
        return Observations(**values)


def largest(seen: Observations) -> Int[np.ndarray, " n"]:
    """For each observation, the row of the observation that shows the same point largest."""
    pixels = np.linalg.det(seen.image_from_plane)  # the size of a surface element in each image
    return np.lexsort((seen.image, -pixels, seen.point))[np.searchsorted(seen.point, seen.point)]


def frames_detected(seen: Observations) -> Frames:
    """Squares as the detector found the keypoints in each image."""
    if seen.keypoint is None:
        raise InputError(
            "no scale and no direction of the keypoints is known: give --set database=FILE, or"
            " --set frames=projected"
        )
    return _frames(seen.detected, MAGNIFICATION * seen.keypoint)


def frames_projected(seen: Observations, reference: Int[np.ndarray, " n"]) -> Frames:
    """Squares that show the same piece of the plane through a point in all images.

    Args:
        seen: the observations.
        reference: for each observation, the row of its point's reference observation. Its keypoint
            gives size and direction. Without keypoints, the piece is upright in the reference, and
            its half side is `HALF` pixels in the image that shows the point smallest.
    """
    reference_from_plane = seen.image_from_plane[reference]
    if seen.keypoint is not None:
        plane_from_patch = np.linalg.inv(reference_from_plane) @ (
            MAGNIFICATION * seen.keypoint[reference]
        )
    else:
        plane_from_patch = np.linalg.inv(reference_from_plane)
        pixels = np.sqrt(np.abs(np.linalg.det(seen.image_from_plane @ plane_from_patch)))
        smallest = np.full(len(seen), np.inf)
        np.minimum.at(smallest, reference, pixels)
        plane_from_patch *= (HALF / smallest[reference])[:, None, None]
    return _frames(seen.projected, seen.image_from_plane @ plane_from_patch)


def on_plane(
    seen: Observations, frames: Frames
) -> tuple[Float64[np.ndarray, " n"], Float64[np.ndarray, " n"]]:
    """Half a side of each patch in units of the model, and its direction on the point's plane.

    Both are equal for patches of one point that show the same piece of the plane.
    """
    square = np.stack([frames.cos, -frames.sin, frames.sin, frames.cos], 1).reshape(-1, 2, 2)
    maps = np.linalg.inv(seen.image_from_plane) @ (frames.half[:, None, None] * square)
    return size(maps), direction(maps)


def _frames(centre: Float64[np.ndarray, "n 2"], image_from_patch: Matrices) -> Frames:
    """The squares nearest to the parallelograms to which the matrices map [-1, 1]^2."""
    angle = direction(image_from_patch)
    x, y = centre.T.copy()
    half = size(image_from_patch)
    return Frames(x, y, half, np.cos(angle), np.sin(angle), np.zeros(len(x)))


def size(maps: Matrices) -> Float64[np.ndarray, " n"]:
    """The scale factor of each map: the geometric mean over directions."""
    return np.sqrt(np.abs(np.linalg.det(maps)))


def direction(maps: Matrices) -> Float64[np.ndarray, " n"]:
    """The angle of the rotation nearest to each map, in radians."""
    return np.arctan2(maps[:, 1, 0] - maps[:, 0, 1], maps[:, 0, 0] + maps[:, 1, 1])
