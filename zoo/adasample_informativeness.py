"""AdaSample's figure 3: compares the distance of a pair with the length of its gradient."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import nn

from harness.errors import InputError
from zoo.adasample import CROSSED, PAIRED, Distance


@dataclass(frozen=True, eq=False)
class Informativeness:
    """Distance and gradient length of each candidate for a positive."""

    distance: Float[torch.Tensor, "n candidates"]  # to the anchor
    gradient: Float[torch.Tensor, "n candidates"]  # length over all weights of the network (2)

    @property
    def induced(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Probabilities within each class, proportional to the distance (7) and to the gradient.

        Classes without any gradient are left out; the paper reports no such class.
        """
        learns = self.gradient.sum(dim=1) > 0
        both = self.distance[learns], self.gradient[learns]
        by_distance, by_gradient = (x / x.sum(dim=1, keepdim=True) for x in both)
        return by_distance, by_gradient

    @property
    def correlation(self) -> float:
        """Pearson's correlation of the two kinds of probabilities, over all candidates.

        Raises:
            InputError: if one kind does not vary: no class has two candidates, or no class has a
                gradient.
        """
        both = torch.stack([x.flatten() for x in self.induced]).double()
        if both.shape[1] < 2 or (both.std(dim=1) == 0).any():
            raise InputError(
                f"the probabilities of {both.shape[1]} candidates don't vary, so the correlation is"
                " undefined: give classes of three patches or more, and a larger margin"
            )
        return float(torch.corrcoef(both)[0, 1])


def informativeness(
    network: nn.Module,
    patches: Float[torch.Tensor, "n k 1 side side"],
    *,
    margin: float,
    distance: Distance,
) -> Informativeness:
    """Distance and gradient of all patches of each class except the first, which is the anchor.

    The loss is (14) over n pairs: all anchors, and the j-th patches of all classes. The network is
    in evaluation mode, so that no other patch contributes to a pair's gradient.
    """
    was = network.training
    network.eval()
    n, k = patches.shape[:2]
    with torch.no_grad():
        vectors = torch.stack([network(of_class) for of_class in patches])
    near, lengths = torch.empty(n, k - 1), torch.empty(n, k - 1)
    for j in range(1, k):
        negative = _nearest(vectors[:, 0], vectors[:, j], distance)
        for i in range(n):
            column, other = negative[i]
            three = network(torch.stack([patches[i, 0], patches[i, j], patches[other, column * j]]))
            positive = PAIRED[distance](three[:1], three[1:2])
            far = PAIRED[distance](three[column : column + 1], three[2:])
            loss = (margin + positive.square() - far.square()).relu().sum()
            near[i, j - 1] = positive.detach()
            lengths[i, j - 1] = _length(loss, network)
    network.train(was)
    return Informativeness(near, lengths)


def _nearest(
    anchor: Float[torch.Tensor, "n dim"], positive: Float[torch.Tensor, "n dim"], distance: Distance
) -> Int[torch.Tensor, "n 2"]:
    """The hardest negative of each pair: 0 if it is an anchor, 1 if a positive; and its class."""
    itself = torch.eye(len(anchor), dtype=torch.bool, device=anchor.device)
    within = [CROSSED[distance](x, x).masked_fill(itself, torch.inf) for x in (anchor, positive)]
    least = torch.cat(within, dim=1).argmin(dim=1)
    return torch.stack([least // len(anchor), least % len(anchor)], dim=1)


def _length(loss: torch.Tensor, network: nn.Module) -> torch.Tensor:
    gradients = torch.autograd.grad(loss, [p for p in network.parameters() if p.requires_grad])
    return torch.stack([gradient.square().sum() for gradient in gradients]).sum().sqrt()
