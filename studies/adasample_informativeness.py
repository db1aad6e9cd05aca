"""Repeat AdaSample's figure 3: compare sampling by distance with sampling by the true gradient.

    python -m studies.adasample_informativeness --data DIR TRAINED... [--points 32] [--csv FILE]

TRAINED are folders of `harness train`, one for each epoch of interest. The script prints Pearson's
correlation over all candidate positives of the points, for each folder. The CSV file has a line for
each candidate: the folder and both probabilities.
"""

import argparse
import csv
from pathlib import Path

import numpy as np
import torch

from harness.data import training_sets
from zoo import card, trained
from zoo.adasample import CROSSED
from zoo.adasample_informativeness import informativeness
from zoo.training.augment import augmented
from zoo.training.classes import classes
from zoo.training.groups import Groups
from zoo.training.patches import stored


def main() -> None:
    """Print the correlation of each folder, and write the candidates."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trained", nargs="+", type=Path)
    parser.add_argument("--data", required=True)
    parser.add_argument("--points", type=int, default=32)
    parser.add_argument("--patches", type=int, default=15, help="of each point")
    parser.add_argument("--turn", type=float, default=20.0)
    parser.add_argument("--margin", type=float, default=1.0)
    parser.add_argument("--distance", choices=CROSSED, default="angle")
    parser.add_argument("--csv", type=Path)
    given = parser.parse_args()
    dataset = training_sets.open_set(given.data)
    groups = Groups.of(dataset.point, dataset.image)
    rng = np.random.default_rng(0)
    point = rng.choice(len(groups), given.points, replace=False)
    drawn = classes(groups, point, given.patches, given.turn, rng)
    assert drawn.angle is not None
    lines = []
    for folder in given.trained:
        network = trained.load(folder / "weights.safetensors", card.read(folder / "card.json"))
        patches = augmented(
            torch.from_numpy(stored(dataset, network.side)[drawn.rows]),
            torch.from_numpy(drawn.point),
            torch.from_numpy(drawn.angle),
            dihedral=False,
            random=torch.Generator(),
        )
        measured = informativeness(
            network,
            patches.unflatten(0, (given.points, given.patches)),
            margin=given.margin,
            distance=given.distance,
        )
        print(f"{folder}: Pearson's r = {measured.correlation:.3f}")
        by_distance, by_gradient = measured.induced
        pairs = zip(by_distance.flatten().tolist(), by_gradient.flatten().tolist(), strict=True)
        lines += [(folder, *pair) for pair in pairs]
    if given.csv:
        with given.csv.open("w", newline="") as stream:
            csv.writer(stream).writerows([("trained", "by_distance", "by_gradient"), *lines])


if __name__ == "__main__":
    main()
