"""The network as a loss sees it: the batch whole, though several processes share the work."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import torch
from jaxtyping import Float
from torch import nn

from zoo.training.together import gathered, part

T = TypeVar("T")

STILL = {"cpu": 64, "cuda": 4096}  # patches in one pass without gradients: what caches hold


@dataclass(frozen=True, eq=False)
class Described:
    """The `Describe` of one step; see method.py."""

    network: nn.Module
    precision: torch.dtype  # of convolutions

    def __call__(self, patches: Float[torch.Tensor, "n 1 side side"]) -> torch.Tensor:
        """Vectors with gradients, in training mode."""
        own = self._computed(self.network, patches[part(len(patches))])
        return gathered(own.float(), len(patches))

    def maps(self, patches: Float[torch.Tensor, "n 1 side side"]) -> tuple[torch.Tensor, ...]:
        """What the network gives on the way, its vectors last."""
        found = self._computed(self.network.maps, patches[part(len(patches))])  # type: ignore[arg-type]
        return tuple(gathered(one.float(), len(patches)) for one in found)

    @torch.no_grad()
    def still(self, patches: Float[torch.Tensor, "n 1 side side"]) -> torch.Tensor:
        """Vectors in evaluation mode, without gradients."""
        self.network.eval()
        own = patches[part(len(patches))]
        rows = [
            self._computed(self.network, some).float()
            for some in own.split(STILL.get(own.device.type, 1024))
        ]
        self.network.train()
        return gathered(torch.cat(rows), len(patches))

    def _computed(self, run: Callable[[torch.Tensor], T], patches: torch.Tensor) -> T:
        reduced = self.precision is not torch.float32
        with torch.autocast(patches.device.type, dtype=self.precision, enabled=reduced):
            return run(patches)
