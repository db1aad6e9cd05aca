"""What `harness export` does: a model becomes an ONNX file, and what that changes is printed."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch

from harness import cache as caches
from harness import plugins, progress, registry
from harness.commands import session
from harness.errors import InputError, InputTypeError
from harness.escape import say
from harness.evaluate import evaluate
from harness.onnx import check as onnx_check
from harness.onnx import export as onnx_export
from harness.onnx import file as onnx_file
from harness.settings import Options
from harness.types import Dataset, Descriptor, Patches, Protocol

CALIBRATING = 256  # patches that int8 takes its scales from
COMPARED = 1024  # patches of the protocol whose vectors are compared
TIMED = 256
FROM = 16  # blocks of a data set that such patches are taken from


def export(
    spec: str,
    out: Path,
    precision: str,
    protocol: str | None,
    given: Options,
    calibration: Path | None,
) -> None:
    """Write a model as an ONNX file; print its size, speed, and distance from torch.

    Below float32, and where a protocol or its data are named, the protocol is scored with both.

    Args:
        spec: a model.
        out: the file.
        precision: "fp32", "fp16" or "int8".
        protocol: name of what to score; hpatches where None.
        given: options of the protocol.
        calibration: data of the protocol that int8 takes its scales from; its sample where None.
    """
    names = session.model_names(spec)
    if len(names) != 1:
        raise InputError(f"one model is exported at a time, not {', '.join(names)}")
    model = plugins.model(names[0], device="cpu")
    if not isinstance(model, Descriptor):
        raise InputTypeError(f"{model.name} is a folder of vectors: it has no network to export")
    scored = protocol or given or precision != "fp32"
    asked = session.protocol_names(protocol or "hpatches")
    for_scales = None
    if precision == "int8":
        maker = registry.load("protocols", asked[0])
        of_scales: Protocol = maker(data=calibration) if calibration else maker()
        for_scales = some_patches(of_scales.dataset, CALIBRATING)
    done = onnx_export.export(model, out, precision=precision, calibration=for_scales)
    say(f"{out}  {done.size / 2**20:.2f} MiB  {precision}")
    say(f"apart from torch by at most {done.apart.distance:.2g} ({done.apart.where})")
    file = onnx_file.open_model(out, device="cpu")
    _print_speeds(model, file)
    if scored:
        protocols = session.make_protocols(asked, given)
        _print_values(model, file, protocols[0].dataset)
        _print_scores(model, file, protocols)


def some_patches(dataset: Dataset, n: int) -> Patches:
    """About n patches, from blocks all over a data set."""
    blocks = dataset.blocks[:: -(-len(dataset.blocks) // FROM)]
    each = -(-n // len(blocks))
    rows = [np.linspace(0, block.size - 1, min(each, block.size)).astype(int) for block in blocks]
    return np.concatenate([block.read()[some] for block, some in zip(blocks, rows, strict=True)])


def _print_speeds(model: Descriptor, file: Descriptor) -> None:
    patches = np.random.default_rng(0).integers(0, 256, (TIMED, 65, 65), dtype=np.uint8)
    assert model.network is not None
    network = model.network().eval()

    def by_torch(some: Patches) -> None:
        with torch.inference_mode():
            network(torch.from_numpy(some))

    speeds = [_per_second(describe, patches) for describe in (by_torch, file.describe)]
    say(f"{speeds[0]:,.0f} patches a second by torch, {speeds[1]:,.0f} by {file.provider}")


def _per_second(describe: Callable[[Patches], object], patches: Patches) -> float:
    """Patches a second in the best of three rounds after one that warms up."""
    seconds = []
    for _ in range(4):
        begun = time.perf_counter()
        describe(patches)
        seconds.append(time.perf_counter() - begun)
    return len(patches) / min(seconds[1:])


def _print_values(model: Descriptor, file: Descriptor, dataset: Dataset) -> None:
    patches = some_patches(dataset, COMPARED)
    apart = onnx_check.apart_by(file.describe(patches), model.describe(patches), model.distance)
    say(
        f"on {len(patches)} patches of {dataset.name}: apart by {apart.mean():.2g} in the mean,"
        f" {apart.max():.2g} at most"
    )


def _print_scores(model: Descriptor, file: Descriptor, protocols: Sequence[Protocol]) -> None:
    cache = caches.kept("vectors")
    found = []
    for one in (model, file):
        with progress.shown(one.name, len(protocols[0].dataset)) as advance:
            found.append(list(evaluate(one, protocols, cache=cache, progress=advance)))
    for before, after in zip(*found, strict=True):
        headline = before.protocol.headline  # left out where it was trained on what is tested
        for name in [headline] if headline in before.scores else before.scores:
            a, b = before.scores[name], after.scores[name]
            say(f"{before.protocol.name}  {name}  {a:.5f} -> {b:.5f}  ({b - a:+.5f})")
