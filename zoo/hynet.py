"""HyNet: a hybrid of distance and inner product, a regularisation of lengths, and its own network.

Y. Tian, A. Barroso-Laguna, T. Ng, V. Balntas, K. Mikolajczyk, HyNet: learning local descriptor with
hybrid similarity measure and triplet loss, NeurIPS 2020.

The released code (https://github.com/yuruntian/HyNet, MIT) does not divide the hybrid distance by
Z. Its loss [1.2 + near - far]+ + 0.1 (difference of lengths)^2 is Z times the loss of this file
with margin 1.2 / Z = 0.4386 and gamma 0.1 / Z = 0.0366, where Z = 2.736 for alpha 2. It is a sum
over the batch; this file takes the mean. Such factors of the whole loss have no effect with Adam.
"""

import math
from typing import Annotated

import torch
from annotated_types import Ge, Gt, Le, Lt
from jaxtyping import Float, Int
from torch import nn

from zoo.backbones import BatchNorm, Network, Whole, unit
from zoo.training.distances import SAME, euclidean, hardest, root, wide
from zoo.training.groups import Groups
from zoo.training.later import Later
from zoo.training.method import Batch, Method, Sampler
from zoo.training.pairs import pass_of_patches, random_pairs

Vectors = Float[torch.Tensor, "n dim"]


def hybrid(distance: Float[torch.Tensor, "..."], *, alpha: float) -> Float[torch.Tensor, "..."]:
    """(alpha (1 - s) + d) / Z of the distance d and the inner product s of unit vectors.

    The slope of d is largest for near vectors, the slope of s for orthogonal vectors. Dividing by Z
    makes the largest slope of the sum 1. For unit vectors, 1 - s = d^2 / 2.
    """
    return (alpha * distance.square() / 2 + distance) / steepest(alpha)


def steepest(alpha: float) -> float:
    """Z: the largest slope of alpha (1 - s) + d over the angle between the vectors.

    With u = sin(angle / 2) the slope is sqrt(1 - u^2) (1 + 2 alpha u).
    """
    u = (math.sqrt(1 + 32 * alpha**2) - 1) / (8 * alpha) if alpha else 0.0
    return math.sqrt(1 - u**2) * (1 + 2 * alpha * u)


def hybrid_triplet(
    anchor: Vectors,
    positive: Vectors,
    point: Int[torch.Tensor, " n"],
    *,
    margin: float,
    alpha: float,
) -> Float[torch.Tensor, " n"]:
    """[margin + hybrid distance of the pair - hybrid distance of its hardest negative]+.

    The hardest negative is the same as in SOSNet: the patch of another pair, anchor or positive,
    that is nearest to one of the two patches. Patches nearer than 0.008 are ignored.
    """
    distance = euclidean(anchor, positive)
    within = euclidean(anchor, anchor), euclidean(positive, positive)
    negative = hardest(point, distance, *within, closer=SAME)
    near, far = (hybrid(d, alpha=alpha) for d in (distance.diagonal(), negative))
    return (margin + near - far).relu()


def unlike_lengths(anchor: Vectors, positive: Vectors) -> Float[torch.Tensor, " n"]:
    """Squared difference of the lengths of a pair's vectors, before unit normalisation."""
    a, p = (root(wide(x).square().sum(dim=1)) for x in (anchor, positive))
    return (a - p).square()


class Hybrid(Method):
    """Mean hybrid triplet loss + gamma times the mean difference of lengths."""

    def __init__(
        self,
        *,
        pairs: Annotated[int, Ge(2)],
        margin: Annotated[float, Gt(0)],
        alpha: Annotated[float, Ge(0)],
        gamma: Annotated[float, Ge(0)],
        images: Annotated[int, Ge(1)] | None = None,
        share: Annotated[float, Gt(0), Le(1)] = 0.5,
        separate: Annotated[bool, Later(False)] = True,
    ) -> None:
        """Keep the options.

        Args:
            pairs: number of pairs in a batch.
            margin: least wanted difference between the hybrid distances of the negative and of the
                match.
            alpha: weight of the inner product; the distance has weight 1.
            gamma: weight of the difference of lengths.
            images: number of images that the anchors of the share of the pairs come from.
            share: share of the pairs.
            separate: whether anchors and positives pass batch normalisation separately, as in the
                released code.
        """
        super().__init__()
        self.pairs, self.margin, self.alpha, self.gamma = pairs, margin, alpha, gamma
        self.images, self.share, self.separate = images, share, separate

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
        """The loss of one batch; the network's `maps` must end in [..., raw, unit vectors]."""
        *_, raw, (anchor, positive) = batch.pair_maps(separate=self.separate)
        loss = hybrid_triplet(
            anchor, positive, batch.pair_point, margin=self.margin, alpha=self.alpha
        )
        return loss.mean() + self.gamma * unlike_lengths(*raw).mean()


class Responses(nn.Module):
    """Filter response normalisation and thresholded linear unit: max(w x / rms(x) + b, t).

    S. Singh, S. Krishnan, Filter response normalization layer, CVPR 2020. The root mean square is
    over one channel of one patch, so no patch depends on others.
    """

    def __init__(self, channels: int) -> None:
        """Start with w = 1, b = 0 and t = -1."""
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1, channels, 1, 1))
        self.bias = nn.Parameter(torch.zeros(1, channels, 1, 1))
        self.threshold = nn.Parameter(-torch.ones(1, channels, 1, 1))

    def forward(self, x: Float[torch.Tensor, "n c h w"]) -> Float[torch.Tensor, "n c h w"]:
        """The normalised values, with a lower limit."""
        mean_square = wide(x).square().mean(dim=(2, 3), keepdim=True)
        x = x * (mean_square + 1e-6).rsqrt()
        return torch.maximum(self.weight * x + self.bias, self.threshold)


class HyNet(Network):
    """L2-Net's convolutions with biases; `Responses` follows each convolution except the last.

    Grey values are not normalised before: the first `Responses` scales each patch.
    """

    side = 32
    dim = 128

    def __init__(self, *, dropout: Annotated[float, Ge(0), Lt(1)] = 0.0) -> None:
        """Start with PyTorch's initial weights, as the released code does.

        Args:
            dropout: share of the last layer's inputs that are set to zero in training.
        """
        super().__init__()
        layers: list[nn.Module] = [Responses(1)]
        channels = 1
        for width, stride in ((32, 1), (32, 1), (64, 2), (64, 1), (128, 2), (128, 1)):
            convolution = nn.Conv2d(channels, width, 3, stride=stride, padding=1)
            layers += [convolution, Responses(width)]
            channels = width
        self.features = nn.Sequential(*layers)
        self.last = nn.Sequential(
            nn.Dropout(dropout), Whole(128, self.dim, 8, bias=False), BatchNorm(self.dim)
        )

    def maps(self, patches: Float[torch.Tensor, "n 1 32 32"]) -> tuple[torch.Tensor, ...]:
        """The last layer's output [n, 128], and the unit vectors."""
        x = self.features(patches)  # (n, 128, 8, 8)
        raw = self.last(x).flatten(1)  # (n, 128)
        return raw, unit(raw)

    def forward(self, patches: Float[torch.Tensor, "n 1 32 32"]) -> Float[torch.Tensor, "n 128"]:
        """Unit vectors of grey patches."""
        return self.maps(patches)[-1]
