"""Steps of the harness on stand-ins, each to be measured in a process of its own.

    python -m benchmarks.full_size.steps STEP FOLDER [NUMBER]

Other steps are commands of the harness itself; these have no command of their own.
"""

import argparse
import json
import random
from collections.abc import Callable, Mapping
from itertools import combinations
from pathlib import Path

from harness.files import atomic, folders
from harness.records.record import RECORDS

SHAKEN = 0.01  # how far scores of a made-up model differ from those of the record, besides a shift


def open_hpatches(folder: Path, number: int) -> int:
    """Check every strip, and make the task files of split "full"; patches in the set."""
    from harness.loading import load_protocol

    for task in ("matching", "retrieval", "verification"):
        dataset = load_protocol(f"hpatches/{task}", data=folder, split="full").dataset
    return len(dataset)


def open_training(folder: Path, number: int) -> int:
    """Open a training set as a training of 32 x 32 pixels does; its patches."""
    from harness.data import training_sets
    from zoo.training.patches import stored

    return len(stored(training_sets.open_set(str(folder)), 32))


def match_pairs(folder: Path, number: int) -> int:
    """Match all pairs of images of Madrid's stand-in; the number of pairs."""
    from benchmarks.full_size import madrid
    from harness import parallel
    from harness.distances import L2
    from protocols.eth.matching import axes, match

    vectors = list(madrid.read(folder))
    by = axes(vectors, L2)
    pairs = list(combinations(range(len(vectors)), 2))
    parallel.each(lambda pair: match(vectors[pair[0]], vectors[pair[1]], by), pairs)
    return len(pairs)


def make_records(folder: Path, number: int) -> int:
    """Records of made-up models, by changing the scores of the records in a folder of results."""
    rng = random.Random(0)
    found = [file for file in folders.files(folder / RECORDS) if file.suffix == ".json"]
    for i in range(number):
        shift = rng.uniform(-0.2, 0.2)

        def moved(value: float, shift: float = shift) -> float:
            return min(1.0, max(0.0, value + shift + rng.uniform(-SHAKEN, SHAKEN)))

        for file in found:
            record = json.loads(file.read_text("utf-8"))
            record["model"]["name"] = f"made-{i:04}"
            scores = record["scores"] = {k: moved(v) for k, v in record["scores"].items()}
            record["scenes"] = {
                scene: {k: moved(v) for k, v in values.items()}
                for scene, values in record["scenes"].items()
            }
            record["intervals"] = {
                k: [max(0.0, scores[k] - SHAKEN), min(1.0, scores[k] + SHAKEN)]
                for k in record["intervals"]
            }
            atomic.write_json(file.with_name(f"made-{i:04}.json"), record)
    return number


STEPS: Mapping[str, Callable[[Path, int], int]] = {
    step.__name__: step for step in (open_hpatches, open_training, match_pairs, make_records)
}


def main() -> None:
    """Run one step, print the amount of its work."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step", choices=STEPS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("number", type=int, nargs="?", default=0)
    given = parser.parse_args()
    print(STEPS[given.step](given.folder, given.number))


if __name__ == "__main__":
    main()
