"""Reproduces an item: trains and evaluates what is missing, and collects the numbers of its cells.

Everything that is finished is kept in the folder and reused: trainings by their key, evaluations by
their records, measures by a hash of all that decides them. So a run that was killed goes on, and
items share trainings.
"""

import logging
from collections.abc import Callable, Iterator, Sequence

from harness import registry
from harness.cluster import sweep
from harness.data import training_sets
from harness.errors import InputError
from harness.metrics import lower_is_better
from harness.reproduce import items, outcomes, trainings
from harness.reproduce.attempt import attempt
from harness.reproduce.bench import Bench, Subject
from harness.reproduce.items import Cell
from harness.reproduce.measures import seen_by
from harness.reproduce.outcomes import Measured, Outcome, Value
from harness.reproduce.places import Located
from harness.reproduce.scores import value_of
from harness.reproduce.trainings import Training
from harness.types import Protocol

log = logging.getLogger(__name__)


def reproduce(name: str, budget: str, bench: Bench) -> Outcome:
    """Measure all cells of an item, and keep the outcome.

    A cell that fails is kept with the reason, and the others are measured.

    Raises:
        UnknownNameError: if there is no such item.
        SystemRefusedError: if a file can't be written.
    """
    item = items.find(name).item
    cells = [*items.cells(item, budget, bench.budget.keep)]
    planned = [attempt(_trainings, cell, bench) for _, cell in cells]
    _train_all([one for plan in planned if isinstance(plan, list) for one in plan], bench)
    for (_, cell), plan in zip(cells, planned, strict=True):
        attempt(_want, cell, plan, bench)
    measured = []
    for (at, cell), plan in zip(cells, planned, strict=True):
        if isinstance(plan, str):
            measured.append(Measured(at=at, missing=plan))
            continue
        got = attempt(_measured, at, cell, plan, bench)
        if isinstance(got, str):
            log.warning("%s, %s: %s", name, ", ".join(at.values()), got)
            got = Measured(at=at, missing=got)
        measured.append(got)
    used = [cell for _, cell in cells]
    outcome = Outcome(
        item=name,
        budget=budget,
        trained_on=_names(bench, (one for cell in used for one in cell.train), _trained),
        tested_on=_tested(bench, used),
        cells=tuple(measured),
    )
    outcomes.save(bench.out, outcome)
    return outcome


def plan(name: str, budget: str, bench: Bench) -> list[Training]:
    """All trainings of an item, each once, those first that others start from.

    Raises:
        HarnessError: if data are missing.
    """
    item = items.find(name).item
    found: dict[str, Training] = {}
    for _, cell in items.cells(item, budget, bench.budget.keep):
        for one in _trainings(cell, bench):
            found |= {each.key: each for each in (one.start, one) if each}
    return [*found.values()]


def _trainings(cell: Cell, bench: Bench) -> list[Training]:
    """The trainings of a cell, one for each seed."""
    if not cell.recipe:
        return []
    seeds = min(cell.seeds, bench.budget.seeds or cell.seeds)
    return [_training(cell, seed, bench) for seed in range(seeds)]


def _training(cell: Cell, seed: int, bench: Bench) -> Training:
    where = [bench.locate(name) for name in cell.train]
    data, precision = tuple(one.training for one in where), bench.budget.precision
    of_both = [setting for one in where for setting in one.place.settings]
    of_both += [*cell.common, f"seed={seed}"]
    start = None
    if cell.start:
        settings = trainings.settled(bench.budget, cell.start, of_both)
        start = Training(cell.start, settings, data, precision)
    settings = trainings.settled(bench.budget, cell.recipe, [*of_both, *cell.settings])
    if cell.epochs:
        epochs = registry.load("trainers", "identity")(cell.recipe, settings)["epochs"]
        settings = (*settings, f"checkpoints.every={_every(epochs, bench.budget.points)}")
    return Training(cell.recipe, settings, data, precision, start, kept=cell.epochs)


def _every(epochs: int, points: int) -> int:
    """The least distance of at most so many kept epochs, the last of which is the last of all."""
    return next(
        step for step in range(1, epochs + 1) if epochs % step == 0 and epochs // step <= points
    )


def _train_all(wanted: Sequence[Training], bench: Bench) -> None:
    """Train each training that is not finished; an error is kept, and the others go on."""
    each: dict[str, Training] = {}
    for one in wanted:
        each |= {step.key: step for step in (one.start, one) if step}
    todo = [one for one in each.values() if not one.is_done(bench.out)]

    def ended(one: Training, error: str | None) -> None:
        if error is not None:
            log.warning("%s: %s", one.name, error)
            bench.failed[one.key] = error

    if todo and bench.has_cluster:
        sweep.train_all(
            todo,
            bench.out,
            bench.device,
            ended,
            workers=bench.workers,
            scheduler=bench.scheduler,
        )
        return
    for number, one in enumerate(todo, 1):
        log.info("training %d of %d: %s", number, len(todo), one.name)
        ended(one, attempt(trainings.train, one, bench.out, bench.device))


def _want(cell: Cell, plan: Sequence[Training] | str, bench: Bench) -> None:
    """Note the protocols of a cell, so that tasks on the same patches are evaluated together."""
    if isinstance(plan, str) or not cell.protocol:
        return
    tasks = [bench.protocol(cell.protocol, test, cell.options) for test in cell.test]
    for subject in _subjects(cell, [one for one in plan if one.is_done(bench.out)], bench):
        bench.wanted.setdefault(subject.name, []).extend(tasks)


def _measured(at: dict[str, str], cell: Cell, plan: Sequence[Training], bench: Bench) -> Measured:
    """The numbers of a cell."""
    for one in plan:
        if one.key in bench.failed:
            raise InputError(f"{one.name} failed: {bench.failed[one.key]}")
    subjects = [*_subjects(cell, plan, bench)]
    if cell.measure:
        seen = [seen_by(cell, one, bench) for one in subjects]
        values = [
            Value(value=found.value, seed=one.seed, epoch=one.epoch)
            for one, found in zip(subjects, seen, strict=True)
            if found.value is not None
        ]
        last = seen[-1]
        return Measured(
            at=at,
            values=tuple(values),
            seen=last,
            decimals=last.decimals,
            lower_is_better=last.lower_is_better,
        )
    tasks = [bench.protocol(cell.protocol, test, cell.options) for test in cell.test]
    scored = [value_of(one, tasks, cell.score, bench) for one in subjects]
    quantities = tasks[0].quantities
    score = cell.score or tasks[0].headline
    quantity = quantities.get(score.rpartition("/")[2])
    return Measured(
        at=at,
        values=tuple(scored),
        decimals=quantity.decimals if quantity else None,
        lower_is_better=lower_is_better(score, quantities),
    )


def _subjects(cell: Cell, plan: Sequence[Training], bench: Bench) -> Iterator[Subject]:
    """Yields what a cell scores: each seed, and each kept epoch if it asks for them."""
    if not plan:
        yield Subject(model=cell.model, wrap=cell.wrap)
        return
    for seed, one in enumerate(plan):
        for epoch in trainings.epochs(one, bench.out) if cell.epochs else [None]:
            yield Subject(training=one, seed=seed, epoch=epoch, wrap=cell.wrap)


def _names(bench: Bench, wanted: Iterator[str], told: Callable[[Located], str]) -> dict[str, str]:
    """What stands for each name of data; names without data are left out."""
    found = {}
    for name in dict.fromkeys(wanted):
        text = attempt(lambda name=name: told(bench.locate(name)))
        if name in bench.located:
            found[name] = text
    return found


def _trained(where: Located) -> str:
    return training_sets.open_set(str(where.training)).name


def _called(where: Located) -> str:
    """The name of data in a known form, else of their folder."""
    try:
        return _trained(where)
    except InputError:
        return where.folder.name


def _tested(bench: Bench, used: Sequence[Cell]) -> dict[str, str]:
    """The data set and split that stand for each tested name; of measures, the training data."""
    found: dict[str, str] = {}
    for cell in used:
        for test in cell.test:
            if test in found or test not in bench.located:
                continue
            if cell.measure:
                found[test] = _called(bench.locate(test))
                continue
            opened = attempt(bench.protocol, cell.protocol, test, cell.options)
            if isinstance(opened, Protocol):
                found[test] = f"{opened.dataset.name}, split {opened.dataset.split}"
    return found
