"""Cuts out the patches of keypoints, as VLFeat does in the official scripts of ETH's benchmark."""

import numpy as np
from jaxtyping import UInt8

from protocols.imaging.affine import AffineFrames, affine_patches
from protocols.imaging.grey import Grey

# These values give the patches that VLFeat cuts in the official scripts. The scripts ask VLFeat for
# a smoothing of 1. VLFeat reads the coarsest level of its scale space that is not coarser than
# that, so the real smoothing is 0.63 to 1; the constant 0.8 is closest to it.
EXTENT, SIDE, SMOOTHING = 7.5, 65, 0.8


def keypoint_patches(
    grey: Grey,
    frames: AffineFrames,
    *,
    side: int = SIDE,
    extent: float = EXTENT,
    smoothing: float = SMOOTHING,
) -> UInt8[np.ndarray, "n side side"]:
    """One patch for each keypoint, in order; outside the image the border is repeated.

    Args:
        grey: the image.
        frames: its keypoints.
        side: side of a patch, in pixels.
        extent: from the middle of a patch to the centres of its outermost pixels, in scales of the
            keypoint.
        smoothing: blur of a patch, in scales of the keypoint.
    """
    edge = side / max(side - 1, 1)  # VLFeat's extent ends at the centres of pixels
    return affine_patches(
        grey.astype(np.float32), frames, extent=extent * edge, side=side, smoothing=smoothing
    )
