"""Several processes that train one network: each describes its part of a batch, all see all."""

from typing import Any

import torch
import torch.distributed as dist
from torch import nn


def together() -> int:
    """How many processes train; 1 without torchrun."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def number() -> int:
    """Which of them this is, from 0 on."""
    return dist.get_rank() if together() > 1 else 0


def any_of(said: bool, device: torch.device) -> bool:
    """Whether any of the processes says so; all of them ask at the same time.

    Args:
        said: what this process says.
        device: where this process computes.
    """
    if together() == 1:
        return said
    flag = torch.tensor(int(said), device=device)
    dist.all_reduce(flag, dist.ReduceOp.MAX)
    return bool(flag)


def part(n: int) -> slice:
    """The rows of a batch of n that this process describes."""
    share = -(-n // together())
    return slice(min(n, number() * share), min(n, (number() + 1) * share))


class _Summed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        total = x.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        # Each process's rows take their own way from the total to the loss.
        total = gradient.clone()
        dist.all_reduce(total)
        return total


class _Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, own: torch.Tensor, n: int) -> torch.Tensor:
        ctx.rows = part(n)
        share = -(-n // together())
        padded = own.new_zeros((share, *own.shape[1:]))
        padded[: len(own)] = own
        parts = [torch.empty_like(padded) for _ in range(together())]
        dist.all_gather(parts, padded)
        return torch.cat(parts)[:n]

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        # Every process computes the whole loss, so each knows the whole gradient already.
        return gradient[ctx.rows].contiguous(), None


def summed(x: torch.Tensor) -> torch.Tensor:
    """The sum of a tensor over the processes; gradients flow through it."""
    return _Summed.apply(x) if together() > 1 else x  # type: ignore[no-untyped-call]


def gathered(own: torch.Tensor, n: int) -> torch.Tensor:
    """All n rows of which each process has its part; the gradient of the own ones flows back."""
    return _Gathered.apply(own, n) if together() > 1 else own  # type: ignore[no-untyped-call]


def add_gradients(network: nn.Module) -> None:
    """Gradients of the whole batch from those of its parts."""
    if together() > 1:
        for parameter in network.parameters():
            if parameter.grad is not None:
                dist.all_reduce(parameter.grad)
