"""How much the patches of a point differ from each other."""

from collections.abc import Mapping
from dataclasses import dataclass

from harness.errors import InputError


@dataclass(frozen=True, kw_only=True)
class Strengths:
    """The strength of each kind of change; 0 turns a kind off and leaves the others as they are.

    "Normal" gives the standard deviation of a normal distribution, cut off at three standard
    deviations; "uniform" gives the largest value. All patches of a point are drawn independently
    from the same distributions. Each kind has its own draws, so that changing one strength does
    not change the effects of the others.
    """

    # Errors of a detector: the region that is cut out.
    turn: float = 14.0  # degrees off the point's direction, normal
    any_turn: bool = False  # replaces `turn`: the direction is uniform over the full circle
    scale: float = 0.22  # octaves of size, normal
    stretch: float = 0.3  # octaves of the ratio of the longest axis to the shortest, normal
    shift: float = 0.12  # half sides of the patch, root mean square; normal along both axes
    perspective: float = 0.03  # change of depth across half a side, normal, along each axis

    # The camera. Lengths are in pixels of a patch that is scaled to 32 x 32.
    blur: float = 2.6  # largest standard deviation; uniform from 0
    blur_share: float = 0.4  # share of patches
    motion: float = 6.0  # longest path of motion blur; uniform from 0
    motion_share: float = 0.1  # share of patches
    gamma: float = 0.35  # octaves of the exponent, normal
    contrast: float = 0.35  # octaves of the factor, normal
    faint: float = 2.5  # most octaves of contrast lost in faint patches; uniform from 0
    faint_share: float = 0.1  # share of patches
    brightness: float = 20.0  # grey values, normal
    noise: float = 8.0  # largest standard deviation in grey values; uniform from 0
    jpeg: float = 90.0  # 100 - lowest quality; uniform from a third of this value
    jpeg_share: float = 0.25  # share of patches
    coarse: float = 1.6  # most octaves that camera pixels are larger than the patch's; uniform

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
"""The largest value of each strength, unless it is 1."""


def check(given: Mapping[str, float], most: Mapping[str, float]) -> None:
    """Refuse strengths below 0 or above their largest value; that is 1 if `most` has none.

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
