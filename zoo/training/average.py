"""Averaged weights: an exponential moving average of a network's weights over the steps.

B. T. Polyak, A. B. Juditsky, Acceleration of stochastic approximation by averaging, SIAM J. Control
and Optimization 1992, average the weights of all steps; the exponential average forgets the first
ones. Batch normalisation is treated as in P. Izmailov, D. Podoprikhin, T. Garipov, D. Vetrov, A. G.
Wilson, Averaging weights leads to wider optima and better generalization, UAI 2018: statistics of
the single steps do not fit the averaged weights, so the averaged network measures its own, on
batches of the training.

`torch.optim.swa_utils` has both, but its `AveragedModel` waits for the GPU in each step, and its
`update_bn` also clears the statistics of layers that stay in evaluation mode.
"""

from collections.abc import Callable, Iterable

import torch
from torch import nn

BATCHES, PATCHES = 16, 1024  # last batches whose statistics are averaged, most patches of each
NORMALISATIONS = (nn.BatchNorm1d, nn.BatchNorm2d)


def kept_share(decay: float, step: int) -> float:
    """The share of itself that the average keeps in a step, counted from 0.

    It grows to `decay`: otherwise the random weights of the beginning would be a large part of the
    average of a short training. The rule is that of TensorFlow's ExponentialMovingAverage.
    """
    return min(decay, (1 + step) / (10 + step))


@torch.no_grad()
def follow(averaged: nn.Module, network: nn.Module, share: float) -> None:
    """Take the present weights of a network into the average.

    Args:
        averaged: a copy of the network, whose weights are the average.
        network: after a step.
        share: share of itself that the average keeps.
    """
    pairs = zip(averaged.parameters(), network.parameters(), strict=True)
    for average, present in pairs:
        average.lerp_(present, 1 - share)


@torch.no_grad()
def settle(
    averaged: nn.Module,
    network: nn.Module,
    describe: Callable[[torch.Tensor], object],
    batches: Iterable[torch.Tensor],
) -> None:
    """Give the averaged network its buffers: the network's own, and measured statistics.

    Running averages of batch normalisation become the plain means over the batches, which pass as
    in training, with dropout. Layers that stay in evaluation mode keep those of the network.

    Args:
        averaged: the averaged network.
        network: the network that is trained.
        describe: runs the averaged network on patches.
        batches: patches as the network sees them in training.
    """
    pairs = zip(averaged.buffers(), network.buffers(), strict=True)
    for buffer, present in pairs:
        buffer.copy_(present)
    averaged.train()
    layers = [m for m in averaged.modules() if isinstance(m, NORMALISATIONS) and m.training]
    usual = [layer.momentum for layer in layers]
    for layer in layers:
        layer.reset_running_stats()  # also the number of batches, which is exported
    for i, patches in enumerate(batches, 1):
        for layer in layers:
            layer.momentum = 1 / i
        describe(patches)
    for layer, momentum in zip(layers, usual, strict=True):
        layer.momentum = momentum
