"""DOAP: descriptors optimised for average precision, real-valued and binary.

K. He, Y. Lu, S. Sclaroff, Local descriptors optimized for average precision, CVPR 2018; "(n)" is
its equation n. Each patch of a batch is a query for the patches of its own point among all others.
Distances are counted softly in the b + 1 bins of a histogram, so that the average precision
computed from the counts has a gradient. The paper takes its closed form from K. He, F. Cakir, S. A.
Bargal, S. Sclaroff, Hashing as tie-aware learning to rank, CVPR 2018. Batches, networks and mined
labels have files of their own.
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
from zoo.training.sending import sent

Vectors = Float[torch.Tensor, "n dim"]
Histogram = Float[torch.Tensor, "queries bins"]
Distractors = Literal["all", "other-sequences", "mined"]

CELLS = 1 << 20  # most distances in memory at a time, even for batches of 4,096 patches


@dataclass(frozen=True)
class Bins:
    """The bins 0..last of a histogram of distances, as functions of the inner product."""

    last: int
    place: Callable[[torch.Tensor], torch.Tensor]  # inner product -> place in [0, last]
    slope: Callable[[torch.Tensor], torch.Tensor]  # place -> derivative of the place there


def euclidean(b: int) -> Bins:
    """b + 1 bins with centres at 0, 2 / b, ..., 2, for unit vectors (9)."""
    half = b / 2
    return Bins(b, lambda g: half * root(2 - 2 * g), lambda place: -half * half / place)


def hamming(b: int) -> Bins:
    """A bin for each number of differing bits, for codes in [-1, 1]^b (6)."""
    return Bins(b, lambda g: (b - g) / 2, lambda place: torch.full_like(place, -0.5))


class Histograms(torch.autograd.Function):
    """Counts of matches and of others in each bin, for each query: [queries, 2, bins].

    This is (3) with a triangle for delta: a distance is divided between the two bins whose centres
    are on both sides of it. So no count is lost, and (4), (5) need only the slopes of these two
    bins. For the gradient, distances are computed again; neither pass holds more than 2^20 of them.
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
        """Count the distances of each query."""
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
        """The gradient with respect to the vectors, as queries and as retrieved vectors."""
        vectors, point, ignored, query = ctx.saved_tensors
        bins = ctx.bins
        # If a distance grows by one bin, its whole share moves to the next bin.
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
    """The place of each distance among the bins, and the number of its lower bin.

    The bins of matches are numbered first, then the bins of others, then the bins of patches that
    are not counted: the query itself, and ignored patches.
    """
    place = bins.place(inner(vectors[query], vectors)).clamp(0, bins.last)
    lower = place.nan_to_num().long().clamp(max=bins.last - 1)  # NaN stays NaN in `place`
    kind = (point[query][:, None] != point).long()
    if ignored is not None:
        kind.masked_fill_(ignored[query], 2)
    kind.scatter_(1, query[:, None], 2)
    return place, kind * (bins.last + 1) + lower


def closed_form(matches: Histogram, everything: Histogram) -> Float[torch.Tensor, " queries"]:
    """Average precision from counts of matches h+ and of all patches h in the bins, nearest first.

    The formula is 1/N+ sum_k h+_k (H+_k + H+_{k-1} + 1) / (H_k + H_{k-1} + 1), where H are the
    cumulative sums. All patches of a bin get the precision at the middle of the bin. The result is
    exact if no bin holds two patches.
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
    query: Int[torch.Tensor, " queries"] | None = None,
) -> Float[torch.Tensor, " queries"]:
    """Relaxed average precision of each patch that has a match; it queries all other patches.

    The result is in (0, 1]; it is 1 if there are only matches. With more bins, it approaches the
    exact average precision from below; the remaining error, because two bins share a patch, is less
    than 1/123.

    Args:
        vectors: unit vectors or codes, as the bins demand.
        point: two patches match iff their points are equal.
        bins: bins of the distances.
        ignored: pairs that are neither matches nor distractors; rows are queries.
        query: `queries` of the points, if they are known already.

    Raises:
        InputError: if no patch has a match.
    """
    query = queries(point) if query is None else query
    counts = Histograms.apply(wide(vectors), point, ignored, query, bins)  # type: ignore[no-untyped-call]
    matches, others = counts.unbind(dim=1)
    return closed_form(matches, matches + others)


def queries(point: Int[torch.Tensor, " n"]) -> Int[torch.Tensor, " queries"]:
    """Numbers of the patches that have a match.

    Raises:
        InputError: if no patch has a match.
    """
    _, number, size = torch.unique(point, return_inverse=True, return_counts=True)
    query = (size[number] > 1).nonzero().flatten()
    if not len(query):
        raise InputError(
            f"no two of {len(point)} patches show the same point: average precision is undefined"
        )
    return query


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
            patches: M, most patches in a batch.
            in_turn: whether step k takes point k first (RomePatches).
            distractors: "all": the patches of all other points; "other-sequences": only patches of
                other sequences (patch retrieval in HPatches); "mined": also the patches of the same
                sequence that look different from the query, by label mining; then each batch is of
                two sequences.
            images: number of images that show the share of the patches, drawn anew in each step.
            share: share of the patches.

        Raises:
            InputError: if both `images` and "mined" are given.
        """
        super().__init__()
        if images is not None and distractors == "mined":
            raise InputError("batches with mined labels have two sequences: leave images out")
        self.patches, self.in_turn, self.distractors = patches, in_turn, distractors
        self.images, self.share = images, share
        self.sequence: Int[torch.Tensor, " points"] | None = None
        self.mined: Mined | None = None

    def study(self, patches: Callable[[int], Patches], groups: Groups) -> None:
        """Mine labels, if distractors is "mined".

        Args:
            patches: returns the patches of the whole training set at a size.
            groups: the rows to train on, by point.
        """
        if self.distractors == "mined":
            self.mined = mine(patches, groups.order, np.repeat(sequences(groups), groups.size))

    def steps_of_a_pass(self, groups: Groups) -> int:
        """Steps of one pass: through all patches, all first points, or all pairs of sequences.

        With mined labels, a batch has two sequences, and an epoch has all pairs of sequences
        (appendix C.2). With `in_turn`, an epoch has a batch for each point (appendix D).
        """
        if self.distractors == "mined":
            count = int(sequences(groups).max()) + 1
            return count * (count - 1) // 2
        return len(groups) if self.in_turn else pass_of_patches(groups, self.patches)

    def patches_per_step(self) -> int:
        """Most patches in a batch."""
        return self.patches

    def sampler(self, groups: Groups, seed: int) -> Sampler:
        """All patches of the drawn points; with mined labels, points of two sequences."""
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
        point, here = batch.point, batch.point_here
        query = None if here is None else sent(queries(here), point.device)
        ignored = self._ignored(point, batch.row)
        return 1 - average_precision(vectors, point, bins, ignored=ignored, query=query).mean()

    def compared(self, vectors: Vectors) -> tuple[Vectors, Bins]:
        """The vectors to compare, from the network's output; and the bins of their distances."""
        raise NotImplementedError

    def _ignored(
        self, point: Int[torch.Tensor, " n"], row: Int[torch.Tensor, " n"] | None
    ) -> Bool[torch.Tensor, "n n"] | None:
        """Pairs of one sequence that are not matches, and that no label marks as different."""
        if self.sequence is None:
            return None
        self.sequence = self.sequence.to(point.device)
        sequence = self.sequence[point]
        unsure = (sequence[:, None] == sequence) & (point[:, None] != point)
        if self.distractors == "mined":
            assert self.mined is not None and row is not None
            self.mined = self.mined.to(row.device)
            unsure &= ~self.mined.different(row)
        return unsure


class DOAP(Listwise):
    """DOAP for unit vectors that are compared by Euclidean distance."""

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
        """The unit vectors without change, and bins of Euclidean distances."""
        return vectors, euclidean(self.bins)


class BinaryDOAP(Listwise):
    """DOAP for bits that are compared by Hamming distance; tanh of activations relaxes them (8)."""

    codes = True

    def compared(self, vectors: Vectors) -> tuple[Vectors, Bins]:
        """The codes of activations, and a bin for each distance."""
        code = wide(vectors).tanh()
        return code, hamming(code.shape[1])
