"""Mixed-context losses with a consistent scale, and scale-aware sampling.

M. Keller, Z. Chen, F. Maffra, P. Schmuck, M. Chli, Learning deep descriptors with scale-aware
triplet networks, CVPR 2018. A triplet has two distances, d_p of the match and d_n of the negative;
rho = d_n - d_p.
"""

import math
from typing import Annotated, Literal

import numpy as np
import torch
from annotated_types import Ge, Gt, Le
from jaxtyping import Float, Int, UInt8
from torch import nn
from torch.nn import functional

from harness.errors import InputError
from zoo.backbones import BatchNorm, L2Net, Network
from zoo.training.distances import euclidean, euclidean_paired, hardest, wide
from zoo.training.groups import Groups
from zoo.training.later import Later
from zoo.training.method import Batch, Method, Sampler
from zoo.training.pairs import every_point, random_pairs, strangers

Distances = Float[torch.Tensor, " n"]

FOLLOWS = 0.05  # share of the batch's threshold in the running threshold, in each step


def log_loss(rho: Distances, *, alpha: float, delta: float) -> Distances:
    """1 / delta * -log smax(delta (rho - alpha), 0); equations 10, 15.

    For delta near 0, its slope is -1/2 everywhere; for infinite delta, it is [alpha - rho]+, as in
    equation 18.
    """
    if math.isinf(delta):
        return (alpha - rho).relu()
    return functional.softplus(-delta * (rho - alpha)) / delta


def sse_loss(rho: Distances, *, alpha: float, delta: float) -> Distances:
    """1 / delta * smax(-delta (rho - alpha), 0)^2; equations 11, 16."""
    return torch.sigmoid(-delta * (rho - alpha)).square() / delta


LOSSES = {"log": log_loss, "sse": sse_loss}


def mixed_context(
    match: Distances,
    negative: Distances,
    theta: Float[torch.Tensor, ""] | float,
    *,
    gamma: float,
    alpha: float,
    delta: float,
    loss: Literal["log", "sse"],
) -> Distances:
    """1/2 L(2 (theta_mix - d_p)) + 1/2 L(2 (d_n - theta_mix)) of each triplet; equations 20 to 25.

    theta_mix = gamma (d_p + d_n) / 2 + (1 - gamma) theta. With gamma 1 it is the triplet loss
    L(rho), with gamma 0 the Siamese loss. The gradient flows through theta_mix, too.

    Args:
        match: d_p.
        negative: d_n.
        theta: the global threshold between matches and others.
        gamma: weight of the triplet's own threshold.
        alpha: margin.
        delta: scale; with a larger delta, triplets with small rho have more weight.
        loss: L.
    """
    match, negative = wide(match), wide(negative)
    mixed = gamma * (match + negative) / 2 + (1 - gamma) * theta
    of = LOSSES[loss]
    near = of(2 * (mixed - match), alpha=alpha, delta=delta)
    far = of(2 * (negative - mixed), alpha=alpha, delta=delta)
    return (near + far) / 2


@torch.no_grad()
def best_threshold(match: Distances, other: Float[torch.Tensor, " m"]) -> Float[torch.Tensor, ""]:
    """The threshold with the fewest errors, if matches should be below it and others above it.

    It is halfway between two neighbouring distances. If several thresholds are equally good, it is
    the middle one of them.
    """
    distance, order = torch.cat([match, other]).sort()
    is_match = order < len(match)
    # After the first k distances, matches are missed; before, others are taken for matches.
    missed = len(match) - is_match.cumsum(0)
    wrong = (~is_match).cumsum(0)
    errors = (missed + wrong)[:-1].masked_fill(distance[1:] == distance[:-1], len(distance) + 1)
    passed = (errors == errors.min()).cumsum(0)  # of the best places, those up to here
    middle = torch.div(passed[-1:], 2, rounding_mode="floor") + 1
    k = torch.searchsorted(passed, middle)  # without nonzero, for which a GPU is waited for
    return ((distance.take(k) + distance.take(k + 1)) / 2).squeeze()


class MixedContext(Method):
    """Mean loss of a batch of pairs, each with its hardest negative or a random negative.

    Equation 23 writes the sum, but the paper's learning rate is used here for the mean.
    """

    theta: torch.Tensor

    def __init__(
        self,
        *,
        pairs: Annotated[int, Ge(2)],
        gamma: Annotated[float, Ge(0), Le(1)],
        theta: Annotated[float, Gt(0)],
        alpha: float,
        delta: Annotated[float, Gt(0)],
        loss: Literal["log", "sse"],
        negatives: Literal["hardest", "random"],
        context: Literal["fixed", "learned", "estimated"],
        images: Annotated[int, Ge(1)] | None = None,
        share: Annotated[float, Gt(0), Le(1)] = 0.5,
        separate: Annotated[bool, Later(False)] = False,
    ) -> None:
        """Keep the options.

        Args:
            pairs: N, pairs in a batch.
            gamma: 0 is the Siamese loss, 1 the triplet loss, a value in between a mixed loss.
            theta: the global threshold, or its initial value.
            alpha: margin.
            delta: scale of the loss; inf makes the log loss a hinge.
            loss: the loss from which the mixed loss is made.
            negatives: "hardest" takes the nearest of the 2N - 2 cross distances of each pair, which
                is scale-aware sampling (section 4.3); "random" takes a random one.
            context: how the global threshold is set (section 4.1): "fixed"; "learned" with the
                network; or "estimated", a running average of the best threshold between the batch's
                matches and as many random others. The paper estimates it on validation pairs.
            images: number of images that the share of the anchors comes from, drawn anew in each
                step; None, as in the paper: each epoch has every point once.
            share: share of the pairs.
            separate: whether anchors and positives pass batch normalisation separately. The paper
                does not say how it was trained.
        """
        super().__init__()
        if loss == "sse" and math.isinf(delta):
            raise InputError("with infinite delta the SSE loss is zero: take the log loss")
        self.pairs, self.gamma, self.alpha, self.delta = pairs, gamma, alpha, delta
        self.loss: Literal["log", "sse"] = loss
        self.negatives, self.context = negatives, context
        self.images, self.share, self.separate = images, share, separate
        if context == "learned":
            self.theta = nn.Parameter(torch.tensor(theta))
        else:
            self.register_buffer("theta", torch.tensor(theta))

    def steps_of_a_pass(self, groups: Groups) -> int:
        """Steps that use one pair of each point, as `pairs.every_point` draws them; section 4.3."""
        return len(groups) // self.pairs

    def pairs_per_step(self) -> int:
        """Pairs of a batch."""
        return self.pairs

    def sampler(self, groups: Groups, seed: int) -> Sampler:
        """One pair of each point in each epoch; or random pairs from few images."""
        if self.images is None:
            return every_point(groups, self.pairs, seed)
        return random_pairs(groups, self.pairs, seed, images=self.images, share=self.share)

    def forward(self, batch: Batch) -> Float[torch.Tensor, ""]:
        """The loss of one batch."""
        anchor, positive = batch.pair_vectors(separate=self.separate)
        match = euclidean_paired(anchor, positive)
        other = euclidean_paired(anchor, strangers(positive, batch.random))
        if self.context == "estimated" and self.training:
            self.theta.lerp_(best_threshold(match, other), FOLLOWS)
        if self.negatives == "hardest":
            other = hardest(batch.pair_point, euclidean(anchor, positive))
        return mixed_context(
            match,
            other,
            self.theta,
            gamma=self.gamma,
            alpha=self.alpha,
            delta=self.delta,
            loss=self.loss,
        ).mean()


class MeanDeviationL2Net(L2Net):
    """L2-Net whose input is normalised by two statistics of the training set; section 4.4."""

    mean: torch.Tensor
    deviation: torch.Tensor

    def __init__(self) -> None:
        """Start with random weights."""
        super().__init__()
        self.register_buffer("mean", torch.tensor(127.5))
        self.register_buffer("deviation", torch.tensor(50.0))

    def study(
        self, patches: UInt8[np.ndarray, "all side side"], rows: Int[np.ndarray, " n"]
    ) -> None:
        """Compute the average mean and the average standard deviation of a patch."""
        mean, deviation = average_patch(patches, rows)
        self.mean.fill_(mean)
        self.deviation.fill_(deviation)

    def normalised(self, patches: Float[torch.Tensor, "n 1 32 32"]) -> torch.Tensor:
        """The input of the first layer."""
        return (patches - self.mean) / self.deviation


def average_patch(
    patches: UInt8[np.ndarray, "all side side"], rows: Int[np.ndarray, " n"]
) -> tuple[float, float]:
    """Mean and standard deviation of a patch's grey values, averaged over these rows."""
    total = np.zeros(2)
    for i in range(0, len(rows), 4096):
        part = patches[rows[i : i + 4096]]
        total += part.mean(axis=(1, 2)).sum(), part.std(axis=(1, 2)).sum()
    mean, deviation = total / len(rows)
    return float(mean), float(deviation)


class BNNet(Network):
    """BN-Net: 2 numbers, batch-normalised and not of unit length, for 32x32 digits; figure 5.

    The paper shows the layers only in a drawing. Its text says that batch normalisation without
    scale and shift follows every layer, and ReLU every layer except the last.
    """

    side = 32
    dim = 2

    def __init__(self) -> None:
        """Start with random weights."""
        super().__init__()
        layers: list[nn.Module] = []
        channels = 1
        for width in (16, 32, 64):
            convolution = nn.Conv2d(channels, width, 3, stride=2, padding=1, bias=False)
            layers += [convolution, BatchNorm(width), nn.ReLU()]
            channels = width
        layers += [nn.Conv2d(64, 128, 4, bias=False), BatchNorm(128), nn.ReLU()]
        layers += [nn.Conv2d(128, self.dim, 1, bias=False), BatchNorm(self.dim)]
        self.layers = nn.Sequential(*layers)

    def forward(self, patches: Float[torch.Tensor, "n 1 32 32"]) -> Float[torch.Tensor, "n 2"]:
        """Vectors of grey patches."""
        return self.layers(patches / 255).flatten(1).float()
