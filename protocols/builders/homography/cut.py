"""Cuts the patches of points out of their image, each in one sampling, and relights them."""

import numpy as np
from jaxtyping import UInt8

from protocols.builders.homography.light import AROUND, CANVAS, photograph
from protocols.builders.homography.points import Points
from protocols.builders.homography.strengths import Strengths
from protocols.builders.homography.warps import squares
from protocols.imaging.sampling import levels, middles, read
from protocols.phototour.writer import SIDE

READ = 4  # patches sampled at a time: their coordinates fit into the processor's cache


def cut(
    grey: UInt8[np.ndarray, "height width"],
    points: Points,
    *,
    strengths: Strengths,
    seed: int,
    image: int,
) -> UInt8[np.ndarray, "n versions 64 64"]:
    """The patches of each point, sampled from the image through their maps, then relit.

    Args:
        grey: the image.
        points: of the image.
        strengths: of the changes of light.
        seed: of the noise, together with `image`.
        image: a number of the image.
    """
    n, versions = points.maps.shape[:2]
    maps = points.maps.reshape(-1, 3, 3)
    patches = np.empty((len(maps), SIDE, SIDE), np.uint8)
    line = middles(SIDE)
    line = (np.arange(CANVAS) - AROUND) * (line[1] - line[0]) + line[0]
    draws = {name: values.ravel().tolist() for name, values in points.draws.items()}
    for rows, smoothed, _ in levels(grey.astype(np.float32), squares(maps).half / (SIDE / 2)):
        for i in range(0, len(rows), READ):
            chunk = rows[i : i + READ]
            canvases = read(smoothed, maps[chunk], line, line)
            for row, canvas in zip(chunk.tolist(), canvases, strict=True):
                patch_draws = {name: values[row] for name, values in draws.items()}
                number = int(points.number[row // versions])
                noise = (seed, image, number, 1 + row % versions)  # draws use three numbers only
                patches[row] = photograph(canvas, patch_draws, strengths, noise)
    return patches.reshape(n, versions, SIDE, SIDE)
