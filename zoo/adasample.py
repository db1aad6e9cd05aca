"""AdaSample: matching pairs drawn by their informativeness.

X.-Y. Zhang, L. Zhang, Z.-Y. Zheng, Y. Liu, J.-W. Bian, M.-M. Cheng, AdaSample: adaptive sampling of
hard positives for descriptor learning; "(n)" is an equation of the later version. Each step
describes all patches of n classes, the points of a training set, with the present network. Each
class gives a random anchor and a positive. A patch is more likely to be the positive if it is
farther from the anchor; this preference grows as the loss falls.

The papers leave some questions open. This file answers them:

- Pairs are drawn by vectors of evaluation mode: no dropout, and running averages in batch
  normalisation.
- The moving average of the loss starts at the margin, which is the loss of a network that gives the
  same vector for all patches, and moves by 1 % each step.
- Weights use the distances of training mode. (13) gives the weights up to a factor; here their mean
  in each batch is 1, because a learning rate of 10 suits a mean loss.
- Generated positives are turned by up to 20 degrees, about the error of an orientation detector.
- Details that the paper does not give (dropout, statistics of batch normalisation, flips and turns)
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
from zoo.training.later import Later
from zoo.training.method import Batch, Method, Sampler, Selection
from zoo.training.pairs import random_points
from zoo.training.sending import sent

Vectors = Float[torch.Tensor, "n dim"]
Distance = Literal["angle", "euclidean"]
Negatives = Literal["same", "cross"]
Chosen = Int[torch.Tensor, " n"]

MOVES = 0.01  # share of the new loss in the moving average, in a step
SHARPEST = 1e6  # largest exponent; with it, a distance always beats one that is smaller by 1e-5
CLOSE = 0.05  # pairs nearer than this get the weight of a pair at this distance
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
        positive: unit vectors, the match of each anchor.
        point: the point of each pair.
        margin: t.
        distance: d; "angle" is the paper's AHT, "euclidean" its HT.
        negatives: d_neg is the least of these distances. "same": between anchors of different
            pairs and between positives of different pairs, as in (14). "cross": between anchors
            and positives of different pairs, as in HardNet's code, which the text before (14)
            cites.
    """
    cross = CROSSED[distance]
    if negatives == "same":
        nearest = hardest(point, cross(anchor, anchor), cross(positive, positive))
    else:
        nearest = hardest(point, cross(anchor, positive))
    near = PAIRED[distance](anchor, positive)
    return (margin + near.square() - nearest.square()).relu()


def weights(near: Float[torch.Tensor, " n"]) -> Float[torch.Tensor, " n"]:
    """w_i, proportional to 1 / d_pos (13), with mean 1; constants without a gradient."""
    inverse = 1 / near.detach().clamp(min=CLOSE)
    return inverse / inverse.mean()


def chances(
    distance: Float[torch.Tensor, "n k"],
    anchor: Chosen,
    exponent: Float[torch.Tensor, ""] | float,
) -> Float[torch.Tensor, "n k"]:
    """p_i, proportional to d(x_i, x_anchor)^exponent (13), and 0 for the anchor itself.

    They are computed from logarithms, because the exponent grows without bound during training.
    """
    power = torch.as_tensor(exponent, dtype=torch.float64).clamp(max=SHARPEST)
    logarithm = power * distance.double().log()
    return logarithm.scatter(1, anchor[:, None], -math.inf).softmax(dim=1)


class AdaSample(Method):
    """Mean of w_i L_i over pairs drawn by (13); algorithm 1.

    With lambda 0, every pair of a class is equally likely; with infinity, the farthest patch is the
    positive (the paper's Hardpos). The paper's HardNet* also draws random pairs, but uses HardNet's
    loss; see recipe hardnet-star.
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
            pairs: n, pairs in a batch.
            lambda_: the exponent is lambda divided by the average loss.
            margin: t.
            distance: distance by which pairs are drawn, and of which the loss is made.
            negatives: see `hinge`.
            class_size: k, number of patches from which a pair is drawn; 15 is the paper's "*". A
                point of HPatches has 16 patches: with 15, other patches are drawn in each step;
                with 16, all are used.
            turn: most degrees, in either direction, by which patches that fill a class are turned.
            sos: weight of SOSNet's regularisation, which the paper leaves as future work.
            neighbours: number of neighbours in that regularisation.
            images: number of images that show the share of the points, drawn anew in each step.
            share: share of the points.
            neighbourhood: kind of neighbours in that regularisation; see SOSNet.
            separate: whether anchors and positives pass batch normalisation separately, as in
                HardNet's released code; the paper does not say.

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
        """Steps that use one pair of each point."""
        return len(groups) // self.pairs

    def pairs_per_step(self) -> int:
        """Pairs of a batch."""
        return self.pairs

    def sampler(self, groups: Groups, seed: int) -> Sampler:
        """Whole classes, from which `forward` draws pairs; with lambda 0, random pairs."""
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
        """Rows of the chosen anchors, then rows of the chosen positives.

        Args:
            vectors: unit vectors; each k rows are a class.
            random: a generator on the CPU: all devices draw there, so they draw the same rows.
        """
        k, device = self.class_size, vectors.device
        n = len(vectors) // k
        first = torch.arange(n, device=device) * k
        anchor = sent(torch.randint(k, (n,), generator=random), device)
        anchors = vectors[first + anchor].repeat_interleave(k, dim=0)
        distance = PAIRED[self.distance](anchors, vectors).view(n, k)
        exponent = self.lambda_ / self.average.double().clamp(min=1 / SHARPEST)
        # As torch.multinomial draws, which would wait for the device: each patch comes after a
        # random time divided by its chance, and the first one is taken.
        times = torch.empty(n, k, dtype=torch.float64).exponential_(generator=random)
        drawn = (chances(distance, anchor, exponent) / sent(times, device)).argmax(dim=1)
        return torch.cat([first + anchor, first + drawn])
