"""Train every recipe for a short time: does it learn, and does its ONNX file equal the network?

    python -m studies.short_training --data DIR,DIR --mini DIR --out DIR [RECIPE ...]

All recipes use about the same number of patches with a gradient, in batches of at most 512. The
learning rate of SGD is scaled by the size of the batch, and the schedule is shortened. A training
that was interrupted continues. Then each model is scored on `--mini`, a set in HPatches' form,
twice: with PyTorch and with the ONNX file. The table is written to OUT/table.md.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from harness.data import training_sets
from harness.escape import markdown
from harness.evaluation import evaluate
from harness.files import atomic
from harness.loading import load_protocols
from harness.onnx import file as onnx_file
from harness.records import markdown_table
from harness.types import Dataset, Descriptor
from protocols.phototour.writer import SIDE
from zoo import card, trained
from zoo.handcrafted import sift
from zoo.training import command, held_out
from zoo.training.command import RECIPE
from zoo.training.log import read_log
from zoo.training.patches import stored
from zoo.training.recipe import Recipe, differences, read, read_kept
from zoo.training.state import FILE

RECIPES = (
    "hardnet", "hardnet-gor", "sosnet", "hynet", "tfeat", "l2net", "l2net+", "siamese", "triplet",
    "mixed-context", "doap", "doap-st", "doap-binary", "hardnet-star", "adasample-lambda-0",
    "hardpos", "adasample", "adasample+sos",
)  # fmt: skip
BATCH = 512  # patches
CLASS = 8  # patches of a point, for methods that use whole classes
TASKS = ("matching/map", "retrieval/map", "verification/map")
COLUMNS = (
    "recipe", "vector", "steps", "patches", "minutes", "loss, first tenth → last",
    "held-out FPR95, %", "matching", "retrieval", "verif. (mAP, %)", "torch - ONNX, mAP",
)  # fmt: skip


def settings(recipe: Recipe, patches: int) -> list[str]:
    """Settings that replace those of a recipe, in the form of `--set`."""
    method = recipe.method.options
    changes = []
    batch = 2 * method["pairs"] if "pairs" in method else method.get("patches", 256)
    if batch > BATCH:
        unit = "patches" if "patches" in method else "pairs"
        changes += [f"method.{unit}={BATCH if unit == 'patches' else BATCH // 2}"]
        if recipe.optimiser.name == "sgd":
            changes += [f"optimiser.lr={recipe.optimiser.lr * BATCH / batch}"]
        batch = BATCH
    if method.get("class_size"):
        changes += [f"method.class_size={CLASS}"]
    epochs = recipe.epochs
    return [*changes, f"steps_per_epoch={max(1, round(patches / batch / epochs))}"]


def trained_or_resumed(name: str, out: Path, data: Sequence[str], given: Sequence[str]) -> None:
    """Train by a recipe, unless its training is finished; an interrupted training continues."""
    if not is_trained(name, out, given):
        command.train(name, out, data=data, settings=given, resume=(out / FILE).is_file())


def is_trained(name: str, out: Path, given: Sequence[str]) -> bool:
    """Whether a folder holds a finished training by a recipe, on any data.

    Raises:
        FileExistsError: if the folder holds a training with other settings, finished or not.
    """
    if (out / RECIPE).is_file():
        before = read_kept(out / RECIPE)
        for key, (was, value) in differences(before, read(name, given, before.data)).items():
            raise FileExistsError(
                f"{out} holds a training whose {key} is {was}, not {value}: move it away, or"
                " choose another --out"
            )
    return (out / "model.onnx").is_file()


def baseline(dataset: Dataset, recipe: Recipe) -> float:
    """RootSIFT's error on the held-out pairs of a recipe."""
    home = training_sets.photograph(dataset)
    split = held_out.split(dataset.point, home, recipe.held_out, recipe.seed)
    rows = np.concatenate([split.a, split.b])
    rootsift = sift.rootsift()
    patches = stored(dataset, SIDE)[rows]
    return held_out.fpr95(rootsift.describe(patches), rootsift.distance)


def maps(model: Descriptor, mini: Path) -> Mapping[str, float]:
    """The three headline scores on a set in HPatches' form."""
    protocols = load_protocols("hpatches", {"data": mini})
    scores = {k: v for record in evaluate(model, protocols) for k, v in record.scores.items()}
    return {name: scores[name] for name in TASKS}


def row(name: str, out: Path, mini: Path) -> list[str]:
    """Cells of a row of the table."""
    steps = [seen for seen in read_log(out) if seen.loss is not None]
    errors = [seen.fpr95 for seen in read_log(out) if seen.fpr95 is not None]
    tenth = max(1, len(steps) // 10)
    losses = [np.mean([step.loss for step in part]) for part in (steps[:tenth], steps[-tenth:])]
    facts = card.read(out / "card.json")
    by_torch = maps(trained.by_torch(out / "weights.safetensors", facts), mini)
    by_onnx = maps(onnx_file.open_model(out / "model.onnx", device="cpu"), mini)
    apart = max(abs(by_torch[task] - by_onnx[task]) for task in TASKS)
    patches = sum(step.patches for step in steps)
    return [
        markdown(name),
        f"{facts.dim} {facts.distance}",
        f"{facts.steps}",
        f"{patches}",
        f"{60 * facts.hours:.1f}",
        f"{losses[0]:.4g} → {losses[1]:.4g}",
        f"{100 * errors[0]:.2f} → {100 * errors[-1]:.3f}",
        *(f"{100 * by_onnx[task]:.2f}" for task in TASKS),
        f"{apart:.1e}",
    ]


def main() -> None:
    """Train and score the recipes, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recipes", nargs="*", default=RECIPES)
    parser.add_argument("--data", required=True)
    parser.add_argument("--mini", required=True, type=Path)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--patches", type=int, default=60_000)
    given = parser.parse_args()
    data = given.data.split(",")
    for name in given.recipes:
        trained_or_resumed(name, given.out / name, data, settings(read(name), given.patches))
    dataset = training_sets.joined([training_sets.open_set(name) for name in data])
    rootsift = baseline(dataset, read(given.recipes[0]))
    rows = (row(name, given.out / name, given.mini) for name in given.recipes)
    text = [
        f"RootSIFT's held-out FPR95 on the same pairs: {100 * rootsift:.3f} %.",
        "",
        *markdown_table.lines(COLUMNS, rows, "llrrrllr"),
    ]
    atomic.write_text(given.out / "table.md", "\n".join(text) + "\n")
    print("\n".join(text))


if __name__ == "__main__":
    main()
