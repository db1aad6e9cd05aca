"""Parts of `benchmarks.gpu` that train: steps, bfloat16, resuming, learning, speed, two GPUs."""

import json
import math
import shutil
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch.multiprocessing.spawn import spawn

from benchmarks.gpu_found import Found, Setting, close
from benchmarks.training import ours
from harness import Block, Dataset
from harness.errors import text_of
from harness.types import Patches
from zoo import shipped as shipped_models
from zoo.exact import exact
from zoo.training import loop, recipe
from zoo.training.loop import Run

CPU = torch.device("cpu")
POINTS, EACH = 480, 3
SMALL = {"pairs": 64, "in_order": 32, "at_random": 32, "patches": 192}  # of a batch
LEAST = {"pairs": 8, "in_order": 4, "at_random": 4, "patches": 24}
TARGET = 250_000  # patches a second of L2-Net
PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def textures(points: int, each: int, side: int) -> tuple[Dataset, Patches]:
    """Points that can be told apart: each shows one texture, in another light and with noise.

    Four points are of one image, so that images are sequences for DOAP.
    """
    rng = np.random.default_rng([points, side])
    coarse = rng.normal(0, 1, (points, 1, 8, 8)).repeat(-(-side // 8), 2).repeat(-(-side // 8), 3)
    light = rng.uniform(20, 50, (points, each, 1, 1))
    noise = rng.normal(0, 60, (points, each, side, side))
    shown = 128 + light * coarse[:, :, :side, :side] + noise
    patches = np.clip(shown, 0, 255).astype(np.uint8).reshape(-1, side, side)
    point = np.repeat(np.arange(points), each)
    block = Block("textures", len(point), "textures", lambda: patches)
    return Dataset("textures", "", (block,), point, point // (4 * each)), patches


def run_of(
    name: str, setting: Setting, device: torch.device, more: Sequence[str] = (), **changes: object
) -> Run:
    """A training of a recipe on textures, with a small batch and without dropout.

    Random numbers of dropout are drawn on the device; all others are those of the CPU.
    """
    precision = changes.pop("precision", torch.float32)
    points = changes.pop("points", POINTS)
    assert isinstance(precision, torch.dtype) and isinstance(points, int)
    read = recipe.read(name)
    sizes = LEAST if setting.quick else SMALL
    set_to = [f"method.{key}={value}" for key, value in sizes.items() if key in read.method.options]
    if "dropout" in read.network.options:
        set_to.append("network.dropout=0.0")
    if name == "l2net-cs":
        set_to.append(f"network.start={_start(setting.folder)}")
    made = recipe.read(name, ["held_out=0", *set_to, *more], ["textures"])
    return loop.prepare(
        made,
        textures(points, EACH, 32)[0],
        lambda side: textures(points, EACH, side)[1],
        device=device,
        precision=precision,
    )


def _start(folder: Path) -> Path:
    """Weights of a shipped L2-Net, with their card, as a training leaves them."""
    for source, name in (("safetensors", "weights.safetensors"), ("json", "card.json")):
        shutil.copyfile(shipped_models.FOLDER / f"l2net+.{source}", folder / name)
    return folder / "weights.safetensors"


def losses_of(run: Run, count: int, *, waiting: bool = True) -> list[float]:
    """The losses of the first steps.

    Args:
        run: the training.
        count: of steps.
        waiting: whether a step after the first may wait for a GPU.

    Raises:
        RuntimeError: if a step waits, and may not; names the operation.
    """
    run.network.train()
    optimiser, losses = loop.optimiser_of(run), []
    for step, selected, patches in islice(loop.fed(run, 0), count):
        watched = step and not waiting and run.device.type == "cuda"
        if watched:
            torch.cuda.set_sync_debug_mode("error")
        try:
            losses.append(loop.update(run, optimiser, step, selected, patches)[0])
        finally:
            if watched:
                torch.cuda.set_sync_debug_mode("default")
    return [float(loss) for loss in losses]


def steps(setting: Setting) -> Iterator[Found]:
    """The first losses of each recipe in float32, beside the CPU's; no step waits for the GPU."""
    for name in _recipes(setting):
        wanted = losses_of(run_of(name, setting, CPU), 2)
        found = losses_of(run_of(name, setting, setting.device), 2)
        yield close(f"{name}, loss of the first step", found[0], wanted[0], 1e-4)
        yield close(f"{name}, loss of the second step", found[1], wanted[1], 1e-2)
        try:
            losses_of(run_of(name, setting, setting.device), 2, waiting=False)
            yield Found(f"{name}, waits in a step", "none", "none", True)
        except RuntimeError as error:
            yield Found(f"{name}, waits in a step", text_of(error)[:200], "none", False)


def bfloat16(setting: Setting) -> Iterator[Found]:
    """The first loss of each recipe with convolutions in bfloat16, beside float32's."""
    if setting.device.type == "cuda":
        native = torch.cuda.is_bf16_supported(including_emulation=False)
        yield Found("bfloat16 in hardware", str(native), "True", native)
    for name in _recipes(setting):
        plain = losses_of(run_of(name, setting, setting.device), 1)[0]
        run = run_of(name, setting, setting.device, precision=torch.bfloat16)
        yield close(f"{name}, loss of the first step", losses_of(run, 1)[0], plain, 0.1)


def _recipes(setting: Setting) -> list[str]:
    return ["hardnet", "l2net-cs"] if setting.quick else recipe.names()


def _precisions(setting: Setting) -> dict[str, torch.dtype]:
    """Both; for a test float32 alone, as many processors compute bfloat16 very slowly."""
    return {"float32": torch.float32} if setting.quick else PRECISIONS


def resume(setting: Setting) -> Iterator[Found]:
    """A training that is stopped and resumed, beside one that is not."""
    # SOSNet trains with Adam, whose steps are counted on the device where it is fused.
    for name in ("hardnet", "sosnet")[: 1 if setting.quick else 2]:
        more = ["steps_per_epoch=3", "epochs=2"]
        whole, broken, resumed = (run_of(name, setting, setting.device, more) for _ in range(3))
        wanted = [seen.loss for seen in loop.train(whole, _made(setting, f"{name} whole"))][-1]
        out = _made(setting, f"{name} broken")
        stopped = [seen.step for seen in loop.train(broken, out, stop=lambda: True)][-1]
        last = list(loop.train(resumed, out, resume=True))[-1]
        assert last.loss is not None and wanted is not None
        yield Found(f"{name}, stopped after step", str(stopped), "before 6", stopped < 6)
        yield close(f"{name}, loss of step {last.step} after a resume", last.loss, wanted, 1e-3)


def _made(setting: Setting, name: str) -> Path:
    folder = setting.folder / name
    folder.mkdir()
    return folder


def learning(setting: Setting) -> Iterator[Found]:
    """The held-out FPR95 before and after 200 steps, in both precisions."""
    count, pairs, points = (2, 8, POINTS) if setting.quick else (200, 256, 4000)
    more = [
        f"steps_per_epoch={count}", "epochs=1", f"method.pairs={pairs}", "held_out=0.25",
        "optimiser.lr=1.0",
    ]  # fmt: skip
    for name, precision in _precisions(setting).items():
        run = run_of("hardnet", setting, setting.device, more, precision=precision, points=points)
        told = list(loop.train(run, _made(setting, name)))
        before, after = told[0].fpr95, told[-1].fpr95
        assert before is not None and after is not None
        good = None if setting.quick else after < before / 2
        said = f"{100 * before:.3f} %, then {100 * after:.3f} %"
        yield Found(f"held-out FPR95, {count} steps in {name}", said, "half of it, or less", good)


def speed(setting: Setting) -> Iterator[Found]:
    """Patches trained a second, in batches of 1,024."""
    patches, count = (192, 1) if setting.quick else (1024, 50)
    for name in ("hardnet", "l2net+", "adasample")[: 1 if setting.quick else 3]:
        for kind, precision in _precisions(setting).items():
            found = ours(name, patches, count, setting.device, precision)
            wanted = kind == "bfloat16" and name == "hardnet" and setting.device.type == "cuda"
            yield Found(
                f"{name}, {kind}",
                f"{found:,.0f} patches/s",
                f"{TARGET:,}" if wanted else "",
                found >= TARGET if wanted else None,
            )


def two(setting: Setting) -> Iterator[Found]:
    """Losses of two devices that share a batch, beside those of one."""
    on_gpu = setting.device.type == "cuda"
    if on_gpu and torch.cuda.device_count() < 2:
        yield Found("GPUs", "1: nothing to share")
        return
    wanted = losses_of(run_of("hardnet", setting, setting.device), 3)
    spawn(_one_of_two, (setting,), nprocs=2)
    for rank in range(2):
        found = json.loads((setting.folder / f"{rank}.json").read_text("utf-8"))
        good = all(
            math.isclose(a, b, rel_tol=rel)
            for a, b, rel in zip(found, wanted, (1e-4, 1e-2, 1e-1), strict=True)
        )
        said = ", ".join(f"{loss:.5f}" for loss in found)
        yield Found(f"losses of process {rank}", said, f"about {wanted}", good)


def _one_of_two(rank: int, setting: Setting) -> None:
    on_gpu = setting.device.type == "cuda"
    device = torch.device("cuda", rank) if on_gpu else CPU
    if on_gpu:
        torch.cuda.set_device(device)
    meeting = (setting.folder / "meeting").resolve().as_uri()
    kind = "nccl" if on_gpu else "gloo"
    dist.init_process_group(kind, init_method=meeting, rank=rank, world_size=2)
    with exact():
        losses = losses_of(run_of("hardnet", setting, device), 3)
    (setting.folder / f"{rank}.json").write_text(json.dumps(losses), "utf-8")
    dist.destroy_process_group()
