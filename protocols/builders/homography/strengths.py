"""How much the patches of a point differ from each other."""

from collections.abc import Mapping
from dataclasses import dataclass

from harness.errors import InputError


@dataclass(frozen=True, kw_only=True)
class Strengths:
    """Of each kind of change how strong it is; 0 turns it off, whatever else is on.

    "Normal" is a normal distribution cut off at three standard deviations. A point's patches are
    all drawn alike and independently; each kind has draws of its own, so that a change of one
    strength leaves the others' effects as they were.
    """

    # Errors of a detector: the region that is cut out.
    turn: float = 14.0  # degrees off the point's direction, the standard deviation of a normal
    any_turn: bool = False  # instead, any direction is as likely as any other
    scale: float = 0.22  # octaves of size, normal
    stretch: float = 0.3  # octaves between the longest axis and the shortest one, normal
    shift: float = 0.12  # half sides of the patch, root mean square; normal along both axes
    perspective: float = 0.03  # depth over half a side, normal, along each axis

    # The camera. Lengths are in pixels of a patch that is scaled to 32 x 32.
    blur: float = 2.6  # largest standard deviation; evenly from 0
    blur_share: float = 0.4  # of patches
    motion: float = 6.0  # longest way; evenly from 0
    motion_share: float = 0.1  # of patches
    gamma: float = 0.35  # octaves of the exponent, normal
    contrast: float = 0.35  # octaves of the factor, normal
    faint: float = 2.5  # most octaves of contrast lost in faint patches; evenly from 0
    faint_share: float = 0.1  # of patches
    brightness: float = 20.0  # grey values, normal
    noise: float = 8.0  # largest standard deviation in grey values; evenly from 0
    jpeg: float = 90.0  # 100 less the lowest quality; evenly from a third of it
    jpeg_share: float = 0.25  # of patches
    coarse: float = 1.6  # most octaves from the patch's pixels to those of noise and JPEG

    def __post_init__(self) -> None:
        """Refuse strengths below 0 or above MOST."""
        check(vars(self), MOST)


MOST = {
    "turn": 60.0,
    "stretch": 0.6,
    "shift": 0.5,
    "perspective": 0.1,
    "blur": 4.0,
    "motion": 10.0,
    "faint": 4.0,
    "brightness": 100.0,
    "noise": 60.0,
    "jpeg": 99.0,
    "coarse": 2.0,
}
"""The largest value of each strength, where it isn't 1."""


def check(given: Mapping[str, float], most: Mapping[str, float]) -> None:
    """Refuse strengths below 0 or above the largest value of each, which is 1 where none is told.

    Raises:
        InputError: names the strength.
    """
    for name, value in given.items():
        if not 0 <= value <= most.get(name, 1.0):  # nor NaN
            raise InputError(
                f"{name} is {value}: give a number from 0, which turns it off, to"
                f" {most.get(name, 1.0)}"
            )


DEFAULT = Strengths()
