"""TFeat's triplet loss with anchor swap: negatives are random, none is mined.

V. Balntas, E. Riba, D. Ponsa, K. Mikolajczyk, Learning local feature descriptors with triplets
and shallow convolutional neural networks, BMVC 2016: "TFeat-margin*".
"""

from typing import Annotated

import torch
from annotated_types import Ge, Gt
from jaxtyping import Float

from zoo.backbones import Network
from zoo.published import describing, tfeat
from zoo.training.distances import euclidean_paired
from zoo.training.groups import Groups
from zoo.training.method import Batch, Method, Sampler
from zoo.training.pairs import random_pairs, strangers

Vectors = Float[torch.Tensor, "n dim"]


def swapped_triplet(
    anchor: Vectors, positive: Vectors, negative: Vectors, *, margin: float
) -> Float[torch.Tensor, " n"]:
    """[margin + d(a, p) - min(d(a, n), d(p, n))]+ of each triplet.

    If the negative is nearer to the positive than to the anchor, the two swap their roles.
    """
    nearer = torch.minimum(euclidean_paired(anchor, negative), euclidean_paired(positive, negative))
    return (margin + euclidean_paired(anchor, positive) - nearer).relu()


class TripletSwap(Method):
    """Mean loss of random pairs, each with a patch of another of them as its negative."""

    def __init__(self, *, pairs: Annotated[int, Ge(2)], margin: Annotated[float, Gt(0)]) -> None:
        """Keep the options.

        Args:
            pairs: in a batch.
            margin: by which a negative is to be farther than the match; TFeat's vectors are not
                of unit length, their distances at most 2 sqrt(128).
        """
        super().__init__()
        self.pairs, self.margin = pairs, margin

    def steps_of_a_pass(self, groups: Groups) -> int:
        """A pair of each point."""
        return len(groups) // self.pairs

    def pairs_per_step(self) -> int:
        """Pairs of a batch, one of each triplet."""
        return self.pairs

    def sampler(self, groups: Groups, seed: int) -> Sampler:
        """Random pairs."""
        return random_pairs(groups, self.pairs, seed)

    def forward(self, batch: Batch) -> Float[torch.Tensor, ""]:
        """The loss of one batch."""
        anchor, positive = batch.pair_vectors(separate=False)
        negative = strangers(anchor, batch.random)
        return swapped_triplet(anchor, positive, negative, margin=self.margin).mean()


class TFeat(tfeat.TFeat, Network):
    """TFeat's network, to be trained; its parameters are named as in the published files."""

    side = describing.SIDE
    dim = 128

    def forward(self, patches: Float[torch.Tensor, "n 1 32 32"]) -> Float[torch.Tensor, "n 128"]:
        """Vectors of grey patches, not of unit length; the first layer standardises each patch."""
        x = patches - patches[:, :, :1, :1]  # so that a flat patch is zero in spite of rounding
        x = self.features(x)  # (n, 64, 8, 8)
        return self.descr(x.flatten(1)).float()
