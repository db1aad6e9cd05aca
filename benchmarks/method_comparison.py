"""Which method is better: seeds of each under one setting, and what a test says of the difference.

    python benchmarks/method_comparison.py --data DIR,DIR --held-out DIR,DIR --oxford DIR
        --frames DIR --mini DIR --out DIR [--seeds N] [--patches N]

Settings are those of `zoo_training.py`, sets too (its OUT/sets/*); scores those of
`training_data.py`. A difference, in points, is the mean of those between trainings of one seed,
which learn from the same points and are tested on the same held-out ones; its 95 % interval is of
the t-test of such pairs, and the answer goes by it. p is the chance that seeds of equal methods
come out in such an order or a clearer one (Mann and Whitney's test, one-sided, exact; of three
against three at least 0.05), as in table 3 of AdaSample. All this is of seeds: other images may say
otherwise. A training that is there is taken as it is. The tables stand in OUT/table.md; ± is the
deviation over seeds.
"""

import argparse
import math
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy import stats
from short_training import trained_or_resumed
from training_data import names, scored, scores, tests
from zoo_training import settings

from harness.types import Protocol
from protocols.oxford.reader import SIX
from zoo import card, handcrafted
from zoo.training.recipe import read

ANY = "adasample, any positive"
ASKED = (
    ("adasample", "hardnet"),
    ("adasample", ANY),
    ("adasample+sos", "adasample"),
    ("adasample+sos", "sosnet"),
    ("sosnet", "hardnet"),
    ("mixed-context", "triplet"),
    ("mixed-context", "siamese"),
    ("triplet", "siamese"),
    ("doap", "triplet"),
    ("doap", "hardnet"),
)
METHODS = tuple(dict.fromkeys(name for pair in ASKED for name in pair))
FROM = {ANY: ("adasample", "method.lambda_=0", "method.class_size=2")}  # a recipe, what is set
LESS = "FPR95 of held-out points"  # the one measure of which less is better


def measured(
    name: str, seed: int, given: argparse.Namespace, by: Sequence[Protocol]
) -> dict[str, float]:
    """The scores, in points, of a method trained with a seed."""
    out = given.out / re.sub(r"\W+", "-", f"{name}-{seed}")
    recipe, *more = FROM.get(name, (name,))
    said = [*settings(read(recipe), given.patches, seed), *more]
    trained_or_resumed(recipe, out, given.data.split(","), said)
    return {**scored(out, by), LESS: 100 * card.read(out / "card.json").curve[-1].fpr95}


def answer(better: str, worse: str, measure: str, a: Sequence[float], b: Sequence[float]) -> str:
    """A row of the second table: is one method better than another in a measure?"""
    sign = -1 if measure == LESS else 1
    low, high = stats.ttest_rel(a, b).confidence_interval()
    p = stats.mannwhitneyu(
        sign * np.array(a), sign * np.array(b), alternative="greater", method="exact"
    ).pvalue
    said = "can't tell"
    if low > 0 or high < 0:
        said = "yes" if sign * low > 0 else "no, worse"
    apart = np.mean(a) - np.mean(b)
    return (
        f"| {better} over {worse} | {measure} | {apart:+.2f} | {low:+.2f} to {high:+.2f} |"
        f" {p:.2f} | {said} |"
    )


def main() -> None:
    """Train, score, compare, write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True)
    parser.add_argument("--held-out", required=True)
    for folder in ("oxford", "frames", "mini", "out"):
        parser.add_argument(f"--{folder}", required=True, type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--patches", type=int, default=100_000, help="with a gradient")
    given = parser.parse_args()
    by = tests(given)
    found: dict[str, list[dict[str, float]]] = {name: [] for name in METHODS}
    for seed in range(given.seeds):
        for name in METHODS:
            found[name].append(measured(name, seed, given, by))
            print(name, seed, found[name][-1], flush=True)
    measures = [*(name for name in names(by) if name not in SIX), LESS]
    columns = [*found[METHODS[0]][0]]
    rootsift = {LESS: math.nan, **scores(handcrafted.rootsift(), by)}
    values = {
        (name, one): [scored[one] for scored in found[name]] for name in METHODS for one in columns
    }
    cells = {
        key: f"{np.mean(those):.2f} ± {np.std(those, ddof=1):.2f}" for key, those in values.items()
    }
    cells |= {("rootsift", one): f"{rootsift[one]:.2f}".replace("nan", "—") for one in columns}
    table = [
        f"| | {' | '.join(columns)} |",
        f"|---|{'---:|' * len(columns)}",
        *(
            f"| {name} | {' | '.join(cells[name, one] for one in columns)} |"
            for name in ("rootsift", *METHODS)
        ),
        "",
        "| | measured on | difference | 95 % | p | |",
        "|---|---|---:|---|---:|---|",
        *(
            answer(*pair, measure, *(values[name, measure] for name in pair))
            for pair in ASKED
            for measure in measures
        ),
    ]
    (given.out / "table.md").write_text("\n".join(table) + "\n", "utf-8")


if __name__ == "__main__":
    main()
