"""What a training needs to go on from where it was: written whole, read back bit for bit."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from harness import atomic
from zoo.training.recipe import Recipe, identity

FILE = "checkpoint.pt"


@dataclass(frozen=True, eq=False)
class Trained:
    """All that changes while a training runs."""

    network: nn.Module
    method: nn.Module
    optimiser: torch.optim.Optimizer


def save(out: Path, of: Trained, *, step: int, seconds: float, origin: str) -> None:
    """Keep the state before a step."""
    state = {
        "network": of.network.state_dict(),
        "method": of.method.state_dict(),
        "optimiser": of.optimiser.state_dict(),
        "step": step,
        "seconds": seconds,
        "origin": origin,
    }
    with atomic.writing(out / FILE) as stream:
        torch.save(state, stream)


def load(out: Path, into: Trained, *, origin: str) -> tuple[int, float]:
    """Put a kept state back; the step that comes next, and the seconds spent so far.

    Raises:
        FileNotFoundError: if there is none.
        ValueError: if it is another recipe's, or of other data, or damaged.
    """
    file = out / FILE
    if not file.is_file():
        raise FileNotFoundError(f"there is no {file} to resume from: leave out --resume")
    device = next(into.network.parameters()).device
    try:
        state: dict[str, Any] = torch.load(file, map_location=device, weights_only=True)
        found = state["origin"]
    except Exception as error:  # of many types, by the way in which the file is broken
        raise ValueError(
            f"{file} can't be read ({type(error).__name__}): remove {out} and train again"
        ) from error
    if found != origin:
        raise ValueError(
            f"{file} was written for another recipe, other data, another precision or another"
            f" number of processes than those given: give the same again (see"
            f" {out / 'recipe.json'}), or another --out"
        )
    into.network.load_state_dict(state["network"], strict=True)
    into.method.load_state_dict(state["method"], strict=True)
    into.optimiser.load_state_dict(state["optimiser"])
    return int(state["step"]), float(state["seconds"])


def origin(recipe: Recipe, data: str, **facts: object) -> str:
    """One hash of what must be the same for a training to be the same."""
    said = {"recipe": identity(recipe), "data": data, **facts}
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()
