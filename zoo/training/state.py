"""State of a training, from which it resumes; it is written atomically and read bit for bit."""

import hashlib
import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from harness.errors import FileMissingError, InputError
from harness.files import atomic
from zoo.training.recipe import Recipe, identity

FILE, LOG = "checkpoint.pt", "log.jsonl"
MARK = (
    b"harness checkpoint 1\n"  # beginning of the file; then come the state's sha256 and the state
)


@dataclass(frozen=True, eq=False)
class Trained:
    """The objects that a training changes."""

    network: nn.Module
    method: nn.Module
    optimiser: torch.optim.Optimizer
    averaged: nn.Module | None = None  # only of trainings with averaged weights


def save(out: Path, of: Trained, *, step: int, seconds: float, origin: str) -> None:
    """Write the state before a step."""
    state = {
        "network": of.network.state_dict(),
        "method": of.method.state_dict(),
        "optimiser": of.optimiser.state_dict(),
        "step": step,
        "seconds": seconds,
        "origin": origin,
    }
    if of.averaged is not None:
        state["averaged"] = of.averaged.state_dict()
    contents = io.BytesIO()
    torch.save(_on_cpu(state), contents)
    if (out / LOG).is_file():  # the log goes first, so that it has all steps of a kept state
        atomic.sync_to_disk(out / LOG)
    with atomic.writing(out / FILE) as stream:
        stream.write(MARK + hashlib.sha256(contents.getbuffer()).digest())
        stream.write(contents.getbuffer())


def must_be_in(out: Path) -> None:
    """Refuse to resume if no state is kept.

    Raises:
        FileMissingError: if no state is kept there.
    """
    if not (out / FILE).is_file():
        raise FileMissingError(f"there is no {out / FILE} to resume from: leave out --resume")


def load(out: Path, into: Trained, *, origin: str) -> tuple[int, float]:
    """Restore a kept state; returns the next step and the seconds of training so far.

    Raises:
        FileMissingError: if there is no state.
        InputError: if the state is damaged, or of another recipe or other data.
    """
    must_be_in(out)
    file = out / FILE
    mark, digest, contents = _parts(file.read_bytes())
    if mark != MARK or hashlib.sha256(contents).digest() != digest:
        raise InputError(
            f"{file} is damaged or of another version of the harness: its contents do not have the"
            f" sha256 at its beginning; remove {out} and train again, or put back a copy of"
            f" {file.name}"
        )
    # On the CPU: each part moves to its device what belongs there. Adam counts its steps on the CPU
    # unless it is fused; on a GPU, each count would be waited for in each step.
    state: dict[str, Any] = torch.load(io.BytesIO(contents), map_location="cpu", weights_only=True)
    if state["origin"] != origin:
        raise InputError(
            f"{file} was written with another recipe, other data, another precision or another"
            f" number of processes: give the same ones again (see {out / 'recipe.json'}), or choose"
            " another --out"
        )
    into.network.load_state_dict(state["network"], strict=True)
    into.method.load_state_dict(state["method"], strict=True)
    into.optimiser.load_state_dict(state["optimiser"])
    if into.averaged is not None:
        into.averaged.load_state_dict(state["averaged"], strict=True)
    return int(state["step"]), float(state["seconds"])


def _parts(whole: bytes) -> tuple[bytes, bytes, bytes]:
    begin, end = len(MARK), len(MARK) + hashlib.sha256().digest_size
    return whole[:begin], whole[begin:end], whole[end:]


def origin(recipe: Recipe, data: str, **facts: object) -> str:
    """A hash of all facts that decide a training."""
    table = {"recipe": identity(recipe), "data": data, **facts}
    return hashlib.sha256(json.dumps(table, sort_keys=True).encode()).hexdigest()


def _on_cpu(x: Any) -> Any:
    """The same, with all tensors on the CPU."""
    if isinstance(x, dict):
        return {key: _on_cpu(value) for key, value in x.items()}
    if isinstance(x, list):
        return [_on_cpu(value) for value in x]
    return x.cpu() if isinstance(x, torch.Tensor) else x
