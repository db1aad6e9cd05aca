"""DOAP: descriptors optimised for average precision, real-valued and binary.

K. He, Y. Lu, S. Sclaroff, Local descriptors optimized for average precision, CVPR 2018; "(n)" is
its equation n. Each patch of a batch queries all others for those of its own point. Distances fall
into the b + 1 bins of a histogram, softly, so that what its counts say of average precision has a
gradient. The paper takes that closed form from K. He, F. Cakir, S. A. Bargal, S. Sclaroff, Hashing
as tie-aware learning to rank, CVPR 2018. Batches, networks and the mined labels have their files.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import torch
from annotated_types import Ge, Gt, Le
from jaxtyping import Bool, Float, Int
from torch.autograd.function import once_differentiable
from torch.nn import functional

from harness.errors import InputError
from harness.types import Patches
from zoo.doap_batches import sequences, two_sequences, whole_groups
from zoo.doap_mining import Mined, mine
from zoo.training.distances import inner, root, wide
from zoo.training.groups import Groups
from zoo.training.method import Batch, Method, Sampler
from zoo.training.pairs import pass_of_patches

Vectors = Float[torch.Tensor, "n dim"]
Histogram = Float[torch.Tensor, "queries bins"]
Distractors = Literal["all", "other-sequences", "mined"]

CELLS = 1 << 20  # distances held at a time: the loss takes as little memory for 4,096 patches


@dataclass(frozen=True)
class Bins:
    """Where the distance of two vectors falls among bins 0..last, by their inner product."""

    last: int
    place: Callable[[torch.Tensor], torch.Tensor]  # from the inner product; in [0, last]
    slope: Callable[[torch.Tensor], torch.Tensor]  # of the place by the inner product, at a place


def euclidean(b: int) -> Bins:
    """b + 1 bins with their middles at 0, 2 / b .. 2; of unit vectors, (9)."""
    half = b / 2
    return Bins(b, lambda g: half * root(2 - 2 * g), lambda place: -half * half / place)


def hamming(b: int) -> Bins:
    """A bin for each number of differing bits, of codes in {-1, 1}^b or between, (6)."""
    return Bins(b, lambda g: (b - g) / 2, lambda place: torch.full_like(place, -0.5))


class Histograms(torch.autograd.Function):
    """Counts of matches and of others in each bin, for each query: [queries, 2, bins].

    (3), with delta a triangle: a distance is shared by the two bins whose middles it lies between,
    so no count is lost, and (4), (5) need the slope of these two alone. Distances are computed
    again for the gradient; neither way holds more than 2^20 of them.
    """

    @staticmethod
    def forward(
        ctx: Any,
        vectors: Vectors,
        point: Int[torch.Tensor, " n"],
        ignored: Bool[torch.Tensor, "n n"] | None,
        query: Int[torch.Tensor, " queries"],
        bins: Bins,
    ) -> Float[torch.Tensor, "queries 2 bins"]:
        """Count."""
        ctx.save_for_backward(vectors, point, ignored, query)
        ctx.bins = bins
        counts = []
        for part in torch.split(query, _rows(vectors)):
            place, cell = _cells(vectors, point, ignored, part, bins)
            upper = place - place.floor().clamp(max=bins.last - 1)
            count = vectors.new_zeros(len(part), 3 * (bins.last + 1))
            count.scatter_add_(1, cell, 1 - upper).scatter_add_(1, cell + 1, upper)
            counts.append(count[:, : 2 * (bins.last + 1)])
        return torch.cat(counts).view(len(query), 2, bins.last + 1)

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, gradient: Float[torch.Tensor, "queries 2 bins"]
    ) -> tuple[torch.Tensor, None, None, None, None]:
        """The gradient by the vectors, both as queries and as retrieved vectors."""
        vectors, point, ignored, query = ctx.saved_tensors
        bins = ctx.bins
        # Farther by a bin, a distance moves its whole share from one bin to the next.
        steps = functional.pad(gradient.flatten(1), (0, bins.last + 1)).diff(dim=1)
        by_vector = torch.zeros_like(vectors)
        rows = _rows(vectors)
        for part, step in zip(torch.split(query, rows), torch.split(steps, rows), strict=True):
            place, cell = _cells(vectors, point, ignored, part, bins)
            by_product = step.gather(1, cell) * bins.slope(place)
            by_vector += inner(by_product.T, vectors[part].T)
            by_vector.index_add_(0, part, inner(by_product, vectors.T))
        return by_vector, None, None, None, None


def _rows(vectors: Vectors) -> int:
    return max(1, CELLS // len(vectors))


def _cells(
    vectors: Vectors,
    point: Int[torch.Tensor, " n"],
    ignored: Bool[torch.Tensor, "n n"] | None,
    query: Int[torch.Tensor, " some"],
    bins: Bins,
) -> tuple[Float[torch.Tensor, "some n"], Int[torch.Tensor, "some n"]]:
    """Places among the bins, and of the lower bin of each the number.

    Bins of matches are numbered first, then those of others, then those of what is not counted: the
    query itself, and what is ignored.
    """
    place = bins.place(inner(vectors[query], vectors)).clamp(0, bins.last)
    lower = place.nan_to_num().long().clamp(max=bins.last - 1)  # what is no number stays none
    kind = (point[query][:, None] != point).long()
    if ignored is not None:
        kind.masked_fill_(ignored[query], 2)
    kind.scatter_(1, query[:, None], 2)
    return place, kind * (bins.last + 1) + lower


def closed_form(matches: Histogram, everything: Histogram) -> Float[torch.Tensor, " queries"]:
    """Average precision from counts of matches h+ and of everything h in the bins, nearest first.

    1/N+ sum_k h+_k (H+_k + H+_{k-1} + 1) / (H_k + H_{k-1} + 1), with H the cumulative sums: what
    shares a bin has the precision of the middle of the bin. Exact where no bin holds two patches.
    """
    hits, passed = matches.cumsum(dim=1), everything.cumsum(dim=1)
    precision = (2 * hits - matches + 1) / (2 * passed - everything + 1)
    return (matches * precision).sum(dim=1) / matches.sum(dim=1)


def average_precision(
    vectors: Vectors,
    point: Int[torch.Tensor, " n"],
    bins: Bins,
    *,
    ignored: Bool[torch.Tensor, "n n"] | None = None,
) -> Float[torch.Tensor, " queries"]:
    """Relaxed average precision of each patch that has a match, retrieving from all the others.

    In (0, 1], and 1 where there are only matches. As bins grow it nears the exact one from below:
    a patch stays shared by two bins, which costs less than 1/123.

    Args:
        vectors: of unit length, or codes, as the bins take them.
        point: two patches match iff their points are equal.
        bins: among which distances fall.
        ignored: pairs, query by row, that are neither match nor distractor.

    Raises:
        InputError: if no patch has a match.
    """
    _, number, size = torch.unique(point, return_inverse=True, return_counts=True)
    query = (size[number] > 1).nonzero().flatten()
    if not len(query):
        raise InputError(
            f"no two of {len(point)} patches show the same point: average precision is undefined"
        )
    counts = Histograms.apply(wide(vectors), point, ignored, query, bins)  # type: ignore[no-untyped-call]
    matches, others = counts.unbind(dim=1)
    return closed_form(matches, matches + others)


class Listwise(Method):
    """1 - mean average precision of a batch of whole points."""

    def __init__(
        self,
        *,
        patches: Annotated[int, Ge(2)],
        in_turn: bool = False,
        distractors: Distractors = "all",
        images: Annotated[int, Ge(1)] | None = None,
        share: Annotated[float, Gt(0), Le(1)] = 0.5,
    ) -> None:
        """Keep the options.

        Args:
            patches: M, the most in a batch.
            in_turn: step k takes point k first (RomePatches).
            distractors: patches of all other points, or only those of other sequences (patch
                retrieval in HPatches), or in addition those of the same sequence that label mining
                tells from the query; then the batches are of two sequences.
            images: `share` of the patches are of points that so many images show, drawn anew each
                step.
            share: of the patches.

        Raises:
            InputError: if batches are to be of few images and of two sequences.
        """
        super().__init__()
        if images is not None and distractors == "mined":
            raise InputError("batches with mined labels are of two sequences: leave images out")
        self.patches, self.in_turn, self.distractors = patches, in_turn, distractors
        self.images, self.share = images, share
        self.sequence: Int[torch.Tensor, " points"] | None = None
        self.mined: Mined | None = None

    def study(self, patches: Callable[[int], Patches], groups: Groups) -> None:
        """Mine labels, if distractors is "mined".

        Args:
            patches: gives those of the whole training set, at a size.
            groups: what is trained on.
        """
        if self.distractors == "mined":
            self.mined = mine(patches, groups.order, np.repeat(sequences(groups), groups.size))

    def steps_of_a_pass(self, groups: Groups) -> int:
        """Steps of one pass through all patches, all first points, or all pairs of sequences.

        With mined labels a batch is of two sequences, and an epoch of all pairs of sequences
        (appendix C.2). If points come first in turn, an epoch has a batch for each (appendix D).
        """
        if self.distractors == "mined":
            count = int(sequences(groups).max()) + 1
            return count * (count - 1) // 2
        return len(groups) if self.in_turn else pass_of_patches(groups, self.patches)

    def sampler(self, groups: Groups, seed: int) -> Sampler:
        """Whole points; of two sequences where labels are mined."""
        if self.distractors != "all":
            self.sequence = torch.from_numpy(sequences(groups))
        if self.distractors == "mined":
            return two_sequences(groups, self.patches, seed)
        return whole_groups(
            groups,
            self.patches,
            seed,
            in_turn=self.in_turn,
            images=self.images,
            share=self.share,
        )

    def forward(self, batch: Batch) -> Float[torch.Tensor, ""]:
        """The loss of one batch; label mining needs `batch.row`."""
        vectors, bins = self.compared(batch.describe(batch.patches))
        ignored = self._ignored(batch.point, batch.row)
        return 1 - average_precision(vectors, batch.point, bins, ignored=ignored).mean()

    def compared(self, vectors: Vectors) -> tuple[Vectors, Bins]:
        """The vectors to compare, from the network's output; and the bins of their distances."""
        raise NotImplementedError

    def _ignored(
        self, point: Int[torch.Tensor, " n"], row: Int[torch.Tensor, " n"] | None
    ) -> Bool[torch.Tensor, "n n"] | None:
        """Pairs of one sequence that are no match, and that no label says are different."""
        if self.sequence is None:
            return None
        self.sequence = self.sequence.to(point.device)
        sequence = self.sequence[point]
        unsure = (sequence[:, None] == sequence) & (point[:, None] != point)
        if self.distractors == "mined":
            assert self.mined is not None and row is not None
            unsure &= ~self.mined.different(row)
        return unsure


class DOAP(Listwise):
    """By Euclidean distance of unit vectors."""

    def __init__(
        self,
        *,
        patches: Annotated[int, Ge(2)],
        bins: Annotated[int, Ge(1)],
        in_turn: bool = False,
        distractors: Distractors = "all",
        images: Annotated[int, Ge(1)] | None = None,
        share: Annotated[float, Gt(0), Le(1)] = 0.5,
    ) -> None:
        """Keep the options; the histogram has bins + 1 bins (bins is at most 25 in the paper)."""
        super().__init__(
            patches=patches, in_turn=in_turn, distractors=distractors, images=images, share=share
        )
        self.bins = bins

    def compared(self, vectors: Vectors) -> tuple[Vectors, Bins]:
        """Unit vectors as they are."""
        return vectors, euclidean(self.bins)


class BinaryDOAP(Listwise):
    """By Hamming distance: a network's activations f through tanh for their signs, (8)."""

    codes = True

    def compared(self, vectors: Vectors) -> tuple[Vectors, Bins]:
        """Codes of activations; there is a bin for each distance."""
        code = wide(vectors).tanh()
        return code, hamming(code.shape[1])
