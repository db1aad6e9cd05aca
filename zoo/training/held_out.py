"""Held-out points: training does not use them, and their error shows its progress."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int, UInt8

from harness.distances import Distance
from harness.errors import InputError
from harness.metrics import fpr_at_95, rank
from harness.types import Rows, Vectors
from zoo.backbones import Deployed, Network
from zoo.training.describe import STILL

POINTS = 1000  # most held-out points: 1000 x 1000 pairs are compared
FEWEST = 50  # least held-out points


@dataclass(frozen=True, eq=False)
class Split:
    """Rows to train on, and two rows of each held-out point; there may be no held-out points."""

    train: Rows  # ascending
    a: Int[np.ndarray, " pairs"]
    b: Int[np.ndarray, " pairs"]  # b[i] shows the point of a[i]


def split(
    point: Int[np.ndarray, " n"], image: Int[np.ndarray, " n"], share: float, seed: int
) -> Split:
    """Draw a share of the images, and hold out every point whose first row is from one of them.

    Images made from one photograph must have the same number. If all rows are from one image,
    points are drawn instead of images. At most 1,000 held-out points with two or more patches are
    used to validate; the other held-out points are not used at all. A share of 0 holds out nothing.

    Raises:
        InputError: if too few points would be held out, or none would be left; says what to do.
    """
    if share == 0:
        nothing = np.empty(0, np.int64)
        return Split(np.arange(len(point)), nothing, nothing)
    rng = np.random.default_rng([seed, 0x5E1D])
    _, first, number = np.unique(point, return_index=True, return_inverse=True)
    home = image[first] if np.ptp(image) else np.arange(len(first))
    homes = rng.permutation(np.unique(home))
    out = np.isin(home, homes[: max(1, round(share * len(homes)))])
    rows = np.flatnonzero(out[number])
    order = rows[np.argsort(number[rows], kind="stable")]
    pairs = order[:-1][number[order[1:]] == number[order[:-1]]]
    following = order[1:][number[order[1:]] == number[order[:-1]]]
    _, one_each = np.unique(number[pairs], return_index=True)
    chosen = rng.permutation(one_each)[:POINTS]
    if len(chosen) < FEWEST or out.all():
        raise InputError(
            f"holding out {share:g} of {len(homes)} images leaves {len(chosen)} points with two"
            f" patches to validate on and {np.count_nonzero(~out)} points to train on; at least"
            f" {FEWEST} and 1 are needed: choose another share with --set held_out=..., train on"
            " all data with --set held_out=0, or give more data"
        )
    return Split(np.flatnonzero(~out[number]), pairs[chosen], following[chosen])


def fpr95(vectors: Vectors, distance: Distance) -> float:
    """FPR95 of all pairs of rows i and n + j; a pair is a match if i = j.

    There are far more non-matches than matches, so even an FPR95 well below 1 % can be measured.
    """
    n = len(vectors) // 2
    crossed = distance.cross(vectors[:n], vectors[n:])
    return float(fpr_at_95(rank(np.eye(n, dtype=bool).ravel(), crossed.ravel())))


def vectors(
    network: Network, patches: UInt8[np.ndarray, "n side side"], device: torch.device
) -> Vectors:
    """Vectors of patches by the network as it is deployed."""
    was = network.training
    deployed = Deployed(network)
    parts = np.array_split(patches, -(-len(patches) // STILL.get(device.type, STILL["cpu"])))
    with torch.inference_mode():
        rows = [deployed(torch.from_numpy(part).to(device)).cpu().numpy() for part in parts]
    network.train(was)
    return np.concatenate(rows)
