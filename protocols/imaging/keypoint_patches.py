"""Cuts the patches of keypoints as the official scripts of the ETH benchmark do, with VLFeat."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, UInt8

from harness.errors import InputError
from protocols.imaging.affine import AffineFrames, affine_patches, image_from_patch
from protocols.imaging.frames import inside
from protocols.imaging.sampling import Image

# These values give the patches that VLFeat cuts in the official scripts. The scripts ask VLFeat for
# a smoothing of 1. VLFeat reads the coarsest level of its scale space that is not coarser than
# that, so the real smoothing is 0.63 to 1; the constant 0.8 is closest to it.
EXTENT, SIDE, SMOOTHING = 7.5, 65, 0.8


@dataclass(frozen=True, kw_only=True)
class KeypointCut:
    """How the patches of keypoints are cut.

    Raises:
        InputError: if a number is out of range.
    """

    side: int = SIDE  # of a patch, pixels
    extent: float = EXTENT  # from the middle to the centres of the outermost pixels, in scales
    smoothing: float = SMOOTHING  # blur of a patch, in scales of the keypoint

    def __post_init__(self) -> None:
        """Refuse numbers that cut no patch."""
        if self.side < 1 or not 0 < self.extent < np.inf or not 0 <= self.smoothing < np.inf:
            raise InputError(
                f"side {self.side}, extent {self.extent}, smoothing {self.smoothing}: side must be"
                " at least 1, extent above 0, and smoothing at least 0"
            )

    def patches(self, grey: Image, frames: AffineFrames) -> UInt8[np.ndarray, "n side side"]:
        """One patch for each keypoint, in order; outside the image the border is repeated."""
        return affine_patches(
            grey, frames, extent=self._radii, side=self.side, smoothing=self.smoothing
        )

    def inside(self, frames: AffineFrames, height: int, width: int) -> Bool[np.ndarray, " n"]:
        """Whether the whole patch of each keypoint lies on the image."""
        return inside(image_from_patch(frames, self._radii), height, width)

    @property
    def _radii(self) -> float:
        """Half a side to the outer edge of the outermost pixels; VLFeat measures to the centres."""
        return self.extent * self.side / max(self.side - 1, 1)


USUAL = KeypointCut()
