"""The network for a loss: takes and returns whole batches, which several processes may share."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import torch
from jaxtyping import Float
from torch import nn

from zoo.training.together import gathered, part

T = TypeVar("T")

STILL = {"cpu": 64, "cuda": 4096}  # patches in one pass without gradients: they fit into caches


@dataclass(frozen=True, eq=False)
class Described:
    """The network of one step, as the interface `method.Describe`."""

    network: nn.Module
    precision: torch.dtype  # of convolutions

    def __call__(self, patches: Float[torch.Tensor, "n 1 side side"]) -> torch.Tensor:
        """Vectors with gradients, in training mode."""
        vectors = self._computed(self.network, patches[part(len(patches))])
        return gathered(vectors.float(), len(patches))

    def maps(
        self, patches: Float[torch.Tensor, "n 1 side side"], *, every: bool = False
    ) -> tuple[torch.Tensor, ...]:
        """The network's intermediate maps, its vectors last; with `every`, of every layer."""
        maps_of: Callable[..., tuple[torch.Tensor, ...]] = self.network.maps  # type: ignore[assignment]
        run = partial(maps_of, every=True) if every else maps_of
        maps = self._computed(run, patches[part(len(patches))])
        return tuple(gathered(each.float(), len(patches)) for each in maps)

    @torch.no_grad()
    def still(self, patches: Float[torch.Tensor, "n 1 side side"]) -> torch.Tensor:
        """Vectors in evaluation mode, without gradients."""
        self.network.eval()
        share = patches[part(len(patches))]
        rows = [
            self._computed(self.network, few).float()
            for few in share.split(STILL.get(share.device.type, 1024))
        ]
        self.network.train()
        return gathered(torch.cat(rows), len(patches))

    def _computed(self, run: Callable[[torch.Tensor], T], patches: torch.Tensor) -> T:
        reduced = self.precision is not torch.float32
        with torch.autocast(patches.device.type, dtype=self.precision, enabled=reduced):
            return run(patches)
