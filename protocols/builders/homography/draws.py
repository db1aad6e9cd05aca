"""Random numbers of each patch: from the seed, its image and its point's number, and no more."""

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
"""Numbers in [0, 1) by what they decide."""


def draw(
    seed: int, image: int, points: Sequence[int], versions: int
) -> dict[str, Float64[np.ndarray, "n versions"]]:
    """Draws for some versions of each point; the first ones are the same if there are more."""
    names = GEOMETRY + LIGHT
    drawn = [uniform((seed, image, point), versions, len(names)) for point in points]
    found = np.array(drawn).reshape(len(points), versions, len(names))
    return {name: found[..., column] for column, name in enumerate(names)}


def normal(uniform: Float64[np.ndarray, "*shape"]) -> Float64[np.ndarray, "*shape"]:
    """Standard normal numbers, cut off at `CUT`, from even ones in [0, 1)."""
    tail = ndtr(-CUT)
    return ndtri(tail + (1 - 2 * tail) * uniform)
