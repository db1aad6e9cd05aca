"""Random numbers of each patch; they depend only on the seed, the image and the point's number."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64
from scipy.special import ndtr, ndtri

from protocols.imaging.frames import uniform

GEOMETRY = ("turn", "scale", "stretch", "axis", "right", "down", "tilt_right", "tilt_down")
LIGHT = (
    "blur_share", "blur", "motion_share", "motion", "heading", "gamma", "contrast", "faint_share",
    "faint", "brightness", "noise", "coarse", "jpeg_share", "jpeg", "phase_right", "phase_down",
)  # fmt: skip
CUT = 3.0  # standard deviations at which normal distributions are cut off

Draws = dict[str, Float64[np.ndarray, "*shape"]]
"""Uniform random numbers in [0, 1), by the name of what they decide."""


def draw(
    seed: int, image: int, points: Sequence[int], versions: int
) -> dict[str, Float64[np.ndarray, "n versions"]]:
    """Draws for the versions of each point; more versions do not change the draws of the first."""
    names = GEOMETRY + LIGHT
    drawn = [uniform((seed, image, point), versions, len(names)) for point in points]
    numbers = np.array(drawn).reshape(len(points), versions, len(names))
    return {name: numbers[..., column] for column, name in enumerate(names)}


def normal(uniform: Float64[np.ndarray, "*shape"]) -> Float64[np.ndarray, "*shape"]:
    """Standard normal numbers, cut off at `CUT`, from uniform numbers in [0, 1)."""
    tail = ndtr(-CUT)
    return ndtri(tail + (1 - 2 * tail) * uniform)
