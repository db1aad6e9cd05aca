"""Base class of training methods; a method selects the patches of a step and computes its loss.

An option that is added to a method later is marked with `recipe.Later`, so that older recipes keep
their meaning.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol as Interface
from typing import runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Float32, Int
from torch import nn

from harness.types import Descriptor, Patches
from zoo.training.groups import Groups

Rows = Int[np.ndarray, " n"]


@dataclass(frozen=True, eq=False)
class Selection:
    """Rows of the training set whose patches make the batch of one step, in the batch's order.

    A row can occur twice with different angles; then the turned patches count as different patches.
    """

    rows: Rows
    point: Rows  # two patches match iff their points are equal; any numbers >= 0
    angle: Float32[np.ndarray, " n"] | None = None  # degrees, counterclockwise; None: not turned

    def __len__(self) -> int:
        """Number of patches."""
        return len(self.rows)


Sampler = Callable[[int], Selection]
"""Returns the selection of a step, counted from 0; it depends only on the seed and the step."""


@runtime_checkable
class Describe(Interface):
    """The network for a loss: takes all patches and returns the vectors of all patches.

    On several devices each device describes a part of the patches, and every device gets all
    vectors, with gradients.
    """

    def __call__(self, patches: Float[torch.Tensor, "n 1 side side"]) -> torch.Tensor:
        """Unit vectors [n, dim] in float32, in training mode, with gradients."""
        ...

    def maps(
        self, patches: Float[torch.Tensor, "n 1 side side"], *, every: bool = False
    ) -> tuple[torch.Tensor, ...]:
        """The network's intermediate maps (see its `maps`), the vectors last; else like a call.

        With `every`, the maps of every layer, if the network's `maps` has this option.
        """
        ...

    def still(self, patches: Float[torch.Tensor, "n 1 side side"]) -> torch.Tensor:
        """Vectors in evaluation mode, without a gradient, in the number format of training."""
        ...


@dataclass(frozen=True, eq=False)
class Batch:
    """All values that the loss of one step depends on.

    A batch of pairs has the anchors first, then the positives in the same order.
    """

    describe: Describe  # the network
    patches: Float[torch.Tensor, "n 1 side side"]  # grey values in [0, 255], augmented
    point: Int[torch.Tensor, " n"]  # two patches match iff their points are equal
    random: torch.Generator  # on the CPU, seeded by seed and step; the same on every device
    row: Int[torch.Tensor, " n"] | None = None  # in the training set; the loop always gives it
    point_here: Int[torch.Tensor, " n"] | None = None  # the points on the CPU; the loop gives them
    coarse: bool = False  # whether products that a method marks may be computed in TF32 on a GPU

    @property
    def pair_point(self) -> Int[torch.Tensor, " pairs"]:
        """The point of each pair."""
        return self.point.chunk(2)[0]

    def subset(self, at: Int[torch.Tensor, " some"]) -> "Batch":
        """The batch of the patches at these places, in this order."""
        row = None if self.row is None else self.row[at]
        patches, point = self.patches[at], self.point[at]
        return replace(self, patches=patches, point=point, row=row, point_here=None)

    def pair_vectors(self, *, separate: bool) -> tuple[torch.Tensor, torch.Tensor]:
        """Vectors of the anchors, and of the positives.

        Args:
            separate: if true, the network describes anchors and positives one after the other, so
                that batch normalisation uses the statistics of each half; else both together.
        """
        if separate:
            anchor, positive = self.patches.chunk(2)
            return self.describe(anchor), self.describe(positive)
        anchor, positive = self.describe(self.patches).chunk(2)
        return anchor, positive

    def pair_maps(
        self, *, separate: bool, every: bool = False
    ) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Each of the network's `maps` of the anchors, and of the positives.

        Args:
            separate: as for `pair_vectors`.
            every: whether to give the maps of every layer.
        """
        if separate:
            halves = [self.describe.maps(half, every=every) for half in self.patches.chunk(2)]
            return list(zip(*halves, strict=True))
        together = self.describe.maps(self.patches, every=every)
        return [(a, p) for a, p in (both.chunk(2) for both in together)]


class Method(nn.Module):
    """A training method; its parameters and buffers are trained and kept with the network's.

    The table [method] of a recipe holds the arguments of `__init__`, checked by their annotations.
    """

    codes = False  # True: the method is for networks with codes = True, whose outputs become bits
    teacher: Descriptor | None = None  # whose vectors the loss takes; `study` opens it

    def must_fit(self, network: nn.Module) -> None:
        """Refuse a network that lacks something that the method takes; by default, none.

        Raises:
            InputError: says what the network lacks.
        """

    def study(self, patches: Callable[[int], Patches], groups: Groups) -> None:
        """Read the training set before the first batch is drawn; by default, do nothing.

        Args:
            patches: returns the patches of the whole training set at a size.
            groups: the rows to train on, by point.
        """

    def steps_of_a_pass(self, groups: Groups) -> int:
        """Steps of one pass through the training set, as the method's paper counts them.

        A recipe with steps_per_epoch = "pass" needs this; other recipes do not.
        """
        raise NotImplementedError

    def pairs_per_step(self) -> int:
        """Matching pairs in a batch; a method without pairs need not define it."""
        raise NotImplementedError

    def patches_per_step(self) -> int:
        """Patches of a batch that have a gradient; a method without pairs should define it."""
        return 2 * self.pairs_per_step()

    def sampler(self, groups: Groups, seed: int) -> Sampler:
        """The function that selects the patches of each step.

        Raises:
            InputError: if the training set is too small for such batches; says why.
        """
        raise NotImplementedError

    def forward(self, batch: Batch) -> Float[torch.Tensor, ""]:
        """The loss of one batch."""
        raise NotImplementedError
