"""HardNet: a triplet margin loss on the hardest negative within the batch.

A. Mishchuk, D. Mishkin, F. Radenovic, J. Matas, Working hard to know your neighbor's margins: local
descriptor learning loss, NIPS 2017. HardNet-GOR adds the global orthogonal regularisation of X.
Zhang, F. Yu, S. Kumar, S. Chang, Learning spread-out local feature descriptors, ICCV 2017.

The negative of a pair is searched in both its row and its column. Three details follow the released
code (https://github.com/DagnyT/hardnet, MIT) and are not in the paper: negatives nearer than 0.008
are ignored; anchors and positives pass the network separately; and the recipe's optimiser.
"""

from typing import Annotated

import torch
from annotated_types import Ge, Gt, Le
from jaxtyping import Float, Int

from zoo.training import classes
from zoo.training.distances import SAME, euclidean, hardest, wide
from zoo.training.groups import Groups
from zoo.training.later import Later
from zoo.training.method import Batch, Method, Sampler
from zoo.training.pairs import random_pairs, strangers

Vectors = Float[torch.Tensor, "n dim"]


def triplet(
    anchor: Vectors, positive: Vectors, point: Int[torch.Tensor, " n"], *, margin: float
) -> Float[torch.Tensor, " n"]:
    """[margin + d(a_i, p_i) - min over j of d(a_i, p_j), d(a_j, p_i)]+ of each pair i."""
    distance = euclidean(anchor, positive)
    negative = hardest(point, distance, closer=SAME)
    return (margin + distance.diagonal() - negative).relu()


def orthogonal(anchor: Vectors, stranger: Vectors) -> Float[torch.Tensor, ""]:
    """Squared mean of the inner products of non-matches + [mean of their squares - 1 / dim]+.

    It is 0 if both moments are those of random directions.
    """
    product = (wide(anchor) * wide(stranger)).sum(dim=1)
    return product.mean().square() + (product.square().mean() - 1 / anchor.shape[1]).relu()


class HardNet(Method):
    """Mean triplet loss of random pairs, plus `gor` times the regularisation.

    With a class_size, it is HardNet* of AdaSample's tables: HardNet with generated positives.
    """

    def __init__(
        self,
        *,
        pairs: Annotated[int, Ge(2)],
        margin: Annotated[float, Gt(0)],
        gor: Annotated[float, Ge(0)] = 0.0,
        images: Annotated[int, Ge(1)] | None = None,
        share: Annotated[float, Gt(0), Le(1)] = 0.5,
        class_size: Annotated[Annotated[int, Ge(2)] | None, Later(None)] = None,
        turn: Annotated[float, Ge(0), Le(180), Later(20.0)] = 20.0,
        separate: Annotated[bool, Later(False)] = True,
    ) -> None:
        """Keep the options.

        Args:
            pairs: number of pairs in a batch.
            margin: least wanted difference between the distances of the negative and of the match;
                distances are at most 2.
            gor: weight of the global orthogonal regularisation; 1 in its authors' experiments.
            images: number of images that the anchors of the share of the pairs come from.
            share: share of the pairs.
            class_size: number of patches of a point that a pair is drawn from; if the point has
                fewer, patches are generated. None: the patches that the point has.
            turn: most degrees, in either direction, by which generated patches are turned; only
                with a class_size.
            separate: whether anchors and positives pass batch normalisation separately, as in the
                released code.

        Raises:
            ValueError: if a patch and its copy could be a pair.
        """
        super().__init__()
        classes.refuse_copies(class_size, turn)
        self.pairs, self.margin, self.gor = pairs, margin, gor
        self.images, self.share = images, share
        self.class_size, self.turn, self.separate = class_size, turn, separate

    def steps_of_a_pass(self, groups: Groups) -> int:
        """Steps that use one pair of each point."""
        return len(groups) // self.pairs

    def pairs_per_step(self) -> int:
        """Pairs of a batch."""
        return self.pairs

    def sampler(self, groups: Groups, seed: int) -> Sampler:
        """Random pairs, from a point's own patches or from its class."""
        n, k, images, share = self.pairs, self.class_size, self.images, self.share
        if k is None:
            return random_pairs(groups, n, seed, images=images, share=share)
        return classes.random_pairs(
            groups, n, seed, k=k, turn=self.turn, images=images, share=share
        )

    def forward(self, batch: Batch) -> Float[torch.Tensor, ""]:
        """The loss of one batch."""
        anchor, positive = batch.pair_vectors(separate=self.separate)
        loss = triplet(anchor, positive, batch.pair_point, margin=self.margin).mean()
        if self.gor:
            loss = loss + self.gor * orthogonal(anchor, strangers(positive, batch.random))
        return loss
