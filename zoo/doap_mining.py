"""DOAP's label mining: finds patches of one sequence that look different (appendix C.1).

Patches of different points of a sequence may look alike, for example two windows of a house. So a
patch of the same sequence counts as a distractor of a query only if its cluster, by appearance, is
far from the query's cluster.

The paper leaves details open. This file answers them:

- HOG is that of P. Felzenszwalb et al. (PAMI 2010) as VLFeat computes it. It is the only usual HOG
  with 1,984 numbers, which is the paper's dimension without the 256 pixels.
- Grey values are in [0, 1]. Then the distance of two patches is about 7 in the HOG part and 4 in
  the part of pixels.
- K-means starts from random patches.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Float32, Int, UInt8
from scipy.cluster.vq import kmeans, vq
from scipy.spatial.distance import pdist, squareform
from torch.nn import functional

from harness.types import Patches
from zoo.backbones import resize

SIDE = 64
CELLS = 8  # cells along a side, of 8 pixels each
PIXELS = 16  # side of the small patch
CLUSTERS = 100
PERCENTILE = 20
SETTLED = 1e-3  # K-means ends if the mean distance to the centres, about 5, falls by less than this
TOGETHER = 512  # patches at a time


@dataclass(frozen=True, eq=False)
class Mined:
    """Clusters of the rows of a training set, and which clusters are far from each other."""

    sequence: Int[torch.Tensor, " all"]
    cluster: Int[torch.Tensor, " all"]  # number of the cluster within the sequence
    far: Bool[torch.Tensor, "sequences clusters clusters"]

    def different(self, row: Int[torch.Tensor, " n"]) -> Bool[torch.Tensor, "n n"]:
        """Whether two rows look different; only for rows of the same sequence."""
        sequence, cluster = self.sequence[row], self.cluster[row]
        return self.far[sequence[:, None], cluster[:, None], cluster]

    def to(self, device: torch.device) -> "Mined":
        """The same on a device; itself, if it is there."""
        if self.far.device == device:
            return self
        return Mined(*(x.to(device) for x in (self.sequence, self.cluster, self.far)))


def mine(
    patches: Callable[[int], Patches],
    rows: Int[np.ndarray, " n"],
    sequence: Int[np.ndarray, " n"],
) -> Mined:
    """Cluster the patches of each sequence.

    Args:
        patches: returns the patches of the whole training set at a size.
        rows: rows to cluster.
        sequence: number of each row's sequence, from 0.
    """
    large = patches(SIDE)
    place = np.full((2, len(large)), -1)
    far = np.zeros((int(sequence.max()) + 1, CLUSTERS, CLUSTERS), bool)
    for number, apart in enumerate(far):
        members = np.sort(rows[sequence == number])
        parts = np.split(members, range(TOGETHER, len(members), TOGETHER))
        cluster_of, distant = clusters(np.concatenate([appearance(large[part]) for part in parts]))
        place[0, members], place[1, members] = number, cluster_of
        apart[: len(distant), : len(distant)] = distant
    of, cluster = torch.from_numpy(place)
    return Mined(of, cluster, torch.from_numpy(far))


def clusters(
    appearances: Float32[np.ndarray, "n dim"],
) -> tuple[Int[np.ndarray, " n"], Bool[np.ndarray, "k k"]]:
    """The cluster of each patch, and whether the centres of two clusters are far from each other.

    There are at most 100 clusters. Two centres are far from each other unless they are among the
    nearest 20 % of all pairs of centres.
    """
    n = len(appearances)
    start = np.random.default_rng(0).choice(n, min(CLUSTERS, n), replace=False)
    centres, _ = kmeans(appearances, appearances[start], thresh=SETTLED)  # drops empty ones
    distance = pdist(centres.astype(np.float64))
    threshold = np.percentile(distance, PERCENTILE) if len(distance) else np.inf
    return vq(appearances, centres)[0], squareform(distance) > threshold


def appearance(patches: UInt8[np.ndarray, "n 64 64"]) -> Float32[np.ndarray, "n 2240"]:
    """HOG of 8 x 8 cells, and the pixels of the patch at 16 x 16."""
    grey = torch.from_numpy(np.ascontiguousarray(patches)).float()[:, None] / 255
    small = resize(grey, PIXELS)
    return torch.cat([hog(grey[:, 0]).flatten(1), small.flatten(1)], dim=1).numpy()


def hog(grey: Float[torch.Tensor, "n 64 64"]) -> Float[torch.Tensor, "n 8 8 31"]:
    """Histograms of oriented gradients: 18 directions, 9 orientations, 4 sums, of each cell.

    Gradients are central differences; pixels at the border have none. Each gradient counts in the
    nearest direction and, bilinearly, in four cells. A cell is divided by the norms of the four
    blocks of 2 x 2 cells around it, and values are cut off at 0.2. Outside the patch, the cells at
    the border are repeated.
    """
    dx = grey[:, 1:-1, 2:] - grey[:, 1:-1, :-2]
    dy = grey[:, 2:, 1:-1] - grey[:, :-2, 1:-1]
    # 1e-6 less: a gradient straight down is halfway between two directions, and takes the first.
    direction = (torch.atan2(dy, dx) * (9 / torch.pi) - 1e-6).round().long() % 18
    size = (dx.square() + dy.square()).sqrt()
    field = size.new_zeros(*size.shape, 18).scatter_(3, direction[..., None], size[..., None])
    middle = (torch.arange(CELLS) + 0.5) * (SIDE / CELLS)
    pixel = torch.arange(1, SIDE - 1) + 0.5
    share = (1 - (pixel - middle[:, None]).abs() * (CELLS / SIDE)).clamp(min=0).to(grey)  # (8, 62)
    directed = torch.einsum("cy,nyxo,dx->ncdo", share, field, share)  # (n, 8, 8, 18)
    undirected = directed[..., :9] + directed[..., 9:]
    energy = functional.pad(undirected.square().sum(dim=3)[:, None], (1, 1, 1, 1), mode="replicate")
    block = functional.avg_pool2d(energy, 2, stride=1)[:, 0] * 4 + 1e-4  # (n, 9, 9)
    corners = block[:, :-1, :-1], block[:, :-1, 1:], block[:, 1:, :-1], block[:, 1:, 1:]
    scale = torch.stack(corners, dim=3).rsqrt()[..., None]  # (n, 8, 8, 4, 1)
    directed = (directed[..., None, :] * scale).clamp(max=0.2)
    undirected = (undirected[..., None, :] * scale).clamp(max=0.2)
    summed = undirected.sum(dim=4) / 18**0.5
    return torch.cat([directed.sum(dim=3) / 2, undirected.sum(dim=3) / 2, summed], dim=3)
