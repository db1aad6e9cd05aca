"""Measure how many patches a second each model describes, on one core and on more.

    python -m benchmarks.descriptor_speed [--model sift,brief] [--cores 1,2] [--out FILE.csv]

All models whose weights are here, in one run, on 65x65 patches of hpatches-sample. For each number
of cores, a process that may use only these cores describes one batch by every model, round after
round; the fastest batch of each model counts, so that other work on the machine matters little. A
model that is slow gets fewer patches in a batch. Making a model is not measured.
"""

import argparse
import csv
import io
import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from benchmarks.machine import processor
from harness import catalogue, progress
from harness.escape import markdown
from harness.files import atomic
from harness.records import markdown_table

BATCH = 512  # patches
LONGEST = 0.5  # seconds that a batch may take; a slower model gets fewer patches, but LEAST
LEAST = 32
COLUMNS = ("model", "dim", "distance", "bytes", "cores", "patches_per_second", "machine")

Speeds = Mapping[str, float]


def measured(names: Sequence[str], rounds: int) -> dict[str, float]:
    """Patches a second of each model in this process."""
    from harness import Descriptor, plugins
    from harness.loading import load_protocol
    from harness.onnx.samples import some_patches

    patches = some_patches(load_protocol("hpatches/matching").dataset, 2 * BATCH)[:BATCH]
    opened = {name: plugins.model(name) for name in names}
    models = {name: model for name, model in opened.items() if isinstance(model, Descriptor)}
    size = dict.fromkeys(models, BATCH)
    best = dict.fromkeys(models, 0.0)
    for name, model in models.items():  # the first call also loads libraries and graphs
        model.describe(patches[:LEAST])
        begun = time.perf_counter()
        model.describe(patches[:LEAST])
        pace = LEAST / (time.perf_counter() - begun)
        size[name] = int(min(BATCH, max(LEAST, LONGEST * pace)))
    for _ in range(rounds):
        for name, model in models.items():
            begun = time.perf_counter()
            model.describe(patches[: size[name]])
            best[name] = max(best[name], size[name] / (time.perf_counter() - begun))
    return best


def on_cores(cores: int, names: Sequence[str], rounds: int) -> dict[str, float]:
    """Patches a second of each model in a new process that may use only some cores."""
    with ProcessPoolExecutor(1, get_context("spawn"), _only, (cores,)) as pool:
        return pool.submit(measured, names, rounds).result()


def _only(cores: int) -> None:
    """Restrict this process to some cores, before a library counts them."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    os.environ["OMP_NUM_THREADS"] = str(cores)


def main() -> None:
    """Measure, print a table, write the CSV file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="models, with commas; all whose weights are here")
    parser.add_argument("--cores", default="1,2", help="numbers of cores, with commas")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    rows = {row.name: row for row in catalogue.models() if row.here and row.row}
    names = given.model.split(",") if given.model else list(rows)
    counts = [int(count) for count in given.cores.split(",")]
    speeds: dict[int, Speeds] = {}
    for count in counts:
        with progress.shown(f"measuring {len(names)} models on {count} cores"):
            speeds[count] = on_cores(count, names, given.rounds)
    lines = []
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS)
    for name in sorted(names, key=lambda name: -speeds[counts[0]][name]):
        facts = rows[name].row
        assert facts is not None
        lines.append(
            [markdown(name), str(facts.bytes), *(f"{speeds[c][name]:,.0f}" for c in counts)]
        )
        for count in counts:
            speed = f"{speeds[count][name]:.0f}"
            table.writerow(
                [name, facts.dim, facts.distance, facts.bytes, count, speed, processor()]
            )
    print("\n".join(markdown_table.lines(["", "bytes", *(f"cores: {c}" for c in counts)], lines)))
    if given.out:
        atomic.write_text(given.out, text.getvalue())


if __name__ == "__main__":
    main()
