"""AdaSample: matching pairs drawn by their informativeness.

X.-Y. Zhang, L. Zhang, Z.-Y. Zheng, Y. Liu, J.-W. Bian, M.-M. Cheng, AdaSample: adaptive sampling of
hard positives for descriptor learning; "(n)" is an equation of the later version. Each step
describes all patches of n classes, the points of a training set, with the present network. Each
class gives a random anchor and a positive. A patch that is far from the anchor is the more likely
to be the positive, and the more so the smaller the loss has become.

The papers leave some questions open. This file answers them:

- The choice uses vectors of evaluation mode: no dropout, running averages in batch normalisation.
- The moving average of the loss starts at the margin, which is the loss of a network that gives all
  patches one vector, and moves by 1 % each step.
- Weights use the distance in the pass that trains. (13) gives them up to a factor; their mean in
  each batch is 1, because a learning rate of 10 belongs to a mean.
- Generated positives are turned by up to 20 degrees, about the error of an orientation detector.
- Where the paper is silent (dropout, statistics of batch normalisation, flips and turns), recipes
  follow HardNet's released code, because the paper compares its results with HardNet's.
"""

import math
from typing import Annotated, Literal

import torch
from annotated_types import Ge, Gt, Le
from jaxtyping import Float, Int

from zoo.sosnet import Neighbourhood, second_order
from zoo.training import classes
from zoo.training.distances import angle, angle_paired, euclidean, euclidean_paired, hardest
from zoo.training.groups import Groups
from zoo.training.method import Batch, Method, Sampler, Selection
from zoo.training.pairs import random_points
from zoo.training.recipe import Later

Vectors = Float[torch.Tensor, "n dim"]
Distance = Literal["angle", "euclidean"]
Negatives = Literal["same", "cross"]
Chosen = Int[torch.Tensor, " n"]

MOVES = 0.01  # of the average loss, in a step
SHARPEST = 1e6  # exponent; between a distance and one less by 1e-5 it leaves no choice
CLOSE = 0.05  # a pair nearer than this weighs as much as one at this distance
CROSSED = {"angle": angle, "euclidean": euclidean}
PAIRED = {"angle": angle_paired, "euclidean": euclidean_paired}


def hinge(
    anchor: Vectors,
    positive: Vectors,
    point: Int[torch.Tensor, " n"],
    *,
    margin: float,
    distance: Distance,
    negatives: Negatives,
) -> Float[torch.Tensor, " n"]:
    """[margin + d_pos^2 - d_neg^2]+ of each pair (14), by the angle (15) or Euclidean distance.

    Args:
        anchor: unit vectors.
        positive: the match of each.
        point: of each pair.
        margin: t.
        distance: d; "angle" is the paper's AHT, "euclidean" its HT.
        negatives: which distances d_neg is the least of. "same": anchors from anchors of other
            pairs, and positives from positives, as (14) says. "cross": anchors from positives of
            other pairs, as in HardNet's code, which the text before (14) cites.
    """
    cross = CROSSED[distance]
    if negatives == "same":
        nearest = hardest(point, cross(anchor, anchor), cross(positive, positive))
    else:
        nearest = hardest(point, cross(anchor, positive))
    near = PAIRED[distance](anchor, positive)
    return (margin + near.square() - nearest.square()).relu()


def weights(near: Float[torch.Tensor, " n"]) -> Float[torch.Tensor, " n"]:
    """w_i, in proportion to 1 / d_pos (13), with mean 1; constants, without a gradient."""
    inverse = 1 / near.detach().clamp(min=CLOSE)
    return inverse / inverse.mean()


def chances(
    distance: Float[torch.Tensor, "n k"], anchor: Chosen, exponent: float
) -> Float[torch.Tensor, "n k"]:
    """p_i, in proportion to d(x_i, x_anchor)^exponent (13), 0 for the anchor itself.

    Computed from logarithms: as training goes on, the exponent grows without bound.
    """
    logarithm = min(exponent, SHARPEST) * distance.double().log()
    return logarithm.scatter(1, anchor[:, None], -math.inf).softmax(dim=1)


class AdaSample(Method):
    """Mean of w_i L_i over pairs drawn by (13); algorithm 1.

    lambda 0 draws any pair of a class, infinity the farthest: the paper's Hardpos. The paper's
    HardNet* also draws any pair, but its loss is HardNet's: recipe hardnet-star.
    """

    average: Float[torch.Tensor, ""]

    def __init__(
        self,
        *,
        pairs: Annotated[int, Ge(2)],
        lambda_: Annotated[float, Ge(0)],
        margin: Annotated[float, Gt(0)],
        distance: Distance = "angle",
        negatives: Negatives = "same",
        class_size: Annotated[int, Ge(2)] = 15,
        turn: Annotated[float, Ge(0), Le(180)] = 20.0,
        sos: Annotated[float, Ge(0)] = 0.0,
        neighbours: Annotated[int, Ge(1)] = 8,
        images: Annotated[int, Ge(1)] | None = None,
        share: Annotated[float, Gt(0), Le(1)] = 0.5,
        neighbourhood: Annotated[Neighbourhood, Later("paper")] = "released",
        separate: Annotated[bool, Later(False)] = True,
    ) -> None:
        """Keep the options.

        Args:
            pairs: n, in a batch.
            lambda_: the exponent is lambda over the average loss.
            margin: t.
            distance: by which pairs are drawn and the loss is measured.
            negatives: see `hinge`.
            class_size: k, patches from which a pair is drawn. 15 is the paper's "*". A point of
                HPatches has 16 patches: 15 of them are drawn anew each step, 16 takes all.
            turn: degrees either way of the patches that fill a class.
            sos: weight of SOSNet's regularisation, which the paper leaves as future work.
            neighbours: of that regularisation.
            images: a share of the points is seen in so many images, drawn anew each step.
            share: of the points.
            neighbourhood: of that regularisation, as in SOSNet.
            separate: anchors and positives pass batch normalisation separately, as in HardNet's
                released code; the paper does not say.

        Raises:
            ValueError: if a patch and its copy could be a pair.
        """
        super().__init__()
        if not lambda_:
            classes.refuse_copies(class_size, turn)
        self.pairs, self.lambda_, self.margin = pairs, lambda_, margin
        self.distance: Distance = distance
        self.negatives: Negatives = negatives
        self.class_size, self.turn = class_size, turn
        self.sos, self.neighbours = sos, neighbours
        self.images, self.share, self.separate = images, share, separate
        self.neighbourhood: Neighbourhood = neighbourhood
        self.register_buffer("average", torch.tensor(margin))

    def steps_of_a_pass(self, groups: Groups) -> int:
        """A pair of each point."""
        return len(groups) // self.pairs

    def pairs_per_step(self) -> int:
        """Pairs of a batch."""
        return self.pairs

    def sampler(self, groups: Groups, seed: int) -> Sampler:
        """Whole classes, from which `forward` chooses; with lambda 0, random pairs of them."""
        n, k, images, share = self.pairs, self.class_size, self.images, self.share
        if not self.lambda_:
            return classes.random_pairs(
                groups, n, seed, k=k, turn=self.turn, images=images, share=share
            )
        draw = random_points(groups, n, seed, images=images, share=share)

        def select(step: int) -> Selection:
            point, _, rng = draw(step)
            return classes.classes(groups, point, k, self.turn, rng)

        return select

    def forward(self, batch: Batch) -> Float[torch.Tensor, ""]:
        """The loss of one batch; updates L_avg."""
        if self.lambda_:
            chosen = self.choice(batch.describe.still(batch.patches), batch.random)
            batch = batch.subset(chosen)
        anchor, positive = batch.pair_vectors(separate=self.separate)
        losses = hinge(
            anchor,
            positive,
            batch.pair_point,
            margin=self.margin,
            distance=self.distance,
            negatives=self.negatives,
        )
        self.average.lerp_(losses.detach().mean().to(self.average), MOVES)
        loss = (weights(PAIRED[self.distance](anchor, positive)) * losses).mean()
        if self.sos:
            second = second_order(
                anchor,
                positive,
                batch.pair_point,
                neighbours=self.neighbours,
                neighbourhood=self.neighbourhood,
            )
            loss = loss + self.sos * second.mean()
        return loss

    def choice(
        self, vectors: Float[torch.Tensor, "m dim"], random: torch.Generator
    ) -> Int[torch.Tensor, " both"]:
        """Rows of the chosen anchors, then of the chosen positives; each k rows are a class.

        Args:
            vectors: of unit length.
            random: on the CPU, where the drawing is done, so that all devices draw the same.
        """
        k = self.class_size
        n = len(vectors) // k
        first = torch.arange(n) * k
        anchor = torch.randint(k, (n,), generator=random)
        anchors = vectors[(first + anchor).to(vectors.device)].repeat_interleave(k, dim=0)
        distance = PAIRED[self.distance](anchors, vectors).view(n, k).cpu()
        exponent = self.lambda_ / max(float(self.average), 1 / SHARPEST)
        drawn = torch.multinomial(chances(distance, anchor, exponent), 1, generator=random)
        return torch.cat([first + anchor, first + drawn[:, 0]]).to(vectors.device)
