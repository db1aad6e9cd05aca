"""`harness train`: trains a recipe on data, and writes weights, their card and an ONNX file."""

import hashlib
import json
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from statistics import median

import torch
import torch.distributed as dist
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn

from harness import Dataset
from harness.data import training_sets
from harness.data.photographs import Photograph, all_of, licences
from harness.errors import ComputeError, FileInTheWayError, ImportFailedError, InputError
from harness.escape import visible
from harness.files import atomic, locks
from harness.onnx import export as onnx_export
from harness.plugins import cuda_failure
from harness.progress import Bar
from harness.stopping import after_this_step
from harness.types import Descriptor, Patches
from zoo import card as cards
from zoo import trained
from zoo.card import Card, CardPhotograph, Moment, TrainingData
from zoo.exact import exact
from zoo.training import recipe as recipes
from zoo.training import state
from zoo.training.folder import CARD, EPOCHS, WEIGHTS, epoch_folder, epoch_name
from zoo.training.log import open_log, read_log
from zoo.training.loop import Run, Seen, is_moment, prepare
from zoo.training.loop import train as run_steps
from zoo.training.memory import keep_freed
from zoo.training.patches import stored
from zoo.training.recipe import Recipe
from zoo.training.together import number

log = logging.getLogger(__name__)

NOT_ON_CARD = {"data", "checkpoints"}
PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16}
RECIPE, LOCK = "recipe.json", ".lock"


def train(
    spec: str,
    out: Path | None,
    *,
    data: Sequence[str] = (),
    settings: Sequence[str] = (),
    device: str = "auto",
    precision: str = "auto",
    tests: Sequence[Path] = (),
    resume: bool | None = False,
    tensorboard: bool = False,
    onnx: bool = True,
    stop: Callable[[], bool] | None = None,
    shown: bool = True,
) -> Path:
    """Train a recipe; returns the folder of weights, card and ONNX file.

    Args:
        spec: name of a recipe, or a TOML file.
        out: folder of the training; None: "trained/NAME".
        data: folders or names of data sets, which replace the recipe's.
        settings: settings KEY=VALUE, which replace the recipe's.
        device: "auto", "cpu" or "cuda".
        precision: of convolutions: "float32", "bfloat16", or "auto"; see `precision_of`.
        tests: folders of test images; data that show the same photographs are refused.
        resume: continue from the state in the folder; None: if there is one, else begin anew.
        tensorboard: write TensorBoard's files, too.
        onnx: export the network as model.onnx, too.
        stop: asked after each step whether to stop; None: a signal stops the training.
        shown: show progress on stderr.

    Raises:
        KeyboardInterrupt: if the training was stopped; its state is kept.
        BlockingIOError: if another process trains in the folder.
        HarnessError: if the recipe or the data can't be trained on; says why.
    """
    recipe = recipes.read(spec, settings, data)
    if tensorboard and find_spec("tensorboard") is None:
        raise ImportFailedError(
            "TensorBoard is not installed: pip install tensorboard, or leave out --tensorboard"
        )
    out = out or Path("trained", recipe.name)
    keep_freed()
    with _processes(device) as place, exact(), _claimed(out, resume=resume) as resume:
        parts = training_sets.open_sets(recipe.data, recipe.data_options, tests)
        kind = precision_of(precision, place)
        with _bar(shown=shown) as bar:
            run = _prepared(recipe, training_sets.joined(parts), place, kind, bar)
            if resume:
                _must_be_the_same(out / RECIPE, run.recipe)
            elif number() == 0:
                atomic.write_text(out / RECIPE, recipe.model_dump_json(indent=1) + "\n")

            def keep_weights(seen: Seen) -> None:
                if number() == 0:
                    epoch = seen.step // run.recipe.epoch
                    name, folder = epoch_name(run.recipe.name, epoch), epoch_folder(out, epoch)
                    before = [entry for entry in read_log(out) if entry.step < seen.step]
                    _placed(folder, name, run, parts, seen, [*before, seen])

            last = _trained(
                run,
                out,
                bar,
                resume=resume,
                tensorboard=tensorboard,
                keep_weights=keep_weights,
                stop=stop,
            )
        if last is None:
            raise KeyboardInterrupt
        if number() == 0:
            name, log = run.recipe.name, read_log(out)
            made = trained.by_torch(*_placed(out, name, run, parts, last, log))
            if onnx:
                onnx_export.export(made, out / "model.onnx")
    return out


@contextmanager
def _claimed(out: Path, *, resume: bool | None) -> Iterator[bool]:
    """Hold the lock of a training's folder in the block; an empty folder is removed after an error.

    Yields whether to resume.

    Args:
        out: the folder.
        resume: None: resume if a state is kept, else begin anew.

    Raises:
        BlockingIOError: if another process trains in the folder.
        FileInTheWayError: if the folder has a training, and `resume` is false.
        FileMissingError: if the folder has no training, and `resume` is true.
        SystemRefusedError: if the folder is not writable.
    """
    if number() != 0:  # the first of several processes holds the lock for all
        yield _resumes(out, resume)
        return
    atomic.must_be_writable(out, f"a training can't be kept in {out}", "choose another --out")
    busy = f"another process trains in {out}: wait for it, or choose another --out"
    with atomic.making(out), locks.alone(out / LOCK, busy=busy):
        if resume:
            state.must_be_in(out)
        elif resume is not None:
            _must_be_new(out)
        yield _resumes(out, resume)


def _must_be_new(out: Path) -> None:
    if any((out / file).is_file() for file in (state.FILE, WEIGHTS)):
        raise FileInTheWayError(
            f"{out} already has a training: continue it with --resume, or choose another --out"
        )
    if (out / EPOCHS).exists():
        raise FileInTheWayError(
            f"{out / EPOCHS} holds weights of a training that can't be resumed: remove it, or"
            " choose another --out"
        )


def _resumes(out: Path, asked: bool | None) -> bool:
    return (out / state.FILE).is_file() if asked is None else asked


def _must_be_the_same(file: Path, recipe: Recipe) -> None:
    """Refuse to resume a training with another recipe, and name the settings that differ.

    `state.load` compares the recipes, too, but its error does not name the settings.
    """
    if not file.is_file():
        return
    before = recipes.read_kept(file)
    if not isinstance(before.steps_per_epoch, int):  # depends on the data; `state.load` checks it
        before = before.model_copy(update={"steps_per_epoch": recipe.steps_per_epoch})
    changed = recipes.differences(before, recipe)
    if changed:
        told = "; ".join(f"{key} was {was!r}, now {now!r}" for key, (was, now) in changed.items())
        raise InputError(
            f"{file} is of a training with another recipe: {told}. Give the old settings (--set"
            " KEY=VALUE) to resume it, or choose another --out"
        )


@contextmanager
def _processes(device: str) -> Iterator[torch.device]:
    """The device of this process; the processes that torchrun started form a group."""
    kind = device
    if "RANK" in os.environ and device != "cpu" and torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))  # else all would try the first GPU
    failure = cuda_failure() if device in ("auto", "cuda") else None
    if device == "auto":
        kind = "cpu" if failure else "cuda"
        if failure and torch.cuda.is_available():
            log.warning("%s: this trains on the CPU instead", failure)
    elif failure:
        raise ComputeError(f"{failure}: choose --device cpu")
    if "RANK" not in os.environ:
        yield torch.device(kind)
        return
    gpu = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if kind == "cuda" else None
    dist.init_process_group("nccl" if gpu else "gloo")
    try:
        yield gpu or torch.device("cpu")
    finally:
        dist.destroy_process_group()


def precision_of(asked: str, device: torch.device) -> torch.dtype:
    """The number type of convolutions.

    On GPUs, "auto" is float32, without TF32: no measurement shows that bfloat16 keeps an FPR95 near
    0.5 %. On processors that compute in bfloat16, "auto" is bfloat16, which is three times as fast.
    All shipped weights were trained with it, and their records show the scores. No measurement
    compares the two types on processors: to reproduce a paper's number, choose float32.
    """
    if asked in PRECISIONS:
        if asked == "bfloat16" and device.type == "cuda" and not _has_bfloat16():
            log.warning("this GPU has no bfloat16 and only imitates it: float32 is faster")
        return PRECISIONS[asked]
    if asked != "auto":
        raise InputError(f"no precision {asked!r}; known: auto, {', '.join(PRECISIONS)}")
    if device.type == "cuda":
        return torch.float32
    can = torch.cpu.get_capabilities()  # emulated bfloat16 takes ten times as long as float32
    computes = can.get("avx512_bf16") or can.get("amx_bf16") or can.get("bf16")
    return torch.bfloat16 if computes else torch.float32


def _has_bfloat16() -> bool:
    return torch.cuda.is_available() and torch.cuda.is_bf16_supported(including_emulation=False)


def _prepared(
    recipe: Recipe, dataset: Dataset, device: torch.device, precision: torch.dtype, bar: Bar
) -> Run:
    task = bar.add_task("reading patches", total=len(dataset))

    def read(side: int) -> Patches:
        bar.reset(task)
        return stored(dataset, side, lambda done: bar.advance(task, done))

    run = prepare(
        recipe,
        dataset,
        read,
        device=device,
        precision=precision,
    )
    bar.remove_task(task)
    return run


def _trained(
    run: Run,
    out: Path,
    bar: Bar,
    *,
    resume: bool,
    tensorboard: bool,
    keep_weights: Callable[[Seen], None],
    stop: Callable[[], bool] | None,
) -> Seen | None:
    """Run all steps and show progress; None if the training was stopped before the end."""
    steps = run.recipe.steps
    task = bar.add_task(visible(run.recipe.name), total=steps)
    write: Callable[[Seen], None] | None = None
    fpr95: float | None = None
    seen: Seen | None = None
    with after_this_step() if stop is None else nullcontext(stop) as asked:
        for seen in run_steps(run, out, resume=resume, keep_weights=keep_weights, stop=asked):
            if number() != 0 or (seen.loss is None and _is_told(out, seen.step)):
                continue
            if write is None:
                write = open_log(out, upto=seen.step - 1, tensorboard=tensorboard)
                bar.reset(task, completed=seen.step)  # steps before an interruption took no time
            write(seen)
            fpr95 = seen.fpr95 if seen.fpr95 is not None else fpr95
            speed = (bar.tasks[-1].speed or 0.0) * seen.patches
            said = _line(run.recipe.name, seen, fpr95, speed)
            bar.update(task, completed=seen.step, description=said)
    return seen if seen is not None and seen.step == steps else None


def _is_told(out: Path, step: int) -> bool:
    """Whether the last log entry is of this step and has a loss: the training ended earlier."""
    return any(last.step == step and last.loss is not None for last in read_log(out)[-1:])


def _line(name: str, seen: Seen, fpr95: float | None, speed: float) -> str:
    loss = "" if seen.loss is None else f"  loss {seen.loss:.4f}"
    patches = f"  {speed:,.0f} patches/s" if speed else ""
    held_out = "" if fpr95 is None else f"  held-out FPR95 {100 * fpr95:.3f} %"
    return f"{visible(name)}  step {seen.step}{loss}{held_out}{patches}"


def _bar(*, shown: bool) -> Bar:
    return Bar(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f}"),
        TimeRemainingColumn(),
        silent=number() != 0 or not shown,
    )


def _placed(
    out: Path, name: str, run: Run, parts: Sequence[Dataset], last: Seen, log: Sequence[Seen]
) -> tuple[Path, Card]:
    """Write the weights after a step and their card; returns the file and the card.

    Args:
        out: folder of the two files.
        name: name of the descriptor.
        run: the training.
        parts: the data sets of the training.
        last: progress after that step.
        log: progress of all steps up to that step.
    """
    out.mkdir(parents=True, exist_ok=True)
    contents = trained.pack(run.result)
    card = _card(name, run, parts, last, hashlib.sha256(contents).hexdigest(), log)
    weights = out / WEIGHTS
    with atomic.writing(weights) as stream:
        stream.write(contents)
    cards.write(out / CARD, card)
    return weights, card


def _curve(recipe: Recipe, log: Sequence[Seen]) -> tuple[Moment, ...]:
    """Mean loss, and held-out error if there is one, of each part of a training."""
    moments, losses = [], []
    for seen in log:
        losses += [seen.loss] if seen.loss is not None else []
        if is_moment(recipe, seen.step):
            loss = sum(losses) / len(losses) if losses else None
            moments.append(Moment(step=seen.step, loss=loss, fpr95=seen.fpr95))
            losses = []
    return tuple(moments)


def hours(log: Sequence[Seen]) -> float:
    """Hours of training: steps times the median time of a step, so that pauses do not count."""
    steps = [after.seconds - before.seconds for before, after in pairwise(log)]
    return round(log[-1].step * median(steps) / 3600, 3) if steps else 0.0


def _card(
    name: str, run: Run, parts: Sequence[Dataset], last: Seen, sha256: str, log: Sequence[Seen]
) -> Card:
    recipe, network, teacher = run.recipe, run.network, run.method.teacher
    from_teacher = teacher.trained_on if teacher and teacher.trained_on else frozenset()
    own = () if network.inherited else training_sets.cut_from(run.dataset)
    shown = all_of([own or None, teacher.learned_from if teacher else ()]) or ()
    on_card = run.device.type == "cuda"
    machine = (
        torch.cuda.get_device_name(run.device)
        if on_card
        else f"{torch.cpu.get_capabilities()['cpu_name']}, {torch.get_num_threads()} threads"
    )
    return Card(
        name=name,
        weights=sha256,
        network=recipe.network,
        distance=network.distance.name,
        dim=network.dim,
        side=network.side,
        trained_on=tuple(sorted(run.dataset.sources | network.inherited | from_teacher)),
        licence=_licence(recipe, own, teacher),
        recipe=json.loads(
            recipe.model_dump_json(exclude_none=True, exclude=NOT_ON_CARD | recipes.unused(recipe))
        ),
        data=tuple(TrainingData(name=part.name, sha256=part.sha256) for part in parts),
        seed=recipe.seed,
        steps=last.step,
        hours=hours(log),
        machine=f"{machine}, {str(run.precision).removeprefix('torch.')}",
        torch=torch.__version__,
        curve=_curve(recipe, log),
        scores={},
        limits=_limits(run, last),
        photographs=tuple(CardPhotograph(**asdict(one)) for one in shown),
    )


def _licence(recipe: Recipe, own: Sequence[Photograph], teacher: Descriptor | None) -> str:
    """The recipe's licence, or that of its own photographs; of a student the teacher's, too.

    A teacher's vectors come from its training images. So if both follow from photographs, the
    licence is that of all these photographs; else it has both texts, unless they are equal.
    """
    follows = bool(own) and recipe.licence == recipes.UNKNOWN
    said = licences(own) if follows else recipe.licence
    if teacher is None or teacher.licence.casefold() == said.casefold():
        return said
    if follows and teacher.licence == licences(teacher.photographs):
        return licences([*own, *teacher.photographs])
    return f"{said}; of teacher {teacher.name}: {teacher.licence}"


def _limits(run: Run, last: Seen) -> str:
    said = f"Trained for {last.step} steps on {len(run.split.train)} patches of the data named."
    if (teacher := run.method.teacher) is not None:
        weights = f", weights {teacher.weights}" if teacher.weights else ""
        said = f"{said} Its teacher was {teacher.name}{weights}."
    if len(run.split.a):
        return said
    return f"{said} No points were held out: the curve has losses only."
