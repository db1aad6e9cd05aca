"""Compare training methods with several seeds and one setting, and test the differences.

    python -m studies.method_comparison --data DIR,DIR --held-out DIR,DIR --oxford DIR
        --frames DIR --mini DIR --out DIR [--seeds N] [--patches N] [--rate LR] [METHOD ...]

The settings are those of `studies.zoo_training`, the scores those of `studies.training_data`. Each
method has its own learning rate: starting at the zoo's rate, the rate is doubled, or halved, as
long as that gives a better score on the held-out sequences. This search uses one more seed, which
is not compared, because near the best rate the choice depends on the seed. With `--rate`, all
methods have this rate.

A difference, in points, is the mean over pairs of trainings with the same seed: they learn from the
same points and are tested on the same held-out points. Its 95 % interval is from the t-test of
pairs, and decides the answer; if two methods are equal, one answer in twenty is wrong. p is the
probability that seeds of equal methods come in this order or a clearer one (Mann and Whitney's
test, one-sided, exact; for three seeds against three at least 0.05), as in table 3 of AdaSample.
All this is about seeds: other images can give other results. A training that exists already is used
again. The tables are written to OUT/table.md; ± is the standard deviation over seeds.
"""

import argparse
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from scipy import stats

from harness.differences import rank_sum
from harness.escape import markdown
from harness.evaluation import evaluate
from harness.files import atomic
from harness.records import markdown_table
from harness.types import Descriptor, Protocol
from protocols.oxford.reader import SIX
from studies.short_training import trained_or_resumed
from studies.training_data import names, scored, scores, tests
from studies.zoo_training import ALIKE, settings
from zoo import card
from zoo.handcrafted import sift
from zoo.training.recipe import read

ANY = "adasample, any positive"
CROSS = "adasample, cross negatives"
ASKED = (
    ("adasample", "hardnet"),
    ("adasample", ANY),
    (CROSS, "adasample"),
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
FROM = {  # a recipe, and settings that replace its own
    ANY: ("adasample", "method.lambda_=0", "method.class_size=2"),
    CROSS: ("adasample", "method.negatives=cross"),
}
RATE = next(float(line.partition("=")[2]) for line in ALIKE if line.startswith("optimiser.lr="))
BY_RATE = "by learning rate, held-out sequences"
ANSWER = ("", "measured on", "difference", "95 %", "p", "")  # columns of the second table
LESS = "FPR95 of held-out points"  # the only measure that should be small


def trained(name: str, seed: int, rate: float, given: argparse.Namespace) -> Path:
    """Train a method with a seed at a learning rate; returns the folder of the training."""
    out = given.out / re.sub(r"\W+", "-", f"{name}-{seed}-{rate:g}")
    recipe, *more = FROM.get(name, (name,))
    changes = [*settings(read(recipe), given.patches, seed), *more, f"optimiser.lr={rate}"]
    trained_or_resumed(recipe, out, given.data.split(","), changes)
    return out


def tried(name: str, given: argparse.Namespace, by: Sequence[Protocol]) -> dict[float, float]:
    """Mean matching mAP on held-out sequences, in points, by learning rate."""

    def held_out(rate: float) -> float:
        out = trained(name, given.seeds, rate, given)
        return scored(out, by, "held-out.json", mean_held_out)["held out"]

    return climbed(held_out, RATE)


def mean_held_out(model: Descriptor, by: Sequence[Protocol]) -> dict[str, float]:
    """Matching mAP, in points, over the held-out sequences of `tests`."""
    maps = [next(evaluate(model, [test])).scores[test.headline] for test in by[:-2]]
    return {"held out": 100 * float(np.mean(maps))}


def climbed(value: Callable[[float], float], start: float) -> dict[float, float]:
    """Values of the tried numbers; the start is doubled, or halved, as long as that is better."""
    values = {start: value(start)}
    for factor in (2, 0.5):
        while (best := max(values, key=values.__getitem__)) * factor not in values:
            values[best * factor] = value(best * factor)
    return values


def measured(
    name: str, seed: int, rate: float, given: argparse.Namespace, by: Sequence[Protocol]
) -> dict[str, float]:
    """Train a method with a seed; returns its scores in points."""
    out = trained(name, seed, rate, given)
    error = card.read(out / "card.json").curve[-1].fpr95
    assert error is not None  # all recipes hold points out
    return {**scored(out, by), LESS: 100 * error}


def answer(
    better: str, worse: str, measure: str, a: Sequence[float], b: Sequence[float]
) -> list[str]:
    """Cells of a row of the second table: is one method better than another in a measure?"""
    sign = -1 if measure == LESS else 1
    low, high = stats.ttest_rel(a, b).confidence_interval()
    _, p = rank_sum([sign * value for value in a], [sign * value for value in b])
    text = "can't tell"
    if low > 0 or high < 0:
        text = "yes" if sign * low > 0 else "no, worse"
    apart = np.mean(a) - np.mean(b)
    interval = f"{low:+.2f} to {high:+.2f}"
    pair = f"{better} over {worse}"
    return [pair, markdown(measure), f"{apart:+.2f}", interval, f"{p:.2f}", text]


def main() -> None:
    """Train, score and compare the methods, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("methods", nargs="*", default=METHODS)
    parser.add_argument("--data", required=True)
    parser.add_argument("--held-out", required=True)
    for folder in ("oxford", "frames", "mini", "out"):
        parser.add_argument(f"--{folder}", required=True, type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rate", type=float, help="learning rate of all methods; no search then")
    parser.add_argument("--patches", type=int, default=100_000, help="patches with a gradient")
    given = parser.parse_args()
    if unknown := [name for name in given.methods if name not in METHODS]:
        parser.error(f"no method is named {', '.join(unknown)}; methods are: {'; '.join(METHODS)}")
    if given.seeds < 2:
        parser.error(f"--seeds is {given.seeds}: one seed has no spread, give 2 or more")
    by = tests(given)
    of_seeds: dict[str, list[dict[str, float]]] = {name: [] for name in given.methods}
    maps = {} if given.rate else {name: tried(name, given, by) for name in given.methods}
    print(maps, flush=True)
    for seed in range(given.seeds):
        for name in given.methods:
            rate = given.rate or max(maps[name], key=maps[name].__getitem__)
            of_seeds[name].append(measured(name, seed, rate, given, by))
            print(name, seed, of_seeds[name][-1], flush=True)
    measures = [*(name for name in names(by) if name not in SIX), LESS]
    columns = [*of_seeds[given.methods[0]][0]]
    rootsift = {LESS: math.nan, **scores(sift.rootsift(), by)}
    values = {
        (name, column): [of_seed[column] for of_seed in of_seeds[name]]
        for name in given.methods
        for column in columns
    }
    cells = {
        key: f"{np.mean(some):.2f} ± {np.std(some, ddof=1):.2f}" for key, some in values.items()
    }
    cells |= {("rootsift", c): f"{rootsift[c]:.2f}".replace("nan", "—") for c in columns}
    of_methods = (
        [name, *(cells[name, column] for column in columns)]
        for name in ("rootsift", *given.methods)
    )
    of_rates = [
        (name, ", ".join(f"{rate:g}: {by_rate[rate]:.2f}" for rate in sorted(by_rate)))
        for name, by_rate in maps.items()
    ]
    answers = (
        answer(*pair, measure, *(values[name, measure] for name in pair))
        for pair in ASKED
        if {*pair} <= {*given.methods}
        for measure in measures
    )
    text = [
        *markdown_table.lines(["", *map(markdown, columns)], of_methods),
        "",
        *(markdown_table.lines(["", BY_RATE], of_rates, "l") if maps else ()),
        "",
        *markdown_table.lines(ANSWER, answers, "llrlrl"),
    ]
    atomic.write_text(given.out / "table.md", "\n".join(text) + "\n")


if __name__ == "__main__":
    main()
