"""Trainings of items: each is known by its recipe, its settings and the hash of its data."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from harness import registry
from harness.data import training_sets
from harness.errors import ComputeError
from harness.reproduce.budgets import Budget
from harness.types import Descriptor

CARD = "card.json"  # written last: it says that a training is finished
WEIGHTS = "weights.safetensors"
EPOCHS = "epochs"


@dataclass(frozen=True)
class Training:
    """One training; equal trainings of different items are one."""

    recipe: str
    settings: tuple[str, ...]  # all that replace those of the recipe, without the name
    data: tuple[Path, ...]
    precision: str
    start: "Training | None" = None  # its weights are those that this training starts from
    kept: bool = False  # whether weights of several epochs are kept

    @cached_property
    def key(self) -> str:
        """Hash of all that decides the weights."""
        facts = {
            "settings": registry.load("trainers", "identity")(self.recipe, self.settings),
            "data": [_sha256(folder) for folder in self.data],
            "precision": self.precision,
            "start": self.start.key if self.start else None,
            "kept": self.kept,
        }
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()

    @property
    def name(self) -> str:
        """Name of the model."""
        return f"{Path(self.recipe).stem}-{self.key:.10}"

    def absolute(self) -> "Training":
        """The same with absolute paths, for a process that works in another folder."""
        data = tuple(folder.absolute() for folder in self.data)
        return replace(self, data=data, start=self.start and self.start.absolute())

    def folder(self, out: Path) -> Path:
        """Its folder."""
        return out / "trainings" / self.name

    def is_done(self, out: Path) -> bool:
        """Whether it is finished."""
        return (self.folder(out) / CARD).is_file()


def train(
    training: Training,
    out: Path,
    device: str,
    *,
    stop: Callable[[], bool] | None = None,
    shown: bool = True,
) -> None:
    """Train, continue a training that was interrupted, or do nothing if it is finished.

    Args:
        training: the training.
        out: folder of the run.
        device: "auto", "cpu" or "cuda".
        stop: asked after each step whether to stop; None: a signal stops the training.
        shown: show progress on stderr.

    Raises:
        ComputeError: if a training that it starts from is not there.
        KeyboardInterrupt: if it was stopped; its state is kept.
        BlockingIOError: if another process trains in its folder.
        HarnessError: as `harness train` does.
    """
    if training.is_done(out):
        return
    settings = [*training.settings, f"name={training.name}"]
    if training.start:
        start = training.start.folder(out).absolute()  # as workers see it
        if not training.start.is_done(out):
            raise ComputeError(f"{training.start.name} failed, whose weights it starts from")
        settings.append(f"network.start={start / WEIGHTS}")
    registry.load("trainers", "recipes")(
        training.recipe,
        training.folder(out),
        data=[str(one) for one in training.data],
        settings=settings,
        device=device,
        precision=training.precision,
        resume=None,
        onnx=False,
        stop=stop,
        shown=shown,
    )


def epochs(training: Training, out: Path) -> list[int]:
    """The epochs whose weights are kept, in their order."""
    kept = training.folder(out) / EPOCHS
    return sorted(int(one.name) for one in kept.iterdir() if (one / CARD).is_file())


def epoch_folder(whole: Path, epoch: int) -> Path:
    """The folder of the weights after an epoch, in that of a training."""
    return whole / EPOCHS / f"{epoch:05}"


def opened(folder: Path, budget: Budget, *, device: str) -> Descriptor:
    """The descriptor of a finished training, or of one of its epochs, from its folder."""
    made: Descriptor = registry.load("trainers", "opened")(
        folder, device=device, through_onnx=budget.onnx
    )
    return made


def settled(budget: Budget, recipe: str, own: Sequence[str]) -> tuple[str, ...]:
    """Settings of a budget that a recipe has, then the cell's own."""
    known: list[str] = registry.load("trainers", "settled")(
        recipe, budget.settings, budget.method, budget.network
    )
    return (*known, *own)


@lru_cache(maxsize=64)
def _sha256(folder: Path) -> str:
    """Hash of the training data in a folder."""
    return training_sets.open_set(str(folder)).sha256


def facts(folder: Path) -> dict[str, Any]:
    """The card of a finished training, as JSON."""
    found: dict[str, Any] = json.loads((folder / CARD).read_text("utf-8"))
    return found
