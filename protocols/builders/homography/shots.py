"""The patches of one image, kept in a file until the whole set is written."""

from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO, RawIOBase
from pathlib import Path

import cv2
import numpy as np
from jaxtyping import Float64, UInt8

from harness.cache import Cache
from harness.errors import InputError
from protocols.imaging.agreement import correlation
from protocols.imaging.frames import Frames
from protocols.imaging.grey import Grey, read_grey
from protocols.imaging.same_photograph import Cuts, fingerprints
from protocols.phototour.writer import SIDE

MOST_VERSIONS = 100
MOST_MAGNIFICATION = 12.0


@dataclass(frozen=True)
class Asked:
    """The settings that all builders of patches from single images share.

    Raises:
        InputError: if a number is out of range.
    """

    points: int  # most points of each image
    versions: int  # patches of each point
    magnification: float  # half a side of a patch, in units of its point's scale
    seed: int
    longest_side: int | None = None  # pixels; larger images are made smaller first

    def __post_init__(self) -> None:
        """Refuse numbers out of range."""
        if not 1 <= self.magnification <= MOST_MAGNIFICATION:
            raise InputError(
                f"magnification is {self.magnification}: give a number from 1 to"
                f" {MOST_MAGNIFICATION:g}"
            )
        if self.points < 1 or not 2 <= self.versions <= MOST_VERSIONS or self.seed < 0:
            raise InputError(
                f"points is {self.points}, versions {self.versions}, seed {self.seed}: give at"
                f" least 1 point, from 2 to {MOST_VERSIONS} versions and a seed from 0"
            )
        if self.longest_side is not None and self.longest_side < SIDE:
            raise InputError(
                f"longest_side is {self.longest_side}: give at least {SIDE} pixels, or leave it out"
            )


class UselessImageError(InputError):
    """An image has no point that could become a patch, or can't be read."""


def reduced(grey: Grey, longest_side: int | None) -> UInt8[np.ndarray, "rows columns"]:
    """An image whose longer side is at most `longest_side`; its pixels are means over areas."""
    longest = max(grey.shape)
    if longest_side is None or longest <= longest_side:
        return grey
    rows, columns = (max(1, round(n * longest_side / longest)) for n in grey.shape)
    return np.asarray(cv2.resize(grey, (columns, rows), interpolation=cv2.INTER_AREA))


def interest_of(squares: Frames, magnification: float) -> Float64[np.ndarray, "patches 4"]:
    """x, y, direction in radians and binary logarithm of the scale, as in `interest.txt`."""
    scale = np.log2(squares.half / magnification)
    return np.stack([squares.x, squares.y, np.arctan2(squares.sin, squares.cos), scale], axis=1)


@dataclass(frozen=True, eq=False)
class Made:
    """The patches of an image's points."""

    squares: Frames  # of the points
    interest: Float64[np.ndarray, "points versions 4"]  # x, y, direction and scale of each patch
    patches: UInt8[np.ndarray, "points versions 64 64"]


@dataclass(frozen=True, eq=False)
class Shot:
    """One image's points; their patches are in a file, sorted by point."""

    file: Path
    squares: Frames  # of the points
    interest: Float64[np.ndarray, "patches 4"]  # x, y, direction and scale of each patch
    correlation: Float64[np.ndarray, "points 2"]  # of two versions; of two points' patches, or NaN
    fingerprints: Cuts  # of the whole image

    def patches(self) -> UInt8[np.ndarray, "patches 64 64"]:
        """The patches, read from the file at each call."""
        with np.load(self.file) as kept:
            patches: UInt8[np.ndarray, "patches 64 64"] = kept["patches"]
        return patches


def shot(
    work: Path,
    file: Path,
    sha256: str,
    *,
    make: Callable[[Grey, int], Made],
    longest_side: int | None = None,
) -> Shot:
    """The patches of one image, made now or read from the work folder.

    Args:
        work: the work folder.
        file: the image.
        sha256: of the image file; the key of the kept patches.
        make: called with the grey values and a number of the image that seeds its random draws.
        longest_side: in pixels, to which a larger image is reduced; None: no image is.

    Raises:
        UselessImageError: if the image can't be read, or has no points.
    """

    def write(stream: RawIOBase) -> None:
        try:
            read = read_grey(file)
        except ValueError as error:
            raise UselessImageError(str(error)) from error
        grey = reduced(read, longest_side)
        made = make(grey, int(sha256[:16], 16))
        if not len(made.squares):
            height, width = grey.shape
            raise UselessImageError(
                f"no point in {width} x {height} pixels has all its patches on the image"
            )
        stream.write(_contents(made, fingerprints(read)))

    target = Cache(work).file({"image": sha256}, write)
    with np.load(target) as kept:  # ignores the checksum at the end of the file
        facts = (kept[name] for name in ("interest", "correlation", "fingerprints"))
        return Shot(target, Frames(*kept["squares"]), *facts)


def _contents(made: Made, cuts: Cuts) -> bytes:
    patches = made.patches
    compared = np.full((len(patches), 2), np.nan)
    compared[:, 0] = correlation(patches[:, 0], patches[:, 1])
    if len(patches) > 1:
        compared[1:, 1] = correlation(patches[1:, 0], patches[:-1, 1])
    stream = BytesIO()
    np.savez(
        stream,
        squares=np.stack(list(vars(made.squares).values())),
        interest=made.interest.reshape(-1, 4),
        correlation=compared,
        fingerprints=cuts,
        patches=patches.reshape(-1, *patches.shape[2:]),
    )
    return stream.getvalue()
