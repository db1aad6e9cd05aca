"""DSP-SIFT: SIFT pooled over ten sizes of the domain.

J. Dong, S. Soatto, Domain-size pooling in local descriptors: DSP-SIFT, CVPR 2015. The scales are
those of J. Schoenberger, H. Hardmeier, T. Sattler, M. Pollefeys, Comparative evaluation of
hand-crafted and learned local features, CVPR 2017: ten, evenly from 1/6 to 3. The limit of the
pooled vector is 0.067, in place of SIFT's 0.2: a port of the authors' code has 0.0667; their own
text was not compared.

The patch is the domain of scale 1. Each domain around its centre is resampled to the size of the
patch, and its SIFT histograms are those of `sift.vlfeat`, not normalised. They are averaged, cut
and normalised as SIFT's are. A larger domain needs pixels beyond the patch: there, the nearest
pixel of its border goes on. It is resampled by averages over area, a smaller one bilinearly.
"""

import numpy as np
from jaxtyping import Float, Float32

from harness.distances import L2
from harness.types import Conventions, Descriptor, Patches
from zoo.describing import in_threads
from zoo.handcrafted.vlfeat_sift import histograms, normalised

SCALES = np.linspace(1 / 6, 3, 10)
LIMIT = 0.067


def _describe(patches: Patches) -> Float32[np.ndarray, "n 128"]:
    return in_threads(_part, patches, 128, np.float32)


def _part(patches: Patches) -> Float32[np.ndarray, "n 128"]:
    grey = patches.astype(np.float32)
    grey -= grey[:, :1, :1]  # so that a flat patch stays zero in spite of rounding
    pooled = np.zeros((len(patches), 128), np.float32)
    for scale in SCALES:
        rows = resampling(patches.shape[1], scale).astype(np.float32)
        pooled += histograms(rows @ grey @ rows.T)
    return normalised(pooled / np.float32(len(SCALES)), LIMIT)


def resampling(side: int, scale: float) -> Float[np.ndarray, "side side"]:
    """Weights of the rows of a patch in each row of its domain of a scale; border rows go on.

    Row i of the domain lies at (i - centre) * scale + centre. If the scale is above 1, it is the
    mean over `scale` rows of the patch; else it lies between two rows.
    """
    centre = (side - 1) / 2
    at = (np.arange(side) - centre) * scale + centre
    beyond = int(np.ceil(max(scale, 1) * side))
    row = np.arange(-beyond, side + beyond)
    distance = np.abs(at[:, None] - row)
    if scale > 1:
        overlap = np.minimum((scale + 1) / 2 - distance, 1)
        share = np.maximum(overlap, 0) / scale
    else:
        share = np.maximum(1 - distance, 0)
    weights = np.zeros((side, side))
    np.add.at(weights.T, np.clip(row, 0, side - 1), share.T)
    return weights


def dsp_sift() -> Descriptor:
    """SIFT pooled over ten domain sizes: 128 numbers, unit length."""
    return Descriptor(
        "dsp-sift",
        _describe,
        L2,
        dim=128,
        licence="Apache-2.0",
        conventions=Conventions(
            keypoint="as sift.vlfeat, in ten domains from 1/6 to 3 times the patch; beyond the"
            " patch, its border goes on",
            side=None,
            normalisation="mean of histograms cut at 0.067, unit length",
            source="Dong, Soatto, CVPR 2015; scales: Schoenberger et al., CVPR 2017",
        ),
    )
