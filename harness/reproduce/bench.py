"""The folders of a run, what it has opened, and the models that it scores."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness import loading
from harness.errors import FileMissingError, InputError
from harness.reproduce import budgets, places, trainings
from harness.reproduce.budgets import Budget, Place
from harness.reproduce.places import Located
from harness.reproduce.trainings import Training
from harness.types import Descriptor, Protocol


@dataclass(frozen=True, eq=False)
class Bench:
    """The folders of a run, and what it has opened."""

    budget: Budget
    out: Path
    data: Path | None = None
    device: str = "auto"
    workers: int | None = None  # processes on this machine that train; None: this one alone
    scheduler: str | None = None  # address of a Dask scheduler whose workers train
    located: dict[str, Located] = field(default_factory=dict)
    protocols: dict[str, Protocol] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)  # key of a training -> its error
    wanted: dict[str, list[Protocol]] = field(default_factory=dict)  # by the name of a subject

    @property
    def has_cluster(self) -> bool:
        """Whether workers of a cluster train."""
        return self.workers is not None or self.scheduler is not None

    def locate(self, name: str) -> Located:
        """The data of a name."""
        if name not in self.located:
            place = self.budget.places.get(name, Place())
            self.located[name] = places.locate(name, place, self.data, self.out / "data")
        return self.located[name]

    def protocol(self, name: str, test: str, options: Mapping[str, Any]) -> Protocol:
        """A protocol on the data of a name."""
        where = self.locate(test)
        given = {**self.budget.protocols.get(name.partition("/")[0], {}), **options}
        given |= {**where.options, "data": where.folder}
        if where.place.frames:
            given["frames"] = self._frames(where.place.frames)
        key = f"{name} {test} {sorted(map(str, given.items()))}"
        if key not in self.protocols:
            self.protocols[key] = loading.load_protocol(name, **given)
        return self.protocols[key]

    def _frames(self, folder: str) -> Path:
        if self.data is None or not (self.data / folder).is_dir():
            raise FileMissingError(f"there is no folder of regions {folder}: give --data DIR")
        return self.data / folder


@dataclass(frozen=True, eq=False)
class Subject:
    """What is scored: an installed model, or a training, at one epoch."""

    model: str = ""
    training: Training | None = None
    seed: int = 0
    epoch: int | None = None
    wrap: str = ""

    @property
    def name(self) -> str:
        """The name of the model in its records."""
        base = self.training.name if self.training else self.model
        base += f"@epoch-{self.epoch}" if self.epoch is not None else ""
        return f"{base}|{self.wrap}" if self.wrap else base

    def folder(self, out: Path) -> Path:
        """The folder of the weights; only of a training."""
        assert self.training is not None
        whole = self.training.folder(out)
        return whole if self.epoch is None else trainings.epoch_folder(whole, self.epoch)


def bench_of(
    budget: str,
    out: Path,
    data: Path | None,
    device: str,
    *,
    workers: int | None = None,
    scheduler: str | None = None,
) -> Bench:
    """A bench for a budget."""
    return Bench(budgets.find(budget), out, data, device, workers, scheduler)


def model_of(subject: Subject, bench: Bench) -> Descriptor:
    """The descriptor of a subject.

    Raises:
        InputError: if the model is a folder of vectors.
        HarnessError: if it can't be opened.
    """
    if subject.training is None:
        model = loading.load_model(subject.model, device=bench.device)
    else:
        folder = subject.folder(bench.out)
        model = trainings.opened(folder, bench.budget, device=bench.device)
    if not isinstance(model, Descriptor):
        raise InputError(f"{subject.model} is a folder of vectors: an item names a descriptor")
    return loading.wrap(model, subject.wrap) if subject.wrap else model


def weights_of(subject: Subject, bench: Bench) -> str | None:
    """The sha256 of the weights of a trained subject."""
    weights: str | None = trainings.facts(subject.folder(bench.out))["weights"]
    return weights
