"""AdaSample: matching pairs drawn by how much is to be learned from them.

X.-Y. Zhang, L. Zhang, Z.-Y. Zheng, Y. Liu, J.-W. Bian, M.-M. Cheng, AdaSample: adaptive sampling of
hard positives for descriptor learning; "(n)" is an equation of the later version. In each step all
patches of n classes, the points of a training set, are described as the network stands. Each class
gives a random anchor and a positive, the likelier the farther from it, and more so as the loss
falls.

The papers leave open, and here is decided: patches are described for the choice in evaluation
mode, without dropout and by running averages; the moving average of the loss starts at
the margin, the loss of a network that tells nothing apart, and moves by 1 %; weights are by the
distance in the pass that trains, and, known up to a factor, have the mean 1 in each batch, for a
learning rate of 10 belongs to a mean; and generated positives are turned by up to 20 degrees,
about what a detector of orientations errs by.
"""

import math
from typing import Annotated, Literal

import numpy as np
import torch
from annotated_types import Ge, Gt, Le
from jaxtyping import Float, Int

from zoo.sosnet import second_order
from zoo.training import pairs as matching
from zoo.training.distances import angle, angle_paired, euclidean, euclidean_paired, hardest
from zoo.training.groups import Groups
from zoo.training.method import Batch, Describe, Method, Sampler

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
        negatives: d_neg is the least distance of "same", anchors from anchors and positives from
            positives of other pairs, as (14) has it; or of "cross", anchors from positives, as in
            HardNet's code.
    """
    cross = CROSSED[distance]
    if negatives == "same":
        nearest = hardest(point, cross(anchor, anchor), cross(positive, positive))
    else:
        nearest = hardest(point, cross(anchor, positive))
    near = PAIRED[distance](anchor, positive)
    return (margin + near.square() - nearest.square()).relu()


def weights(near: Float[torch.Tensor, " n"]) -> Float[torch.Tensor, " n"]:
    """w_i, in proportion to 1 / d_pos (13), with mean 1; a number, through which nothing flows."""
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


def classes(
    groups: Groups, point: matching.Points, k: int, turn: float, rng: np.random.Generator
) -> Batch:
    """k patches of each of these points, one point after the other.

    Where a point has fewer, its patches come again, turned by random angles up to `turn` degrees
    either way; where it has more, they are drawn.
    """
    n = len(point)
    size = groups.size[point][:, None]
    place = np.arange(max(k, int(size.max())))
    shuffled = np.where(place < size, rng.random((n, len(place))), 1).argsort(axis=1)[:, :k]
    made = place[:k] >= size
    which = np.where(made, rng.integers(size, size=(n, k)), shuffled)
    degrees = np.where(made, rng.uniform(-turn, turn, (n, k)), 0).astype(np.float32)
    rows = groups.order[groups.start[point][:, None] + which]
    return Batch(rows.ravel(), np.repeat(point, k), degrees.ravel())


def any_pairs(batch: Batch, k: int, rng: np.random.Generator) -> Batch:
    """Of each class of k a random pair: anchors first, then positives."""
    n = len(batch) // k
    anchor = rng.integers(k, size=n)
    other = (anchor + rng.integers(1, k, size=n)) % k
    at = np.concatenate([np.arange(n) * k + anchor, np.arange(n) * k + other])
    assert batch.angle is not None
    return Batch(batch.rows[at], batch.point[at], batch.angle[at])


class AdaSample(Method):
    """Mean of w_i L_i over pairs drawn by (13); algorithm 1.

    lambda 0 draws any pair: the paper's HardNet*. Infinity draws the farthest: its HardPos.
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
    ) -> None:
        """Keep the options.

        Args:
            pairs: n, in a batch.
            lambda_: the exponent is lambda over the average loss.
            margin: t.
            distance: by which pairs are drawn and the loss is measured.
            negatives: see `hinge`.
            class_size: k, patches from which a pair is drawn; 15 is the paper's "*".
            turn: degrees either way of the patches that fill a class.
            sos: weight of SOSNet's regularisation, which the paper leaves as future work.
            neighbours: of that regularisation.
            images: `share` of the points are seen in so many images, drawn anew each step.
            share: of the points.

        Raises:
            ValueError: if a patch and its copy could be a pair.
        """
        super().__init__()
        if not (lambda_ or turn) and class_size > 2:
            raise ValueError(
                "classes are filled with copies where turn is 0, and lambda_ 0 draws pairs of them:"
                " give a turn, or class_size 2"
            )
        self.pairs, self.lambda_, self.margin = pairs, lambda_, margin
        self.distance: Distance = distance
        self.negatives: Negatives = negatives
        self.class_size, self.turn = class_size, turn
        self.sos, self.neighbours = sos, neighbours
        self.images, self.share = images, share
        self.register_buffer("average", torch.tensor(margin))

    def sampler(self, groups: Groups, seed: int) -> Sampler:
        """Whole classes, or pairs where any will do."""
        draw = matching.points(groups, self.pairs, seed, images=self.images, share=self.share)

        def batch(step: int) -> Batch:
            point, _, rng = draw(step)
            whole = classes(groups, point, self.class_size, self.turn, rng)
            return whole if self.lambda_ else any_pairs(whole, self.class_size, rng)

        return batch

    def forward(
        self,
        describe: Describe,
        patches: Float[torch.Tensor, "m 1 side side"],
        point: Int[torch.Tensor, " m"],
        random: torch.Generator,
        row: Int[torch.Tensor, " m"] | None = None,
    ) -> Float[torch.Tensor, ""]:
        """The loss of one batch; L_avg moves on."""
        if self.lambda_:
            chosen = self.choice(describe.still(patches), random)
            patches, point = patches[chosen], point[chosen]
        anchor, positive = describe(patches).chunk(2)
        of = point.chunk(2)[0]
        losses = hinge(
            anchor,
            positive,
            of,
            margin=self.margin,
            distance=self.distance,
            negatives=self.negatives,
        )
        self.average.lerp_(losses.detach().mean().to(self.average), MOVES)
        loss = (weights(PAIRED[self.distance](anchor, positive)) * losses).mean()
        if self.sos:
            second = second_order(anchor, positive, of, neighbours=self.neighbours)
            loss = loss + self.sos * second.mean()
        return loss

    def choice(
        self, vectors: Float[torch.Tensor, "m dim"], random: torch.Generator
    ) -> Int[torch.Tensor, " both"]:
        """Of classes one after the other, which patches are anchors, and then which are positives.

        Args:
            vectors: of unit length.
            random: on the CPU, where the drawing is done, so that all devices draw the same.
        """
        k = self.class_size
        n = len(vectors) // k
        first = torch.arange(n) * k
        anchor = torch.randint(k, (n,), generator=random)
        own = vectors[(first + anchor).to(vectors.device)].repeat_interleave(k, dim=0)
        distance = PAIRED[self.distance](own, vectors).view(n, k).cpu()
        exponent = self.lambda_ / max(float(self.average), 1 / SHARPEST)
        drawn = torch.multinomial(chances(distance, anchor, exponent), 1, generator=random)
        return torch.cat([first + anchor, first + drawn[:, 0]]).to(vectors.device)
