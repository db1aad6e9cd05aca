"""Which points of an image become patches, and the regions of each one's patches."""

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

CELLS = 4  # along each side of an image: points are taken from all of them in turn
FALL = 2.0  # so many times as many points as in the next octave of scales
OVERLAP = 0.3
"""Most of their union that two points' squares share: no jitter must turn one into the other."""
TRIED, SPARE = 10, 500  # candidates for each point that is wanted, and in any case


@dataclass(frozen=True, eq=False)
class Points:
    """Points of one image: their squares, and of each of their patches the region and the draws."""

    frames: Frames
    number: Int[np.ndarray, " n"]  # among the candidates, which its draws come from
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
    """Points all of whose patches lie on the image; more of them are the same ones and others.

    Args:
        grey: the image.
        most: points wanted.
        versions: patches of each.
        magnification: half a side of a patch, in scales of its point.
        strengths: of their differences.
        seed: of the differences, together with
        image: a number of the image.
    """
    found = candidates(grey, TRIED * most + SPARE, magnification)
    number = np.flatnonzero(inside(image_from_patch(found), *grey.shape))
    draws = draw(seed, image, number.tolist(), versions)
    jitter = warps({name: values.ravel() for name, values in draws.items()}, strengths)
    squares = image_from_patch(found.take(number))
    maps = compose(np.repeat(squares, versions, axis=0), jitter)
    visible = inside(maps, *grey.shape).reshape(len(number), versions).all(axis=1)
    rows = np.flatnonzero(visible)[:most]
    return Points(
        found.take(number[rows]),
        number[rows],
        maps.reshape(len(number), versions, 3, 3)[rows],
        {name: values[rows] for name, values in draws.items()},
    )


def candidates(grey: UInt8[np.ndarray, "height width"], most: int, magnification: float) -> Frames:
    """Blobs and corners that don't overlap much, spread over the image and over scales.

    In their order the two kinds alternate, small ones come as much more often than large ones as
    `FALL` says, and within a kind and an octave all parts of the image come before any comes again.
    """
    both = [detect(grey), corners(grey)]
    kind = np.repeat([0, 1], [len(found) for found in both])
    columns = zip(*(vars(found).values() for found in both), strict=True)
    found = Frames(*(np.concatenate(parts) for parts in columns))
    found = replace(found, half=found.half * (magnification / frames.MAGNIFICATION))
    scale = found.half / magnification
    group = 2 * octave(scale) + kind
    height, width = grey.shape
    column, row = (found.x * CELLS / width).astype(int), (found.y * CELLS / height).astype(int)
    in_cell = _before((group * CELLS + row) * CELLS + column)
    order = np.argsort(in_cell, kind="stable")
    turn = np.empty(len(found))
    turn[order] = _before(group[order])
    order = np.argsort((turn + 0.5) * FALL ** octave(scale), kind="stable")[:most]
    found = found.take(order)
    return found.take(np.flatnonzero(thin(found, OVERLAP)))


def octave(scale: Float64[np.ndarray, " n"], smallest: float = SMALLEST) -> Int[np.ndarray, " n"]:
    """Of the scale of points, from 0, that of the smallest."""
    return np.floor(np.log2(scale / smallest) + 1e-6).astype(np.int64)


def _before(value: Int[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
    """How many earlier ones have the same value."""
    order = np.argsort(value, kind="stable")
    count = np.empty(len(value), np.int64)
    count[order] = np.arange(len(value)) - np.searchsorted(value[order], value[order])
    return count
