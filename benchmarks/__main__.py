"""Compare time with the tools that people use today, all in one run, and print one table.

    python -m benchmarks [--quick] [--only hpatches_scoring,eth_matching]

Each benchmark runs in a process of its own, one after the other. With --quick the sizes are small:
that shows that everything runs, and its ratios mean nothing. A script that is run alone has further
options, and tells memory: `python -m benchmarks.NAME --help`.
"""

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from benchmarks.comparison import Comparison, of_module
from benchmarks.machine import machine
from harness.errors import UnknownNameError
from harness.escape import markdown
from harness.records import markdown_table
from harness.registry import unknown

NAMES = (
    "hpatches_scoring", "phototour_reader", "oxford_matching", "eth_matching", "training",
    "doap_loss", "onnx_speed",
)  # fmt: skip
COLUMNS = ("task", "here, s", "reference, s", "ratio", "reference", "results")


def table(rows: Sequence[Comparison]) -> str:
    """The rows as Markdown."""
    cells = [
        [
            markdown(row.task),
            f"{row.ours_s:.3g}",
            f"{row.reference_s:.3g}",
            f"{row.ratio:.1f}",
            markdown(row.reference),
            markdown(row.results),
        ]
        for row in rows
    ]
    return "\n".join(markdown_table.lines(COLUMNS, cells, "lrrrll"))


def main() -> None:
    """Run the benchmarks, print the table and the machine."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes: a smoke test")
    parser.add_argument("--only", help="names of benchmarks, with commas")
    given = parser.parse_args()
    names = given.only.split(",") if given.only else list(NAMES)
    for name in names:
        if name not in NAMES:
            raise UnknownNameError(unknown("benchmarks", name, NAMES))
    rows: list[Comparison] = []
    for name in names:
        print(f"{name} ...", file=sys.stderr, flush=True)
        with ProcessPoolExecutor(1, get_context("spawn")) as alone:
            rows += alone.submit(of_module, name, given.quick).result()
    print(table(rows))
    print(f"\nOne run on {machine()}{'; small sizes: a smoke test' if given.quick else ''}.")


if __name__ == "__main__":
    main()
