"""Patches trained a second: a plain step of HardNet beside the loop's own, and every recipe.

    python -m benchmarks.training [--patches 1024] [--steps 3] [RECIPE ...]

All in one run, on random patches. "plain" is what the released scripts do: float32, channels
first, nothing in place, memory as the C library gives it, so it has a process of its own. A
recipe's batch keeps its shape but for the number of patches.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import torch
from torch import nn

from benchmarks.comparison import Comparison
from harness import Block, Dataset
from zoo.backbones import L2Net
from zoo.hardnet import triplet
from zoo.training import loop
from zoo.training.command import precision_of
from zoo.training.memory import keep_freed
from zoo.training.recipe import checked, read

EACH = 15  # patches of a point
FEWEST = 400  # points, of which some are held out


def data(points: int) -> Dataset:
    """Points with 15 patches each, 20 points of an image; the pixels come from elsewhere."""
    n = points * EACH
    point = np.arange(n) // EACH
    block = Block("random", n, "random", lambda: np.empty((n, 1, 1), np.uint8))
    return Dataset("random", "", (block,), point, point // 20)


def plain(patches: int, steps: int, device: torch.device) -> float:
    """Patches a second of the step as the released scripts have it."""
    network = L2Net(dropout=0.1)
    for module in network.modules():
        if isinstance(module, nn.ReLU):
            module.inplace = False
    network.to(device).train()
    optimiser = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    x = torch.randint(256, (patches, 1, 32, 32), device=device).float()
    point = torch.arange(patches // 2, device=device)

    def step() -> None:
        optimiser.zero_grad(set_to_none=True)
        anchor, positive = network(x).chunk(2)
        triplet(anchor, positive, point, margin=1.0).mean().backward()
        optimiser.step()

    return timed(step, patches, steps, device)


def ours(
    name: str, patches: int, steps: int, device: torch.device, precision: torch.dtype
) -> float:
    """Patches a second of a recipe's step: those with a gradient."""
    recipe = read(name)
    method = recipe.method.options
    if "pairs" in method:
        method["pairs"] = patches // 2
    elif "in_order" in method:
        method |= {"in_order": patches // 4, "at_random": patches // 4}
    elif "patches" in method:
        method["patches"] = patches
    table = recipe.model_dump(mode="json", exclude_none=True)
    table |= {"method": {"name": recipe.method.name} | method, "held_out": 0.2}
    dataset = data(max(2 * patches, FEWEST))
    run = loop.prepare(
        checked(table, name),
        dataset,
        lambda side: np.random.default_rng(0).integers(
            0, 256, (len(dataset), side, side), dtype=np.uint8
        ),
        device=device,
        precision=precision,
    )
    run.network.train()
    optimiser = loop.optimiser_of(run)
    fed = loop.fed(run, 0)
    return timed(lambda: loop.update(run, optimiser, *next(fed)), patches, steps, device)


def timed(step: Callable[[], object], patches: int, steps: int, device: torch.device) -> float:
    """Patches a second of a step, after one that is not timed."""
    step()
    if device.type == "cuda":
        torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(steps):
        step()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return steps * patches / (time.perf_counter() - began)


def comparisons(quick: bool) -> Iterator[Comparison]:
    """Yields the rows of `python -m benchmarks`: seconds of 1,000 patches of HardNet."""
    patches, steps = (32, 1) if quick else (1024, 3)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    with ProcessPoolExecutor(1, get_context("spawn")) as alone:
        before = alone.submit(plain, patches, steps, device).result()
    keep_freed()
    precision = precision_of("auto", device)
    speed = ours("hardnet", patches, steps, device, precision)
    task = f"training HardNet on 1,000 patches, {device.type}"
    results = f"{str(precision).removeprefix('torch.')} against float32"
    yield Comparison(task, 1000 / speed, "step of the released scripts", 1000 / before, results)


def main() -> None:
    """Time the plain step and each recipe's, print patches a second."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recipes", nargs="*", default=["hardnet"])
    parser.add_argument("--patches", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    given = parser.parse_args()
    device = torch.device(given.device)
    with ProcessPoolExecutor(1, get_context("spawn")) as alone:
        before = alone.submit(plain, given.patches, given.steps, device).result()
    keep_freed()
    print(f"{'plain step':20} {before:8.0f} patches/s")
    for name in given.recipes:
        speed = ours(name, given.patches, given.steps, device, precision_of("auto", device))
        print(f"{name:20} {speed:8.0f} patches/s   {speed / before:.2f} of plain", flush=True)


if __name__ == "__main__":
    main()
