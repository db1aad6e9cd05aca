"""Run every step of the harness on stand-ins of some shares of the full size, and print the cost.

    python -m benchmarks.full_size --work DIR [--shares 1/16,1/8] [--model brief] [--out FILE.csv]

Each step is a process of its own. Measured are its wall time, its CPU time (all threads, user and
system), its largest resident memory, and how much the cache has grown on the disk. "More" is the
cost of twice the work, from the step before: 2 is in proportion, 4 is quadratic. CPU time is the
better measure on a machine that has other work to do. Memory is never below that of the process
that measures, about 130 MiB. Stand-ins are made in the folder `--work`
where they are missing, and stay there: at 1/1, about 9 GB, and the cache takes some more.

Madrid is 1,024 times smaller than its share says, because all its pairs take a day.
"""

import argparse
import csv
import io
import math
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from benchmarks.full_size import hpatches, madrid, phototour
from benchmarks.full_size.child import Cost, run
from benchmarks.full_size.place import used
from benchmarks.machine import machine
from harness.files import atomic
from harness.records import markdown_table

MODELS = 1000  # in the leaderboard
PAIRS_LEFT = 1024  # Madrid's pairs are divided by this
COLUMNS = (
    "step", "share", "work", "unit", "wall_s", "cpu_s", "peak_mib", "disk_mb", "more", "machine",
)  # fmt: skip
MODULE = [sys.executable, "-m"]
HARNESS = [*MODULE, "harness"]


@dataclass(frozen=True)
class Step:
    """One step: a command, and the amount of its work."""

    name: str
    command: Sequence[str]
    work: int
    unit: str


@dataclass(frozen=True)
class Row:
    """The cost of one step at one share."""

    step: Step
    share: str
    cost: Cost
    disk_mb: float


def steps(work: Path, share: float, model: str) -> Iterator[Step]:
    """Yields the steps in order; each may use what the steps before have left in the cache."""
    sets = {name: work / name for name in ("hpatches", "phototour", "madrid")}
    results = work / "results"
    lengths, parts = hpatches.lengths(share)
    patches = 16 * sum(lengths.values())
    training = 16 * sum(lengths[name] for name in parts["train"])
    few = share / PAIRS_LEFT
    for name, of, make, amount, unit in (
        ("hpatches", share, hpatches, patches, "patches"),
        ("phototour", share, phototour, phototour.patches_of(share), "patches"),
        ("madrid", few, madrid, madrid.images_of(few), "images"),
    ):
        if not sets[name].is_dir():
            command = [*MODULE, make.__name__, "--out", str(sets[name]), "--share", repr(of)]
            yield Step(f"making the stand-in of {name}", command, amount, unit)
    step = [*MODULE, "benchmarks.full_size.steps"]

    def evaluate(protocol: str, data: str, *more: str) -> list[str]:
        of = ["--protocol", protocol, "--data", str(sets[data]), "--results", str(results)]
        return [*HARNESS, "eval", "--model", model, *of, *more]

    yield Step("HPatches: check, make task files", [*step, "open_hpatches", str(sets["hpatches"])],
               patches, "patches")  # fmt: skip
    three = evaluate("hpatches", "hpatches", "--split", "full")
    yield Step("HPatches: describe, three tasks", three, patches, "patches")
    yield Step("HPatches: three tasks, vectors at hand", three, patches, "patches")
    yield Step("training: open HPatches", [*step, "open_training", str(sets["hpatches"])],
               training, "patches")  # fmt: skip
    n = phototour.patches_of(share)
    pairs = evaluate("phototour", "phototour")
    yield Step("PhotoTour: describe, pairs", pairs, n, "patches")
    yield Step("PhotoTour: pairs, vectors at hand", pairs, n, "patches")
    snn = evaluate("phototour/snn", "phototour")
    yield Step("PhotoTour: describe all, snn", snn, n, "patches")
    yield Step("PhotoTour: snn, vectors at hand", snn, n, "patches")
    count = math.comb(madrid.images_of(few), 2)
    yield Step("Madrid: match pairs", [*step, "match_pairs", str(sets["madrid"])], count, "pairs")
    models = max(2, round(MODELS * share))
    yield Step("leaderboard: make records", [*step, "make_records", str(results), str(models)],
               models, "models")  # fmt: skip
    yield Step("leaderboard: tables", [*HARNESS, "leaderboard", "--results", str(results)],
               models, "models")  # fmt: skip


def measured(work: Path, share: str, model: str, tell: Callable[[str], object]) -> list[Row]:
    """The cost of every step at one share; cache and results of an earlier run are removed."""
    for left in ("cache", "results"):
        shutil.rmtree(work / left, ignore_errors=True)
    cache = work / "cache"
    rows = []
    for step in steps(work, float(Fraction(share)), model):
        tell(f"{share}: {step.name}, {step.work:,} {step.unit}")
        before = used(cache)
        cost = run(step.command, {"HARNESS_CACHE": str(cache)})
        rows.append(Row(step, share, cost, (used(cache) - before) / 1e6))
    return rows


def growth(before: Row | None, row: Row) -> float | None:
    """How much more CPU time twice the work takes, from two shares; None if there is only one."""
    if before is None or before.step.work >= row.step.work or not before.cost.cpu_s:
        return None
    exponent = math.log(row.cost.cpu_s / before.cost.cpu_s)
    return float(2 ** (exponent / math.log(row.step.work / before.step.work)))


def with_growth(rows: Sequence[Row]) -> list[tuple[Row, float | None]]:
    """Rows sorted by step, then by share, each with its growth from the row before."""
    order = list(dict.fromkeys(row.step.name for row in rows))
    found = []
    for name in order:
        before = None
        for row in sorted((r for r in rows if r.step.name == name), key=lambda r: r.step.work):
            found.append((row, growth(before, row)))
            before = row
    return found


def to_csv(rows: Sequence[Row]) -> str:
    """The rows as CSV."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS)
    for row, more in with_growth(rows):
        cost = (f"{x:.1f}" for x in (row.cost.wall_s, row.cost.cpu_s, row.cost.peak_mib))
        grown = "" if more is None else f"{more:.2f}"
        facts = (row.step.name, row.share, row.step.work, row.step.unit)
        table.writerow([*facts, *cost, f"{row.disk_mb:.1f}", grown, machine()])
    return text.getvalue()


def to_markdown(rows: Sequence[Row]) -> str:
    """The rows as a table."""
    head = ["step", "share", "work", "wall, s", "CPU, s", "peak, MiB", "disk, MB", "more"]
    lines = [
        [
            row.step.name,
            row.share,
            f"{row.step.work:,} {row.step.unit}",
            f"{row.cost.wall_s:.1f}",
            f"{row.cost.cpu_s:.1f}",
            f"{row.cost.peak_mib:.0f}",
            f"{row.disk_mb:.0f}",
            "" if more is None else f"{more:.1f}",
        ]
        for row, more in with_growth(rows)
    ]
    return "\n".join(markdown_table.lines(head, lines, "ll" + 6 * "r"))


def main() -> None:
    """Measure each share, print the table, write the CSV file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--shares", default="1/16,1/8", help="with commas; 1 is the full size")
    parser.add_argument("--model", default="brief")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    rows: list[Row] = []
    for share in given.shares.split(","):
        folder = given.work / share.replace("/", "-of-")
        folder.mkdir(parents=True, exist_ok=True)
        rows += measured(
            folder, share, given.model, lambda text: print(text, file=sys.stderr, flush=True)
        )
        if given.out:  # after each share, since the next one takes twice the time
            atomic.write_text(given.out, to_csv(rows))
    print(to_markdown(rows))
    print(f"\nOn {machine()}.")


if __name__ == "__main__":
    main()
