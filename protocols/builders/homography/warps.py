"""Draws the regions of a point's patches, as a detector might find them in other pictures."""

import math

import numpy as np
from jaxtyping import Float64

from protocols.builders.homography.draws import normal
from protocols.builders.homography.strengths import Strengths
from protocols.imaging.frames import Frames, Maps, compose


def warps(draws: dict[str, Float64[np.ndarray, " n"]], strengths: Strengths) -> Maps:
    """Random homographies of the patch's square [-1, 1]^2; the identity at strength 0.

    In this order: perspective, stretch of one axis and shrinking of the other, rotation, change of
    scale, shift.
    """
    s, n = strengths, len(draws["turn"])
    turn = np.pi / 180 * s.turn * normal(draws["turn"])
    if s.any_turn:
        turn = 2 * np.pi * draws["turn"]
    scale = np.exp2(s.scale * normal(draws["scale"]))
    longer = np.exp2(s.stretch / 2 * normal(draws["stretch"]))
    cos, sin = np.cos(np.pi * draws["axis"]), np.sin(np.pi * draws["axis"])
    stretched = np.zeros((n, 3, 3))
    stretched[:, 0, 0] = 1 + (longer - 1) * cos * cos + (1 / longer - 1) * sin * sin
    stretched[:, 1, 1] = 1 + (longer - 1) * sin * sin + (1 / longer - 1) * cos * cos
    stretched[:, 0, 1] = stretched[:, 1, 0] = (longer - 1 / longer) * sin * cos
    stretched[:, 2, 2] = 1
    stretched[:, 2, :2] = s.perspective * normal(
        np.stack([draws["tilt_right"], draws["tilt_down"]], axis=1)
    )
    moved = np.zeros((n, 3, 3))
    moved[:, 0, 0] = moved[:, 1, 1] = scale * np.cos(turn)
    moved[:, 1, 0] = scale * np.sin(turn)
    moved[:, 0, 1] = -moved[:, 1, 0]
    moved[:, 0, 2] = s.shift / math.sqrt(2) * normal(draws["right"])
    moved[:, 1, 2] = s.shift / math.sqrt(2) * normal(draws["down"])
    moved[:, 2, 2] = 1
    return compose(moved, stretched)


def squares(maps: Float64[np.ndarray, "n 3 3"]) -> Frames:
    """The nearest square to each region, around its middle; a map's last number must be 1."""
    centre = maps[:, :2, 2]
    linear = maps[:, :2, :2] - centre[:, :, None] * maps[:, 2:, :2]
    half = np.sqrt(np.abs(np.linalg.det(linear)))
    angle = turn_of(linear)
    x, y = centre.T.copy()
    return Frames(x, y, half, np.cos(angle), np.sin(angle), np.zeros(len(maps)))


def turn_of(linear: Float64[np.ndarray, "n 2 2"]) -> Float64[np.ndarray, " n"]:
    """The rotation angle, in radians, of the similarity that is nearest to each matrix."""
    return np.arctan2(linear[:, 1, 0] - linear[:, 0, 1], linear[:, 0, 0] + linear[:, 1, 1])
