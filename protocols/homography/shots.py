"""The patches of one image, kept in a file until the whole set is written."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float64, UInt8

from harness import atomic
from protocols.homography.cut import cut
from protocols.homography.points import choose
from protocols.homography.strengths import Strengths
from protocols.homography.warps import squares
from protocols.images.frames import Frames
from protocols.images.sequences import read_grey
from protocols.phototour.observations import MAGNIFICATION
from protocols.phototour.patches import correlation


class UselessImageError(ValueError):
    """There is nothing in an image to make patches of."""


@dataclass(frozen=True, eq=False)
class Shot:
    """One image's points, with their patches in a file; point after point."""

    file: Path
    squares: Frames  # of the points
    interest: Float64[np.ndarray, "patches 4"]  # x, y, direction and scale of each patch
    correlation: Float64[np.ndarray, "points 2"]  # of two versions, and of two points' (or NaN)

    def patches(self) -> UInt8[np.ndarray, "patches 64 64"]:
        """They are read anew each time."""
        with np.load(self.file) as kept:
            patches: UInt8[np.ndarray, "patches 64 64"] = kept["patches"]
        return patches


def shoot(
    work: Path,
    file: Path,
    sha256: str,
    *,
    points: int,
    versions: int,
    seed: int,
    strengths: Strengths,
) -> Shot:
    """Make the patches of an image, or find them in the folder, made before.

    Raises:
        UselessImageError: if the image can't be read, or has no points.
    """
    target = work / f"{sha256}.npz"
    if not target.is_file():
        _make(target, file, int(sha256[:16], 16), points, versions, seed, strengths)
    with np.load(target) as kept:
        return Shot(target, Frames(*kept["squares"]), kept["interest"], kept["correlation"])


def _make(
    target: Path,
    file: Path,
    image: int,
    points: int,
    versions: int,
    seed: int,
    strengths: Strengths,
) -> None:
    try:
        grey = read_grey(file)
    except ValueError as error:
        raise UselessImageError(str(error)) from error
    chosen = choose(
        grey, most=points, versions=versions, strengths=strengths, seed=seed, image=image
    )
    n = len(chosen.frames)
    if not n:
        height, width = grey.shape
        raise UselessImageError(f"no point in {width} x {height} pixels whose patches lie on them")
    patches = cut(grey, chosen, strengths=strengths, seed=seed, image=image)
    own = squares(chosen.maps.reshape(-1, 3, 3))
    direction = np.arctan2(own.sin, own.cos)
    compared = np.full((n, 2), np.nan)
    compared[:, 0] = correlation(patches[:, 0], patches[:, 1])
    if n > 1:
        compared[1:, 1] = correlation(patches[1:, 0], patches[:-1, 1])
    with atomic.writing(target) as stream:
        np.savez(
            stream,
            squares=np.stack(list(vars(chosen.frames).values())),
            interest=np.stack([own.x, own.y, direction, np.log2(own.half / MAGNIFICATION)], axis=1),
            correlation=compared,
            patches=patches.reshape(-1, *patches.shape[2:]),
        )
