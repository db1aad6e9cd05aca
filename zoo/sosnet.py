"""SOSNet: the two patches of a pair shall have the same distances from their neighbours.

Y. Tian, X. Yu, B. Fan, F. Wu, H. Heijnen, V. Balntas, SOSNet: second order similarity
regularization for local descriptor learning, CVPR 2019.
"""

from typing import Annotated

import torch
from annotated_types import Ge, Gt, Le
from jaxtyping import Bool, Float, Int

from zoo.training import pairs as matching
from zoo.training.distances import SAME, alike, euclidean, hardest, root
from zoo.training.groups import Groups
from zoo.training.method import Describe, Method, Sampler

Vectors = Float[torch.Tensor, "n dim"]
Crossed = Float[torch.Tensor, "n n"]


def quadratic_triplet(
    anchor: Vectors, positive: Vectors, point: Int[torch.Tensor, " n"], *, margin: float
) -> Float[torch.Tensor, " n"]:
    """Square of [margin + distance of the pair - that of its hardest negative]+.

    Negatives are patches of other pairs of either kind, from either member of the pair. As in the
    released code, one nearer than 0.008 is passed over.
    """
    distance = euclidean(anchor, positive)
    within = euclidean(anchor, anchor), euclidean(positive, positive)
    negative = hardest(point, distance, *within, closer=SAME)
    return (margin + distance.diagonal() - negative).relu().square()


def second_order(
    anchor: Vectors, positive: Vectors, point: Int[torch.Tensor, " n"], *, neighbours: int
) -> Float[torch.Tensor, " n"]:
    """Root of the sum of (d(a_i, a_j) - d(p_i, p_j))^2 over the neighbours j of pair i.

    j is a neighbour where a_j is among those nearest to a_i or p_j among those nearest to p_i; all
    that are as near as the last of them count.
    """
    a, p = euclidean(anchor, anchor), euclidean(positive, positive)
    other = ~alike(point)
    near = (_nearest(a, other, neighbours) | _nearest(p, other, neighbours)) & other
    return root(((a - p).square() * near).sum(dim=1))


@torch.no_grad()
def _nearest(distance: Crossed, other: Bool[torch.Tensor, "n n"], k: int) -> torch.Tensor:
    far = distance.masked_fill(~other, torch.inf)
    return far <= far.kthvalue(min(k, len(far) - 1), dim=1, keepdim=True).values


class SOSNet(Method):
    """Mean quadratic triplet loss + mean second-order difference."""

    def __init__(
        self,
        *,
        pairs: Annotated[int, Ge(2)],
        margin: Annotated[float, Gt(0)],
        neighbours: Annotated[int, Ge(1)],
        images: Annotated[int, Ge(1)] | None = None,
        share: Annotated[float, Gt(0), Le(1)] = 0.5,
    ) -> None:
        """Keep the options.

        Args:
            pairs: in a batch.
            margin: by which a negative is to be farther than the match; distances are at most 2.
            neighbours: k of the nearest neighbours.
            images: anchors of `share` of the pairs are from so many images.
            share: of the pairs.
        """
        super().__init__()
        self.pairs, self.margin, self.neighbours = pairs, margin, neighbours
        self.images, self.share = images, share

    def sampler(self, groups: Groups, seed: int) -> Sampler:
        """Random pairs."""
        return matching.random_pairs(groups, self.pairs, seed, images=self.images, share=self.share)

    def forward(
        self,
        describe: Describe,
        patches: Float[torch.Tensor, "n 1 side side"],
        point: Int[torch.Tensor, " n"],
        random: torch.Generator,
        row: Int[torch.Tensor, " n"] | None = None,
    ) -> Float[torch.Tensor, ""]:
        """The loss of one batch."""
        anchor, positive = describe(patches).chunk(2)
        of = point.chunk(2)[0]
        first = quadratic_triplet(anchor, positive, of, margin=self.margin)
        second = second_order(anchor, positive, of, neighbours=self.neighbours)
        return first.mean() + second.mean()
