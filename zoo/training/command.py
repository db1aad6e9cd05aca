"""What `harness train` does: a recipe and data become a folder of weights, card and ONNX file."""

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from statistics import median

import torch
import torch.distributed as dist
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn

from harness import Dataset, atomic, locks, onnx_export, training_sets
from harness.progress import Bar
from harness.stopping import after_this_step
from harness.types import Patches
from zoo import card as cards
from zoo import trained
from zoo.card import Card, Moment, Source
from zoo.training import recipe as recipes
from zoo.training import state
from zoo.training.log import open_log, read_log
from zoo.training.loop import Run, Seen, prepare
from zoo.training.loop import train as run_steps
from zoo.training.memory import keep_freed
from zoo.training.patches import stored
from zoo.training.recipe import Recipe
from zoo.training.together import number

PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16}
RECIPE, WEIGHTS, LOCK = "recipe.json", "weights.safetensors", ".lock"


def train(
    spec: str,
    out: Path | None,
    *,
    data: Sequence[str] = (),
    settings: Sequence[str] = (),
    device: str = "auto",
    precision: str = "auto",
    resume: bool = False,
    tensorboard: bool = False,
) -> Path:
    """Train a recipe; the folder of what came out.

    Args:
        spec: name of a recipe, or a TOML file.
        out: folder; "trained/NAME" where None.
        data: folders or names of data sets, in place of the recipe's.
        settings: KEY=VALUE over the recipe's.
        device: "auto", "cpu" or "cuda".
        precision: of convolutions: "float32", "bfloat16", or "auto": bfloat16 where the processor
            computes in it.
        resume: go on from what is in the folder.
        tensorboard: write its files as well.
    """
    recipe = recipes.read(spec, settings, data)
    if tensorboard and find_spec("tensorboard") is None:
        raise ImportError(
            "TensorBoard is not installed: pip install tensorboard, or leave out --tensorboard"
        )
    out = out or Path("trained", recipe.name)
    keep_freed()
    with _processes(device) as place, _claimed(out, resume=resume):
        parts = [training_sets.open_set(one) for one in recipe.data]
        kind = precision_of(precision, place)
        with _bar() as bar:
            run = _prepared(recipe, training_sets.joined(parts), place, kind, bar)
            if number() == 0 and not resume:
                atomic.write_text(out / RECIPE, recipe.model_dump_json(indent=1) + "\n")
            last = _trained(run, out, bar, resume=resume, tensorboard=tensorboard)
        if last is None:
            raise KeyboardInterrupt
        if number() == 0:
            _placed(out, run, parts, last)
    return out


@contextmanager
def _claimed(out: Path, *, resume: bool) -> Iterator[None]:
    """Hold the folder of a training while the block runs; if nothing comes of it, it is not left.

    Raises:
        BlockingIOError: if another process trains in it.
        FileExistsError: if there is a training in it, and it is not resumed.
        FileNotFoundError: if there is none, and it is to be resumed.
        OSError: if it can't be written to.
    """
    if number() != 0:  # the first of several processes holds it for all
        yield
        return
    atomic.must_be_writable(out, f"a training can't be kept in {out}", "choose another --out")
    busy = f"another process trains in {out}: wait for it, or choose another --out"
    with atomic.making(out), locks.alone(out / LOCK, busy=busy):
        if resume:
            state.must_be_in(out)
        elif any((out / one).is_file() for one in (state.FILE, WEIGHTS)):
            raise FileExistsError(
                f"{out} holds a training already: go on with it by --resume, or choose another"
                " --out"
            )
        yield


@contextmanager
def _processes(device: str) -> Iterator[torch.device]:
    """The device of this process, in the group of those that torchrun started."""
    kind = device
    if device == "auto":
        kind = "cuda" if torch.cuda.is_available() else "cpu"
    if kind == "cuda" and not torch.cuda.is_available():
        raise RuntimeError("PyTorch finds no CUDA device here: choose --device cpu")
    if "RANK" not in os.environ:
        yield torch.device(kind)
        return
    own = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if kind == "cuda" else None
    if own:
        torch.cuda.set_device(own)
    dist.init_process_group("nccl" if own else "gloo")
    try:
        yield own or torch.device("cpu")
    finally:
        dist.destroy_process_group()


def precision_of(asked: str, device: torch.device) -> torch.dtype:
    """The type that convolutions compute in; "auto" is bfloat16 where the hardware has it."""
    if asked in PRECISIONS:
        return PRECISIONS[asked]
    if asked != "auto":
        raise ValueError(f"no precision {asked!r}; known: auto, {', '.join(PRECISIONS)}")
    if device.type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float32
    can = torch.cpu.get_capabilities()  # emulated, it takes ten times as long as float32
    computes = can.get("avx512_bf16") or can.get("amx_bf16") or can.get("bf16")
    return torch.bfloat16 if computes else torch.float32


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


def _trained(run: Run, out: Path, bar: Bar, *, resume: bool, tensorboard: bool) -> Seen | None:
    """Run all steps, told of as they are done; None where the user stopped it before the end."""
    steps = run.recipe.steps
    task = bar.add_task(run.recipe.name, total=steps)
    write: Callable[[Seen], None] | None = None
    fpr95: float | None = None
    seen: Seen | None = None
    with after_this_step() as stop:
        for seen in run_steps(run, out, resume=resume, stop=stop):
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
    """Whether the log has a step, and the held-out error after it: all was done before."""
    return any(one.step == step and one.loss is not None for one in read_log(out)[-1:])


def _line(name: str, seen: Seen, fpr95: float | None, speed: float) -> str:
    loss = "" if seen.loss is None else f"  loss {seen.loss:.4f}"
    patches = f"  {speed:,.0f} patches/s" if speed else ""
    held_out = "" if fpr95 is None else f"  held-out FPR95 {100 * fpr95:.3f} %"
    return f"{name}  step {seen.step}{loss}{held_out}{patches}"


def _bar() -> Bar:
    return Bar(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f}"),
        TimeRemainingColumn(),
        silent=number() != 0,
    )


def _placed(out: Path, run: Run, parts: Sequence[Dataset], last: Seen) -> None:
    """Write what was trained: weights, their card, and the ONNX file of both."""
    contents = trained.pack(run.network)
    card = _card(run, parts, last, hashlib.sha256(contents).hexdigest(), read_log(out))
    weights = out / WEIGHTS
    with atomic.writing(weights) as stream:
        stream.write(contents)
    cards.write(out / "card.json", card)
    onnx_export.export(trained.by_torch(weights, card), out / "model.onnx")


def _curve(log: Sequence[Seen]) -> tuple[Moment, ...]:
    moments, losses = [], []
    for seen in log:
        losses += [seen.loss] if seen.loss is not None else []
        if seen.fpr95 is not None:
            loss = sum(losses) / len(losses) if losses else None
            moments.append(Moment(step=seen.step, loss=loss, fpr95=seen.fpr95))
            losses = []
    return tuple(moments)


def hours(log: Sequence[Seen]) -> float:
    """Of as many steps, each as long as the middle one: pauses and what else ran don't count."""
    steps = [after.seconds - before.seconds for before, after in pairwise(log)]
    return round(log[-1].step * median(steps) / 3600, 3) if steps else 0.0


def _card(run: Run, parts: Sequence[Dataset], last: Seen, sha256: str, log: Sequence[Seen]) -> Card:
    recipe, network = run.recipe, run.network
    on_card = run.device.type == "cuda"
    machine = (
        torch.cuda.get_device_name(run.device)
        if on_card
        else f"{torch.cpu.get_capabilities()['cpu_name']}, {torch.get_num_threads()} threads"
    )
    return Card(
        name=recipe.name,
        weights=sha256,
        network=recipe.network,
        distance=network.distance.name,
        dim=network.dim,
        side=network.side,
        trained_on=tuple(sorted(run.dataset.sources | network.inherited)),
        licence=recipe.licence,
        recipe=json.loads(recipe.model_dump_json(exclude_none=True, exclude={"data"})),
        data=tuple(Source(name=part.name, sha256=part.sha256) for part in parts),
        seed=recipe.seed,
        steps=last.step,
        hours=hours(log),
        machine=f"{machine}, {str(run.precision).removeprefix('torch.')}",
        torch=torch.__version__,
        curve=_curve(log),
        scores={},
        limits=f"Trained for {last.step} steps on {len(run.dataset)} patches of the data named.",
    )
