"""Mixed context's figure 4: how strongly a loss acts on a triplet with performance rho."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import torch

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
    """
    rho = torch.linspace(-MOST, MOST, STEPS, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(LOSSES[loss](rho, alpha=0.0, delta=delta).sum(), rho)
    acting = (-slope).tolist()
    name = f"{loss}, δ = {'∞' if delta == float('inf') else f'{delta:g}'}"
    curve = list(zip(rho.tolist(), acting, strict=True))
    return {"value": acting[STEPS // 2], "decimals": 3, "curves": {name: curve}}
