"""Chooses the points of an image that become patches, and draws the regions of their patches."""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float64, Int, UInt8

from protocols.builders.homography.draws import Draws, draw
from protocols.builders.homography.strengths import Strengths
from protocols.builders.homography.warps import warps
from protocols.imaging import frames
from protocols.imaging.corners import corners
from protocols.imaging.detect import SMALLEST, detect
from protocols.imaging.frames import Frames, compose, image_from_patch, inside, thin

CELLS = 4  # cells along each side of an image; points are taken from all cells in turn
FALL = 2.0  # number of points in an octave of scale / number in the next larger octave
OVERLAP = 0.3
"""Largest intersection over union of two points' squares: no jitter may turn one into the other."""
TRIED, SPARE = 10, 500  # candidates per wanted point, plus a constant


@dataclass(frozen=True, eq=False)
class Points:
    """Points of one image: their squares, and the region and the draws of each patch."""

    frames: Frames
    number: Int[np.ndarray, " n"]  # index among the candidates, which seeds the point's draws
    maps: Float64[np.ndarray, "n versions 3 3"]  # from [-1, 1]^2 to the image
    draws: Draws  # [n, versions] each


def choose(
    grey: UInt8[np.ndarray, "height width"],
    *,
    most: int,
    versions: int,
    magnification: float,
    strengths: Strengths,
    seed: int,
    image: int,
) -> Points:
    """Points whose patches all lie on the image; a larger `most` keeps the same first points.

    Args:
        grey: the image.
        most: number of wanted points.
        versions: patches of each point.
        magnification: half a side of a patch, in units of its point's scale.
        strengths: of the differences between versions.
        seed: of the differences, together with `image`.
        image: a number of the image.
    """
    regions = candidates(grey, TRIED * most + SPARE, magnification)
    number = np.flatnonzero(inside(image_from_patch(regions), *grey.shape))
    draws = draw(seed, image, number.tolist(), versions)
    jitter = warps({name: values.ravel() for name, values in draws.items()}, strengths)
    squares = image_from_patch(regions.take(number))
    maps = compose(np.repeat(squares, versions, axis=0), jitter)
    visible = inside(maps, *grey.shape).reshape(len(number), versions).all(axis=1)
    rows = np.flatnonzero(visible)[:most]
    return Points(
        regions.take(number[rows]),
        number[rows],
        maps.reshape(len(number), versions, 3, 3)[rows],
        {name: values[rows] for name, values in draws.items()},
    )


def candidates(grey: UInt8[np.ndarray, "height width"], most: int, magnification: float) -> Frames:
    """Blobs and corners that don't overlap much, spread over the image and over scales.

    The order alternates between the two kinds. An octave has `FALL` times as many points as the
    next larger one. Within a kind and an octave, the cells of the image take turns.
    """
    both = [detect(grey), corners(grey)]
    kind = np.repeat([0, 1], [len(regions) for regions in both])
    columns = zip(*(vars(regions).values() for regions in both), strict=True)
    regions = Frames(*(np.concatenate(parts) for parts in columns))
    regions = replace(regions, half=regions.half * (magnification / frames.MAGNIFICATION))
    scale = regions.half / magnification
    group = 2 * octave(scale) + kind
    height, width = grey.shape
    column, row = (regions.x * CELLS / width).astype(int), (regions.y * CELLS / height).astype(int)
    in_cell = _before((group * CELLS + row) * CELLS + column)
    order = np.argsort(in_cell, kind="stable")
    turn = np.empty(len(regions))
    turn[order] = _before(group[order])
    order = np.argsort((turn + 0.5) * FALL ** octave(scale), kind="stable")[:most]
    regions = regions.take(order)
    return regions.take(np.flatnonzero(thin(regions, OVERLAP)))


def octave(scale: Float64[np.ndarray, " n"], smallest: float = SMALLEST) -> Int[np.ndarray, " n"]:
    """The octave of each scale, from 0; octave 0 begins at `smallest`."""
    return np.floor(np.log2(scale / smallest) + 1e-6).astype(np.int64)


def _before(value: Int[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
    """For each value, how many earlier values are equal to it."""
    order = np.argsort(value, kind="stable")
    count = np.empty(len(value), np.int64)
    count[order] = np.arange(len(value)) - np.searchsorted(value[order], value[order])
    return count
