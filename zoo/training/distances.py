"""Distances between vectors for losses; their gradients are finite everywhere.

The square root and the arc cosine have infinite slopes where two vectors are equal. Here every
square root is of x + 1e-6, as in HardNet's released code: a distance of 0 becomes 0.001, a distance
of 0.1 becomes 0.100005, and the gradient by either vector is never longer than 1. Even if autocast
computes the network in another type, distances are float32, or float64 for float64 vectors.
"""

from typing import Any

import torch
from jaxtyping import Bool, Float, Int

from zoo.exact import coarse_products

UNDER_ROOT = 1e-6
SAME = 0.008  # HardNet's code: a nearer "negative" is a patch of the same point, badly labelled

Vectors = Float[torch.Tensor, "n dim"]
Others = Float[torch.Tensor, "m dim"]
Crossed = Float[torch.Tensor, "n m"]


def wide(x: Float[torch.Tensor, "..."]) -> Float[torch.Tensor, "..."]:
    """The numbers in float32; float64 stays float64."""
    return x if x.dtype == torch.float64 else x.float()


def root(squared: Float[torch.Tensor, "..."]) -> Float[torch.Tensor, "..."]:
    """Square root of x + 1e-6; 0.001 for a negative x, which comes from rounding."""
    return (squared.clamp(min=0) + UNDER_ROOT).sqrt()


def inner(a: Vectors, b: Others) -> Crossed:
    """Inner products of all rows of a with all rows of b."""
    with torch.autocast(a.device.type, enabled=False):
        return wide(a) @ wide(b).T


class Coarse(torch.autograd.Function):
    """Inner products whose factors, and those of their gradients, TF32 rounds on a GPU."""

    @staticmethod
    def forward(ctx: Any, a: Vectors, b: Others) -> Crossed:
        """Inner products of all rows of a with all rows of b."""
        ctx.save_for_backward(a, b)
        with coarse_products():
            return a @ b.T

    @staticmethod
    def backward(ctx: Any, gradient: Crossed) -> tuple[Vectors, Others]:
        """The gradients of both."""
        a, b = ctx.saved_tensors
        with coarse_products():
            return gradient @ b, gradient.T @ a


def euclidean(a: Vectors, b: Others) -> Crossed:
    """Euclidean distances between all rows of a and all rows of b."""
    return root(_squares(a)[:, None] + _squares(b) - 2 * inner(a, b))


def angle(a: Vectors, b: Others) -> Crossed:
    """Angles between all unit vectors of a and all of b, in radians, from 0.001 to pi - 0.001.

    The angle is computed as twice the angle whose tangent is |a - b| / |a + b| (W. Kahan). It is
    accurate at both ends, unlike the arc cosine of a rounded product, and its gradient is never
    longer than 2.
    """
    squares, twice = _squares(a)[:, None] + _squares(b), 2 * inner(a, b)
    return 2 * torch.atan2(root(squares - twice), root(squares + twice))


def euclidean_paired(a: Vectors, b: Vectors) -> Float[torch.Tensor, " n"]:
    """Euclidean distance between each row of a and the same row of b."""
    return root(_squares(wide(a) - wide(b)))


def angle_paired(a: Vectors, b: Vectors) -> Float[torch.Tensor, " n"]:
    """Angle between each unit vector of a and the same row of b, measured like `angle`."""
    return 2 * torch.atan2(euclidean_paired(a, b), euclidean_paired(a, -b))


def alike(point: Int[torch.Tensor, " n"]) -> Bool[torch.Tensor, "n n"]:
    """Which pairs show the same point; true on the diagonal."""
    return point[:, None] == point


def hardest(
    point: Int[torch.Tensor, " n"], *crossed: Float[torch.Tensor, "n n"], closer: float = 0.0
) -> Float[torch.Tensor, " n"]:
    """The least distance from each pair to a patch of another point, over its row and its column.

    Equal least distances share the gradient, so the order of the batch has no effect.

    Args:
        point: the point of each pair.
        crossed: matrices of distances between the members of all pairs: from anchors to positives,
            from anchors to anchors, or from positives to positives.
        closer: patches nearer than this are ignored; if no patch is left, the result is infinity.
    """
    same = alike(point)
    least = []
    for distance in crossed:
        far = distance.masked_fill(same | (distance < closer), torch.inf)
        least += [far.amin(dim=1), far.amin(dim=0)]
    return torch.stack(least).amin(dim=0)


def _squares(x: Vectors) -> Float[torch.Tensor, " n"]:
    return wide(x).square().sum(dim=1)
