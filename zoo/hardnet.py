"""HardNet: a triplet margin loss on the hardest negative within the batch.

A. Mishchuk, D. Mishkin, F. Radenovic, J. Matas, Working hard to know your neighbor's margins: local
descriptor learning loss, NIPS 2017. HardNet-GOR adds the global orthogonal regularisation of X.
Zhang, F. Yu, S. Kumar, S. Chang, Learning spread-out local feature descriptors, ICCV 2017.

The negative of a pair is sought over both its row and its column. One nearer than 0.008 is passed
over, as in the released code (https://github.com/DagnyT/hardnet, MIT), and not in the paper.
"""

from typing import Annotated

import torch
from annotated_types import Ge, Gt, Le
from jaxtyping import Float, Int

from zoo.training import pairs as matching
from zoo.training.distances import SAME, euclidean, hardest, wide
from zoo.training.groups import Groups
from zoo.training.method import Describe, Method, Sampler

Vectors = Float[torch.Tensor, "n dim"]


def triplet(
    anchor: Vectors, positive: Vectors, point: Int[torch.Tensor, " n"], *, margin: float
) -> Float[torch.Tensor, " n"]:
    """[margin + d(a_i, p_i) - the least of d(a_i, p_j), d(a_j, p_i)]+ of each pair i."""
    distance = euclidean(anchor, positive)
    negative = hardest(point, distance, closer=SAME)
    return (margin + distance.diagonal() - negative).relu()


def orthogonal(anchor: Vectors, stranger: Vectors) -> Float[torch.Tensor, ""]:
    """Squared mean of the inner products of non-matches + [mean of their squares - 1 / dim]+.

    Both moments shall be those of random directions.
    """
    product = (wide(anchor) * wide(stranger)).sum(dim=1)
    return product.mean().square() + (product.square().mean() - 1 / anchor.shape[1]).relu()


class HardNet(Method):
    """Mean triplet loss of random pairs, and with `gor` the regularisation."""

    def __init__(
        self,
        *,
        pairs: Annotated[int, Ge(2)],
        margin: Annotated[float, Gt(0)],
        gor: Annotated[float, Ge(0)] = 0.0,
        images: Annotated[int, Ge(1)] | None = None,
        share: Annotated[float, Gt(0), Le(1)] = 0.5,
    ) -> None:
        """Keep the options.

        Args:
            pairs: in a batch.
            margin: by which a negative is to be farther than the match; distances are at most 2.
            gor: weight of the global orthogonal regularisation, 1 in its authors' experiments.
            images: anchors of `share` of the pairs are from so many images.
            share: of the pairs.
        """
        super().__init__()
        self.pairs, self.margin, self.gor = pairs, margin, gor
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
        loss = triplet(anchor, positive, point.chunk(2)[0], margin=self.margin).mean()
        if self.gor:
            loss = loss + self.gor * orthogonal(anchor, matching.strangers(positive, random))
        return loss
