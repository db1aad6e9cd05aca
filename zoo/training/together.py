"""Training in several processes: each describes a part of a batch, and gets all vectors."""

from typing import Any

import torch
import torch.distributed as dist
from torch import nn


def together() -> int:
    """Number of processes; 1 without torchrun."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def number() -> int:
    """Number of this process, from 0."""
    return dist.get_rank() if together() > 1 else 0


def any_of(flag: bool, device: torch.device) -> bool:
    """Whether the flag of any process is true; all processes must call it together.

    Args:
        flag: the flag of this process.
        device: the device of this process.
    """
    if together() == 1:
        return flag
    highest = torch.tensor(int(flag), device=device)
    dist.all_reduce(highest, dist.ReduceOp.MAX)
    return bool(highest)


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
        # In each process, the total reaches the loss through other rows: their gradients add up.
        total = gradient.clone()
        dist.all_reduce(total)
        return total


class _Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: torch.Tensor, n: int) -> torch.Tensor:
        ctx.rows = part(n)
        share = -(-n // together())
        padded = rows.new_zeros((share, *rows.shape[1:]))
        padded[: len(rows)] = rows
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


def gathered(rows: torch.Tensor, n: int) -> torch.Tensor:
    """All n rows, from the part of each process; gradients flow back to this process's rows."""
    return _Gathered.apply(rows, n) if together() > 1 else rows  # type: ignore[no-untyped-call]


def add_gradients(network: nn.Module) -> None:
    """Sum the gradients of all processes, which gives those of the whole batch."""
    if together() > 1:
        for parameter in network.parameters():
            if parameter.grad is not None:
                dist.all_reduce(parameter.grad)
