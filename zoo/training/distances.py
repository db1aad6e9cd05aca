"""Distances between vectors for losses: their gradient is finite everywhere.

The square root and the arc cosine have infinite slopes where two vectors are equal. Here every root
is taken of x + 1e-6, as in HardNet's released code: a distance of 0 reads 0.001, one of 0.1 reads
0.100005, and the gradient by either vector is never longer than 1. Whatever autocast does to the
network, these numbers are float32, or float64 where they are given as such.
"""

import torch
from jaxtyping import Bool, Float, Int

UNDER_ROOT = 1e-6
SAME = 0.008  # HardNet's code: a nearer "negative" is another patch of the point, badly labelled

Vectors = Float[torch.Tensor, "n dim"]
Others = Float[torch.Tensor, "m dim"]
Crossed = Float[torch.Tensor, "n m"]


def wide(x: Float[torch.Tensor, "..."]) -> Float[torch.Tensor, "..."]:
    """The numbers in float32; float64 stays float64."""
    return x if x.dtype == torch.float64 else x.float()


def root(squared: Float[torch.Tensor, "..."]) -> Float[torch.Tensor, "..."]:
    """Square root of x + 1e-6; of a negative x, which only rounding makes, 0.001."""
    return (squared.clamp(min=0) + UNDER_ROOT).sqrt()


def inner(a: Vectors, b: Others) -> Crossed:
    """Inner products of all rows with all rows."""
    with torch.autocast(a.device.type, enabled=False):
        return wide(a) @ wide(b).T


def euclidean(a: Vectors, b: Others) -> Crossed:
    """Euclidean distances of all rows from all rows."""
    return root(_squares(a)[:, None] + _squares(b) - 2 * inner(a, b))


def angle(a: Vectors, b: Others) -> Crossed:
    """Angles between all unit vectors and all, in radians, from 0.001 to pi - 0.001.

    As twice the angle whose tangent is |a - b| / |a + b| (W. Kahan): accurate at both ends, where
    the arc cosine of a rounded product is not, and with a gradient no longer than 2.
    """
    squares, twice = _squares(a)[:, None] + _squares(b), 2 * inner(a, b)
    return 2 * torch.atan2(root(squares - twice), root(squares + twice))


def euclidean_paired(a: Vectors, b: Vectors) -> Float[torch.Tensor, " n"]:
    """Euclidean distance of each row from the same row of the other."""
    return root(_squares(wide(a) - wide(b)))


def angle_paired(a: Vectors, b: Vectors) -> Float[torch.Tensor, " n"]:
    """Angle between each unit vector and the same row of the other, as `angle` measures it."""
    return 2 * torch.atan2(euclidean_paired(a, b), euclidean_paired(a, -b))


def alike(point: Int[torch.Tensor, " n"]) -> Bool[torch.Tensor, "n n"]:
    """Which pairs show the same point; true on the diagonal."""
    return point[:, None] == point


def hardest(
    point: Int[torch.Tensor, " n"], *crossed: Float[torch.Tensor, "n n"], closer: float = 0.0
) -> Float[torch.Tensor, " n"]:
    """The least distance of each pair to a patch of another point, over its row and its column.

    Several that tie share the gradient, so the order of the batch decides nothing.

    Args:
        point: of each pair.
        crossed: distances between members of all pairs: anchors from positives, or of one kind.
        closer: patches nearer than this are passed over; infinity if no patch is left.
    """
    same = alike(point)
    least = []
    for distance in crossed:
        far = distance.masked_fill(same | (distance < closer), torch.inf)
        least += [far.amin(dim=1), far.amin(dim=0)]
    return torch.stack(least).amin(dim=0)


def _squares(x: Vectors) -> Float[torch.Tensor, " n"]:
    return wide(x).square().sum(dim=1)
