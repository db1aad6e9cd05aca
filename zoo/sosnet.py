"""SOSNet: the two patches of a pair should have the same distances to their neighbours.

Y. Tian, X. Yu, B. Fan, F. Wu, H. Heijnen, V. Balntas, SOSNet: second order similarity
regularization for local descriptor learning, CVPR 2019. Its authors released the loss with HyNet
(https://github.com/yuruntian/HyNet, MIT). The released code uses more neighbours than the paper,
ignores negatives nearer than 0.008, and describes anchors and positives separately.
"""

from typing import Annotated, Literal

import torch
from annotated_types import Ge, Gt, Le
from jaxtyping import Bool, Float, Int

from zoo.training.distances import SAME, alike, euclidean, hardest, root
from zoo.training.groups import Groups
from zoo.training.later import Later
from zoo.training.method import Batch, Method, Sampler
from zoo.training.pairs import pass_of_patches, random_pairs

Vectors = Float[torch.Tensor, "n dim"]
Crossed = Float[torch.Tensor, "n n"]
Neighbourhood = Literal["released", "paper"]


def quadratic_triplet(
    anchor: Vectors, positive: Vectors, point: Int[torch.Tensor, " n"], *, margin: float
) -> Float[torch.Tensor, " n"]:
    """Square of [margin + distance of the pair - distance of its hardest negative]+.

    The hardest negative is the patch of another pair, anchor or positive, that is nearest to one of
    the two patches. As in the released code, patches nearer than 0.008 are ignored.
    """
    distance = euclidean(anchor, positive)
    within = euclidean(anchor, anchor), euclidean(positive, positive)
    negative = hardest(point, distance, *within, closer=SAME)
    return (margin + distance.diagonal() - negative).relu().square()


def second_order(
    anchor: Vectors,
    positive: Vectors,
    point: Int[torch.Tensor, " n"],
    *,
    neighbours: int,
    neighbourhood: Neighbourhood,
) -> Float[torch.Tensor, " n"]:
    """Root of the sum of (d(a_i, a_j) - d(p_i, p_j))^2 over the neighbours j of pair i.

    Args:
        anchor: unit vectors a.
        positive: unit vectors p, the match of each anchor.
        point: the point of each pair.
        neighbours: k.
        neighbourhood: definition of the neighbours; see `neighbours_of`.
    """
    a, p = euclidean(anchor, anchor), euclidean(positive, positive)
    between = euclidean(anchor, positive) if neighbourhood == "released" else None
    near = neighbours_of(a, p, between, ~alike(point), neighbours)
    return root(((a - p).square() * near).sum(dim=1))


@torch.no_grad()
def neighbours_of(
    a: Crossed, p: Crossed, between: Crossed | None, other: Bool[torch.Tensor, "n n"], k: int
) -> Bool[torch.Tensor, "n n"]:
    """Whether pair j (column) is a neighbour of pair i (row).

    In the paper, j is a neighbour of i if a_j is among the k anchors nearest to a_i, or p_j is
    among the k positives nearest to p_i. In the released code, j is also a neighbour if p_j is
    among the k positives nearest to a_i, or a_j is among the k anchors nearest to p_i, or if i is a
    neighbour of j by any of these rules. There, patches nearer than 0.008 are not neighbours, just
    as they are not negatives. All patches at the distance of the k-th count.

    Args:
        a: distances between anchors.
        p: distances between positives.
        between: distances from anchors (rows) to positives; None: the paper's neighbours.
        other: whether two pairs are of different points.
        k: number of neighbours by each rule.
    """
    if between is None:
        return (_nearest(a, other, k) | _nearest(p, other, k)) & other
    near = torch.zeros_like(other)
    for distance in (a, p, between, between.T):
        allowed = other & (distance >= SAME)
        near |= _nearest(distance, allowed, k) & allowed
    return near | near.T


def _nearest(distance: Crossed, allowed: Bool[torch.Tensor, "n n"], k: int) -> torch.Tensor:
    far = distance.masked_fill(~allowed, torch.inf)
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
        neighbourhood: Annotated[Neighbourhood, Later("paper")] = "released",
        separate: Annotated[bool, Later(False)] = True,
    ) -> None:
        """Keep the options.

        Args:
            pairs: number of pairs in a batch.
            margin: least wanted difference between the distances of the negative and of the match;
                distances are at most 2.
            neighbours: k, number of nearest neighbours by each rule.
            images: number of images that the anchors of the share of the pairs come from.
            share: share of the pairs.
            neighbourhood: definition of the neighbours: that of the "released" code, or that of
                the "paper", which gives about half as many.
            separate: whether anchors and positives pass batch normalisation separately, as in the
                released code.
        """
        super().__init__()
        self.pairs, self.margin, self.neighbours = pairs, margin, neighbours
        self.images, self.share = images, share
        self.neighbourhood: Neighbourhood = neighbourhood
        self.separate = separate

    def steps_of_a_pass(self, groups: Groups) -> int:
        """Steps that use as many patches as the training set has, as in the released code."""
        return pass_of_patches(groups, 2 * self.pairs)

    def pairs_per_step(self) -> int:
        """Pairs of a batch."""
        return self.pairs

    def sampler(self, groups: Groups, seed: int) -> Sampler:
        """Random pairs."""
        return random_pairs(groups, self.pairs, seed, images=self.images, share=self.share)

    def forward(self, batch: Batch) -> Float[torch.Tensor, ""]:
        """The loss of one batch."""
        anchor, positive = batch.pair_vectors(separate=self.separate)
        first = quadratic_triplet(anchor, positive, batch.pair_point, margin=self.margin)
        second = second_order(
            anchor,
            positive,
            batch.pair_point,
            neighbours=self.neighbours,
            neighbourhood=self.neighbourhood,
        )
        return first.mean() + second.mean()
