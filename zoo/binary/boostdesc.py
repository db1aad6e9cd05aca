"""BGM, L-BGM and BinBoost: gradients pooled at learned places, by OpenCV (BSD-3-Clause).

T. Trzcinski, M. Christoudias, V. Lepetit, Learning image descriptors with boosting, PAMI 2015
(BGM, L-BGM).
T. Trzcinski, M. Christoudias, P. Fua, V. Lepetit, Boosting binary keypoint descriptors, CVPR 2013
(BinBoost).

A weak learner compares the share of one direction among the gradients of a rectangle with a
threshold. BGM packs 256 of them; `bgm-hard` (128) and `bgm-bilinear` (256) assign gradients to
directions in another way. L-BGM adds weighted weak learners to 64 numbers. A bit of BinBoost is
the sign of such a sum.

The rectangles lie in a patch of 32x32, to which the patch is resized. The keypoint has size 32 and
the scale factor is 1, so that OpenCV's warp takes these pixels as they are. The factor counts even
if `use_scale_orientation` is off; its default is 6.25, for other detectors' keypoints.

The weights are those of the authors, inside OpenCV. The papers train on each scene of PhotoTour;
neither OpenCV nor the authors' code, as far as read, says which scene these weights are of. So none
of the scenes is counted as unseen.
"""

from functools import partial

import cv2

from harness.distances import HAMMING, L2, Distance
from harness.types import Conventions, Descriptor, Patches, Vectors
from zoo.describing import LIBRARIES, at_centre, in_threads

SIDE = 32  # of the patches that the weak learners read
SIZE = 32.0  # of the keypoint, in pixels
SCALE = 1.0  # factor of the keypoint's size
CONVENTIONS = Conventions(
    keypoint="at (16, 16) of 32x32, size 32, scale factor 1, angle 0: the whole patch",
    side=SIDE,
    normalisation="shares of gradients; none of the vector",
    source="Trzcinski et al., CVPR 2013, PAMI 2015; OpenCV",
)

# OpenCV's numbers of its variants, which its Python module has no names for.
BGM, BGM_HARD, BGM_BILINEAR, LBGM = 100, 101, 102, 200
BINBOOST_64, BINBOOST_128, BINBOOST_256 = 300, 301, 302


def _part(variant: int, patches: Patches) -> Vectors:
    # An extractor keeps its image while it computes, so threads can't share it.
    extractor = cv2.xfeatures2d.BoostDesc.create(variant, scale_factor=SCALE)
    return at_centre(extractor, patches, side=SIDE, border=0, size=SIZE)


def _made(name: str, variant: int, dim: int, distance: Distance = HAMMING) -> Descriptor:
    part, width = partial(_part, variant), distance.columns(dim)
    return Descriptor(
        name,
        lambda patches: in_threads(part, patches, width, distance.dtype),
        distance,
        dim=dim,
        trained_on=frozenset(f"phototour/{s}" for s in ("liberty", "notredame", "yosemite")),
        libraries=LIBRARIES,
        licence="BSD-3-Clause",
        conventions=CONVENTIONS,
    )


def bgm() -> Descriptor:
    """BGM: 256 bits, each of one weak learner."""
    return _made("bgm", BGM, 256)


def bgm_hard() -> Descriptor:
    """BGM of 128 bits that assigns a gradient to one direction."""
    return _made("bgm-hard", BGM_HARD, 128)


def bgm_bilinear() -> Descriptor:
    """BGM of 256 bits that assigns a gradient to two directions."""
    return _made("bgm-bilinear", BGM_BILINEAR, 256)


def lbgm() -> Descriptor:
    """L-BGM: 64 numbers, weighted sums of weak learners, compared by L2."""
    return _made("lbgm", LBGM, 64, L2)


def binboost_64() -> Descriptor:
    """BinBoost of 64 bits."""
    return _made("binboost.64", BINBOOST_64, 64)


def binboost_128() -> Descriptor:
    """BinBoost of 128 bits."""
    return _made("binboost.128", BINBOOST_128, 128)


def binboost_256() -> Descriptor:
    """BinBoost of 256 bits."""
    return _made("binboost.256", BINBOOST_256, 256)
