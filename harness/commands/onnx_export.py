"""`harness export`: write a model as an ONNX file, and compare speeds and scores."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.commands.options import DataFolder, Settings, Split, one_model
from harness.errors import InputError
from harness.escape import say

if TYPE_CHECKING:
    from harness.types import Dataset, Descriptor, Patches, Protocol

COMPARED = 1024  # patches of the protocol whose vectors are compared
TIMED = 256


def export(
    model: Annotated[
        str,
        typer.Option(
            "--model", help="One model with a network: a name, or FILE.py:NAME, as for eval."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="The ONNX file.")],
    precision: Annotated[str, typer.Option(help="fp32, fp16 or int8.")] = "fp32",
    protocol: Annotated[
        str | None,
        typer.Option(help="Protocol to score the file and the model on; int8 needs it."),
    ] = None,
    data: DataFolder = None,
    split: Split = None,
    calibration: Annotated[
        Path | None,
        typer.Option(
            help="Data of the protocol from which int8 gets its scales; default: the sample."
        ),
    ] = None,
    setting: Settings = None,
) -> None:
    """Write a model as one ONNX file and check it: uint8 patches in, vectors out."""
    import harness
    from harness import loading
    from harness.onnx import file as onnx_file
    from harness.settings import options
    from harness.types import Descriptor

    name = one_model("one model is exported at a time, not", [model])
    given = options(settings=setting, data=data, split=split)
    if protocol is None and (given or calibration):
        raise InputError("data are given, but no --protocol to score on them")
    for_scales = None
    if precision == "int8":
        if protocol is None:
            raise InputError(
                "int8 gets its scales from patches: give a --protocol; its sample is used, or the"
                " --calibration data"
            )
        first = loading.protocol_names(protocol)[0]
        (of_scales,) = loading.load_protocols(first, {"data": calibration}, silent=False)
        for_scales = of_scales.dataset
    made = loading.load_model(name, device="cpu")
    done = harness.export_onnx(made, out, precision=precision, calibration=for_scales)
    assert isinstance(made, Descriptor)
    say(f"{out}  {done.size / 2**20:.2f} MiB  {precision}")
    say(f"differs from torch by at most {done.apart.distance:.2g} ({done.apart.where})")
    written = onnx_file.open_model(out, device="cpu")
    _print_speeds(made, written)
    if protocol is not None:
        protocols = loading.load_protocols(protocol, given, silent=False)
        _print_values(made, written, protocols[0].dataset)
        _print_scores(made, written, protocols)


def _print_speeds(model: "Descriptor", file: "Descriptor") -> None:
    import numpy as np
    import torch

    patches = np.random.default_rng(0).integers(0, 256, (TIMED, 65, 65), dtype=np.uint8)
    assert model.network is not None
    network = model.network().eval()

    def by_torch(some: "Patches") -> None:
        with torch.inference_mode():
            network(torch.from_numpy(some))

    speeds = [_per_second(describe, patches) for describe in (by_torch, file.describe)]
    say(f"{speeds[0]:,.0f} patches a second by torch, {speeds[1]:,.0f} by {file.provider}")


def _per_second(describe: Callable[["Patches"], object], patches: "Patches") -> float:
    """Patches per second in the best of three rounds, after one round of warm-up."""
    seconds = []
    for _ in range(4):
        begun = time.perf_counter()
        describe(patches)
        seconds.append(time.perf_counter() - begun)
    return len(patches) / min(seconds[1:])


def _print_values(model: "Descriptor", file: "Descriptor", dataset: "Dataset") -> None:
    from harness.onnx.check import apart_by
    from harness.onnx.samples import some_patches

    patches = some_patches(dataset, COMPARED)
    apart = apart_by(file.describe(patches), model.describe(patches), model.distance)
    say(
        f"on {len(patches)} patches of {dataset.name}: they differ by {apart.mean():.2g} in the"
        f" mean, {apart.max():.2g} at most"
    )


def _print_scores(model: "Descriptor", file: "Descriptor", protocols: Sequence["Protocol"]) -> None:
    import harness

    records = [harness.evaluate(tested, protocols, progress=True) for tested in (model, file)]
    for before, after in zip(*records, strict=True):
        headline = before.protocol.headline  # no score if the model was trained on the test data
        for name in [headline] if headline in before.scores else before.scores:
            a, b = before.scores[name], after.scores[name]
            say(f"{before.protocol.name}  {name}  {a:.5f} -> {b:.5f}  ({b - a:+.5f})")
