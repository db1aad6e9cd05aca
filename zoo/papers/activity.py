"""Mixed context's figure 4: how strongly a loss acts on a triplet with performance rho."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import torch

from harness.errors import InputError
from zoo.mixed_context import LOSSES

MOST, STEPS = 2.0, 81  # largest rho of unit vectors, and numbers of rho


def activity(
    trained: Path | None, data: Sequence[Path], *, loss: Literal["log", "sse"], delta: float
) -> dict[str, Any]:
    """The negative derivative of a loss by rho, as a curve; the value is that at rho = 0.

    Args:
        trained: not used.
        data: not used.
        loss: the loss.
        delta: its scale; infinite: the hinge loss, which only the log loss becomes.

    Raises:
        InputError: if delta is infinite and the loss has no such limit in the paper.
    """
    if loss != "log" and math.isinf(delta):
        raise InputError(f"the paper gives no limit of the loss {loss!r} for infinite delta")
    rho = torch.linspace(-MOST, MOST, STEPS, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(LOSSES[loss](rho, alpha=0.0, delta=delta).sum(), rho)
    acting = (-slope).tolist()
    curve = list(zip(rho.tolist(), acting, strict=True))
    return {"value": acting[STEPS // 2], "decimals": 3, "curves": {"activity": curve}}
