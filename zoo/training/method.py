"""What a method gives to the training loop: its batches and its loss.

An option that is added to a method later is marked with `recipe.Later`, so that recipes from before
keep their meaning.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol as Interface
from typing import runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Float32, Int
from torch import nn

from harness.types import Patches
from zoo.training.groups import Groups

Rows = Int[np.ndarray, " n"]


@dataclass(frozen=True, eq=False)
class Batch:
    """Patches of one step, by their rows in the training set, in the order that a loss sees.

    A row may come twice: turned by another angle, it is another patch.
    """

    rows: Rows
    point: Rows  # two patches match iff their points are equal; any numbers >= 0
    angle: Float32[np.ndarray, " n"] | None = None  # degrees, counterclockwise; None: as they are

    def __len__(self) -> int:
        """Patches in it."""
        return len(self.rows)


Sampler = Callable[[int], Batch]
"""The batch of a step, from 0 on; it depends on seed and step alone."""


@runtime_checkable
class Describe(Interface):
    """The network as a loss sees it: the whole batch in, all vectors out, whoever computes them.

    On several devices each describes a part, and all get the vectors of all, with gradients.
    """

    def __call__(self, patches: Float[torch.Tensor, "n 1 side side"]) -> torch.Tensor:
        """Unit vectors [n, dim] in float32, in training mode, with gradients."""
        ...

    def maps(self, patches: Float[torch.Tensor, "n 1 side side"]) -> tuple[torch.Tensor, ...]:
        """What the network gives on the way (see its `maps`), its vectors last; else as a call."""
        ...

    def still(self, patches: Float[torch.Tensor, "n 1 side side"]) -> torch.Tensor:
        """Vectors in evaluation mode, without a gradient, in the number format of training."""
        ...


class Method(nn.Module):
    """One way to train: parameters and buffers of its own are trained and kept with the network's.

    The arguments of its maker are the table [method] of a recipe, validated by their types.
    """

    codes = False  # True: it trains networks that say so too, whose activations become bits

    def study(self, patches: Callable[[int], Patches], groups: Groups) -> None:
        """Take what it needs from the training set, before batches are drawn.

        Args:
            patches: gives those of the whole training set, at a size.
            groups: what is trained on.
        """

    def steps_of_a_pass(self, groups: Groups) -> int:
        """Steps in which the training set is gone through once, as the method's paper counts it.

        An epoch of a recipe with steps_per_epoch = "pass"; a method that does without need not
        say it.
        """
        raise NotImplementedError

    def pairs_per_step(self) -> int:
        """Matching pairs in a batch; a method without pairs need not say it."""
        raise NotImplementedError

    def sampler(self, groups: Groups, seed: int) -> Sampler:
        """How batches are drawn.

        Raises:
            ValueError: at once, if the training set can't give such batches; says why.
        """
        raise NotImplementedError

    def forward(
        self,
        describe: Describe,
        patches: Float[torch.Tensor, "n 1 side side"],
        point: Int[torch.Tensor, " n"],
        random: torch.Generator,
        row: Int[torch.Tensor, " n"] | None = None,
    ) -> Float[torch.Tensor, ""]:
        """The loss of one batch.

        Args:
            describe: the network.
            patches: grey values in [0, 255], augmented, in the order of the batch.
            point: two patches match iff equal.
            random: seeded by seed and step, on the CPU; the same on every device.
            row: in the training set; the loop gives it, few losses look at it.
        """
        raise NotImplementedError
