"""What a GPU computes, and how fast: ten minutes, in the order in which faults would show.

    python -m benchmarks.gpu [--device cuda] [--quick] [--only steps,speed]

Prints a table as it goes. A part that fails is named, and the next one begins; then the exit status
is 1. `--device cpu --quick` runs every part on the CPU, as small as it can be: it shows that the
script works, and nothing about a GPU.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from benchmarks import gpu_describing, gpu_training
from benchmarks.gpu_found import Found, Part, Setting
from harness.errors import FAILURES, one_line, text_of
from harness.escape import markdown
from zoo.exact import exact

PARTS: dict[str, Part] = {
    "versions": gpu_describing.versions,
    "shipped": gpu_describing.shipped,
    "steps": gpu_training.steps,
    "bfloat16": gpu_training.bfloat16,
    "resume": gpu_training.resume,
    "learning": gpu_training.learning,
    "profile": gpu_describing.profile,
    "speed": gpu_training.speed,
    "describing": gpu_describing.describing,
    "two": gpu_training.two,
}
SIGNS = {True: "good", False: "FAILED", None: ""}


def run(part: str, setting: Setting) -> bool:
    """Run a part and print what it finds; returns whether all is as wanted."""
    good, began = True, time.perf_counter()

    def row(found: Found) -> None:
        nonlocal good
        good &= found.good is not False
        cells = (part, found.what, found.value, found.wanted, SIGNS[found.good])
        print(f"| {' | '.join(markdown(one_line(cell)) for cell in cells)} |", flush=True)

    try:
        with exact():
            for found in PARTS[part](setting):
                row(found)
    except FAILURES as error:
        row(Found("ended by an error", text_of(error), "no error", False))
    row(Found("seconds", f"{time.perf_counter() - began:.1f}"))
    return good


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the parts; returns the exit status: 1 if something is not as wanted."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--quick", action="store_true", help="as small as it can be")
    parser.add_argument("--only", default=",".join(PARTS), help="parts, separated by commas")
    given = parser.parse_args(arguments)
    parts = given.only.split(",")
    if unknown := sorted(set(parts) - set(PARTS)):
        parser.error(f"no part {', '.join(unknown)}; known: {', '.join(PARTS)}")
    print("| part | what | found | wanted | |\n| --- | --- | --- | --- | --- |", flush=True)
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        for part in parts:
            own = Path(folder, part)
            own.mkdir()
            if not run(part, Setting(torch.device(given.device), given.quick, own)):
                failed.append(part)
    print(f"\nnot as wanted: {', '.join(failed)}" if failed else "\nall is as wanted")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
