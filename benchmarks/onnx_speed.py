"""Measure the speed of a network by torch and by ONNX Runtime, in float32, float16 and int8.

    python -m benchmarks.onnx_speed [--model adasample] [--rounds 5] [--threads 2] [--rows]

Patches are those of hpatches-sample. Ways and batch sizes take turns, round after round, and the
fastest batch of each counts, so that other work on the machine matters little. With --rows it also
finds out, for batches of 1 .. 513 patches, whether any bit of a vector depends on its batch.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnxruntime
import torch

from benchmarks.comparison import Comparison
from harness import plugins, registry
from harness.escape import markdown
from harness.onnx import check as onnx_check
from harness.onnx import export as onnx_export
from harness.onnx.samples import some_patches
from harness.records import markdown_table
from harness.types import Descriptor, Patches

PRECISIONS = ("fp32", "fp16", "int8")
BATCHES = (1, 64, 512)

Run = Callable[[Patches], np.ndarray]


def by_torch(model: Descriptor) -> Run:
    """A function that runs a network by torch."""
    assert model.network is not None
    network = model.network().eval()

    def run(patches: Patches) -> np.ndarray:
        with torch.inference_mode():
            return network(torch.tensor(patches)).numpy()

    return run


def by_onnx(file: Path, threads: int) -> Run:
    """A function that runs an ONNX file on the CPU."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    return lambda patches: session.run(None, {"patches": patches})[0]


def seconds(run: Run, patches: Patches, batch: int) -> float:
    """Seconds of one patch, in the fastest of the batches."""
    best = float("inf")
    for i in range(0, len(patches), batch):
        begun = time.perf_counter()
        run(patches[i : i + batch])
        best = min(best, (time.perf_counter() - begun) / batch)
    return best


def rows_that_depend_on_their_batch(run: Run, patches: Patches) -> int:
    """Number of rows that differ in any bit between batches of 1 .. 513 patches."""
    together = run(patches)
    sizes = [*range(1, 130), *range(137, len(patches) + 1, 8)]
    return sum(int((run(patches[:n]) != together[:n]).any(axis=1).sum()) for n in sizes)


def comparisons(quick: bool) -> Iterator[Comparison]:
    """Yields the rows of `python -m benchmarks`: adasample in each precision, beside torch."""
    n, rounds = (16, 1) if quick else (512, 3)
    threads = torch.get_num_threads()
    model = plugins.model("adasample", device="cpu")
    assert isinstance(model, Descriptor)
    dataset = registry.load("protocols", "hpatches/matching")().dataset
    patches = some_patches(dataset, n)[:n]
    by_eager = by_torch(model)
    wanted = by_eager(patches)
    slow = n * min(seconds(by_eager, patches, n) for _ in range(rounds))
    with tempfile.TemporaryDirectory() as folder:
        for precision in PRECISIONS:
            file = Path(folder, f"{precision}.onnx")
            calibration = some_patches(dataset, 32 if quick else 256)
            onnx_export.export(model, file, precision=precision, calibration=calibration)
            run = by_onnx(file, threads)
            fast = n * min(seconds(run, patches, n) for _ in range(rounds))
            apart = onnx_check.apart_by(run(patches), wanted, model.distance).mean()
            task = f"describing {n} patches, adasample {precision}, {threads} threads"
            yield Comparison(task, fast, "torch, eager", slow, f"{apart:.0e} apart, mean")


def main() -> None:
    """Export, time, print speeds and differences."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="adasample")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--rows", action="store_true", help="compare batches of 1 .. 513")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    model = plugins.model(given.model, device="cpu")
    assert isinstance(model, Descriptor) and model.network, f"{given.model} has no network"
    dataset = registry.load("protocols", "hpatches/matching")().dataset
    patches = some_patches(dataset, 1024)[:513]
    with tempfile.TemporaryDirectory() as folder:
        runs = {"torch": by_torch(model)}
        sizes = {"torch": 0}
        for precision in PRECISIONS:
            file = Path(folder, f"{precision}.onnx")
            done = onnx_export.export(
                model, file, precision=precision, calibration=some_patches(dataset, 256)
            )
            runs[precision], sizes[precision] = by_onnx(file, given.threads), done.size
        best = dict.fromkeys([(way, batch) for way in runs for batch in BATCHES], np.inf)
        for _ in range(given.rounds):
            for way, batch in best:
                some = patches[:64] if batch == 1 else patches[:512]
                best[way, batch] = min(best[way, batch], seconds(runs[way], some, batch))
        wanted = runs["torch"](patches)
        print(f"{markdown(given.model)}, {given.threads} threads: patches a second by batch size\n")
        rows = []
        for way, run in runs.items():
            apart = onnx_check.apart_by(run(patches), wanted, model.distance)
            speeds = (f"{1 / best[way, batch]:,.0f}" for batch in BATCHES)
            size = f"{sizes[way] / 2**20:.2f}" if sizes[way] else ""
            rows.append([way, *speeds, size, f"{apart.mean():.1e}", f"{apart.max():.1e}"])
        columns = ["", *map(str, BATCHES), "MiB", "apart from torch, mean", "most"]
        print("\n".join(markdown_table.lines(columns, rows)))
        if given.rows:
            for precision in PRECISIONS:
                found = rows_that_depend_on_their_batch(runs[precision], patches)
                print(f"{precision}: {found} rows differ in any bit between batches of 1 .. 513")


if __name__ == "__main__":
    main()
