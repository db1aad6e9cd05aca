"""Cost of an item: its trainings, the patches that they learn from, and the hours that they take.

Hours come from measured speeds in RESULTS/studies/training-speed.csv, each with its source. On a
GPU, only some recipes were measured: the time of another one is in proportion to its speed on a
processor, where both were measured. Evaluations are not counted.
"""

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from harness import registry
from harness.data import training_sets
from harness.errors import HarnessError, InputError
from harness.files import texts
from harness.records import published
from harness.reproduce import budgets, items, published_cells, trainings
from harness.reproduce.bench import Bench
from harness.reproduce.budgets import Place

SPEEDS = "studies/training-speed.csv"  # below the results
COLUMNS = ["recipe", "device", "patches_per_second", "source"]
GPU, CPU = "gpu", "cpu"


@dataclass(frozen=True)
class Speed:
    """Patches with a gradient that a recipe learns from in a second."""

    recipe: str
    device: str
    patches_per_second: float
    source: str


@dataclass(frozen=True)
class Work:
    """The trainings of an item with a budget."""

    patches: dict[str, int]  # with a gradient, by recipe; of trainings whose data have a known size
    trainings: int
    unknown: int  # trainings on data of unknown size


def speeds(results: Path) -> list[Speed]:
    """The measured speeds; none without the file.

    Raises:
        InputError: if the file has other columns.
    """
    file = results / SPEEDS
    if not file.is_file():
        return []
    rows = list(csv.reader(io.StringIO(texts.read_table(file))))
    if rows[0] != COLUMNS:
        raise InputError(f"{file} has the columns {rows[0]}; {COLUMNS} are wanted")
    return [
        Speed(name, device, texts.number(speed), source) for name, device, speed, source in rows[1:]
    ]


def work(name: str, budget: str, bench: Bench) -> Work:
    """The trainings of an item, each once."""
    found: dict[tuple[object, ...], tuple[str, int | None]] = {}
    for _, cell in items.cells(items.find(name).item, budget, bench.budget.keep):
        if not cell.recipe:
            continue
        settings = [*cell.common]
        for one in cell.train:
            settings += bench.budget.places.get(one, Place()).settings
        wanted = [(cell.recipe, (*settings, *cell.settings))]
        wanted += [(cell.start, tuple(settings))] if cell.start else []
        for seed in range(min(cell.seeds, bench.budget.seeds or cell.seeds)):
            for recipe, own in wanted:
                key = (recipe, own, cell.train, cell.start if recipe == cell.recipe else "", seed)
                if key not in found:
                    found[key] = recipe, _patches(recipe, own, cell.train, bench)
    patches: dict[str, int] = {}
    for recipe, number in found.values():
        patches[recipe] = patches.get(recipe, 0) + (number or 0)
    return Work(patches, len(found), sum(number is None for _, number in found.values()))


def hours(done: Work, known: list[Speed], device: str) -> tuple[float | None, list[str]]:
    """Hours on one device, and the sources of the speeds; None if a speed is missing.

    Args:
        done: the trainings.
        known: measured speeds.
        device: GPU or CPU.
    """
    on = {one.recipe: one for one in known if one.device.partition(" ")[0] == device}
    cpu = {one.recipe: one for one in known if one.device.partition(" ")[0] == CPU}
    total, sources = 0.0, dict[str, None]()
    for recipe, patches in done.patches.items():
        compared = (one for name, one in on.items() if name in cpu)
        found = on.get(recipe) or next(compared, None) or next(iter(on.values()), None)
        if found is None:
            return None, []
        ratio = 1.0
        if recipe != found.recipe and recipe in cpu and found.recipe in cpu:
            ratio = cpu[found.recipe].patches_per_second / cpu[recipe].patches_per_second
        total += ratio * patches / found.patches_per_second / 3600
        sources[f"{found.device}, {found.source}"] = None
    return total, list(sources)


def foretold(name: str, budget: str, bench: Bench, results: Path) -> Iterator[str]:
    """Yields sentences on the cost of an item."""
    done = work(name, budget, bench)
    if not done.trainings:
        yield f"{name}, budget {budget}: no training"
        return
    yield (
        f"{name}, budget {budget}: {done.trainings} trainings from {sum(done.patches.values()):,}"
        " patches, less those that are finished"
        + (f"; {done.unknown} on data of unknown size" if done.unknown else "")
    )
    known = speeds(results)
    for device, title in ((GPU, "one GPU"), (CPU, "one processor")):
        time, sources = hours(done, known, device)
        if time is not None and sources:
            yield f"about {time:,.1f} hours on {title}, by the speed of {'; '.join(sources)}"


def listing(wanted: str | None, results: Path, data: Path | None, out: Path) -> Iterator[str]:
    """Yields lines on the items of all papers, or on those whose names begin with `wanted`."""
    numbers = published.read(results / published.FOLDER)
    known = speeds(results)
    benches = {name: Bench(budgets.find(name), out, data) for name in budgets.names()}
    paper = ""
    for name in items.names():
        if wanted and not name.startswith(wanted):
            continue
        found = items.find(name)
        if name.partition("/")[0] != paper:
            paper = name.partition("/")[0]
            yield paper
        cells = [cell for _, cell in items.cells(found.item, "full", None)]
        own = published_cells.of_item(found.item, numbers)
        printed = sum(bool(published_cells.of_cell(cell, own)) for cell in cells)
        of_budgets = {budget: work(name, budget, bench) for budget, bench in benches.items()}
        counts = ", ".join(f"{budget} {one.trainings}" for budget, one in of_budgets.items())
        yield f"  {name:28} {found.item.title}"
        known_numbers = f"{len(cells)} cells, {printed} with a published number"
        yield f"  {'':28} {known_numbers}; trainings: {counts}"
        full = of_budgets.get("full")
        if full and full.trainings:
            time, _ = hours(full, known, GPU)
            cost = "no speed of a GPU is known" if time is None else f"about {time:,.0f} hours"
            yield f"  {'':28} full: {sum(full.patches.values()):,} patches, {cost} on one GPU"
    yield from (f"Speed: {source}" for source in _sources(known))


def _sources(known: list[Speed]) -> list[str]:
    gpus = [one for one in known if one.device.startswith(GPU)]
    return [
        f"{one.recipe}, {one.device}: {one.patches_per_second:,.0f} patches a second ({one.source})"
        for one in gpus
    ]


def _patches(recipe: str, own: tuple[str, ...], train: tuple[str, ...], bench: Bench) -> int | None:
    """Patches of one training; None if the size of its data is not known."""
    sizes = [_size(name, bench) for name in train]
    if None in sizes:
        return None
    points = sum(size[0] for size in sizes if size)
    each = max(size[1] for size in sizes if size)
    settings = trainings.settled(bench.budget, recipe, own)
    counted: int = registry.load("trainers", "patches")(recipe, settings, points, each)
    return counted


def _size(name: str, bench: Bench) -> tuple[int, int] | None:
    """Points and patches of each point of training data; from the budget if they are not here."""
    place = bench.budget.places.get(name, Place())
    if place.points:
        return place.points, place.each
    if place.build:
        return None  # counted only once they are built, which takes long
    try:
        return _counted(bench.locate(name).training)
    except HarnessError:
        return None


@lru_cache(maxsize=64)
def _counted(folder: Path) -> tuple[int, int]:
    point = training_sets.open_set(str(folder)).point
    points = len(np.unique(point))
    return points, max(2, round(len(point) / points))
