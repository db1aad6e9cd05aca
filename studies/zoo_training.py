"""Train the zoo's weights from photographs, with one setting for all methods.

    python -m studies.zoo_training --images DIR --places DIR --photographs DIR --out DIR
        --licence TEXT [--patches N] [--seed N] [RECIPE ...]

The images of `--images` show different things. `--places` holds a folder of photographs for each
place. `--photographs` holds some of the photographs of places, no two of the same view. The shipped
weights are from BSDS500 (images), castle-P30 and SceauxCastle (places), and from 0000, 0015 and
0021 of castle-P30 and 100_7105 of SceauxCastle (photographs). Sets are built in OUT/sets, in half
an hour on two cores. An interrupted training in OUT/<recipe>-<seed> continues.

All methods use the same number of patches with a gradient, in batches of the same size, with the
same turns and flips. A batch has patches of few images; only half of L2-Net's batch goes through
the points in order instead. All are trained by Adam, with a learning rate that falls linearly to 0.
The papers' rates are for a hundred times as many batches; with them, the order of methods would be
the order of their rates. The rate was chosen with HardNet only, whose matching mAP on held-out
sequences after 120 batches was 44.3 at 0.003, 44.0 at 0.005, 43.9 at 0.01 and 41.9 at 0.03 (the
best rate of each method: results/studies/method-comparison.md). The network is L2-Net on
standardised patches, also for mixed context; L2-Net+ and DOAP's transformer have their own
networks. All other differences are differences between the papers. `studies.ship` puts the weights
of a training into the zoo.
"""

import argparse
import inspect
import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from harness.files import folders
from protocols.builders.homography.build import build as homography
from protocols.builders.homography.strengths import Strengths
from protocols.builders.phototour.build import build as phototour
from protocols.builders.views.build import build as views
from studies.short_training import trained_or_resumed
from zoo.training.recipe import Recipe, find, read

RECIPES = (
    "adasample", "adasample+sos", "hardnet", "sosnet", "doap", "doap-st", "doap-binary", "l2net+",
    "mixed-context",
)  # fmt: skip
BATCH = 1024  # patches with a gradient
EPOCHS = 20
ALIKE = (
    "schedule.name=linear", "schedule.at=[]", "schedule.factor=1.0", "augmentation.dihedral=true",
    "optimiser.name=adam", "optimiser.lr=0.005", "optimiser.momentum=0.9", "optimiser.dampening=0",
    "optimiser.weight_decay=0",
)  # fmt: skip
OPTIONS = {
    "pairs": BATCH // 2, "patches": BATCH, "in_order": BATCH // 4, "at_random": BATCH // 4,
    "images": 3, "share": 1.0,  # the images that negatives come from
    "e2": BATCH / 2 / 128,  # L2-Net's E2 does not grow with the batch; its weight is for 128 pairs
    "class_size": 4, "turn": 0.0,  # for methods with classes of a point; copies fill up a class
    "separate": False,  # batch normalisation uses the whole batch, as in DOAP
}  # fmt: skip
DROPOUT = 0.1  # of all networks with dropout


def sets(given: argparse.Namespace) -> list[Path]:
    """Folders of the training data; a set that does not exist is built."""
    folder = given.out / "sets"
    makers: dict[str, Callable[[Path], object]] = {
        "homography": partial(homography, given.images, points=40, strengths=Strengths(turn=5.0)),
        "views": partial(views, given.images),
        "views-of-places": partial(views, given.photographs, points=1500),
    }
    for place in folders.folders(given.places):
        makers[f"places/{place.name}"] = partial(phototour, place)
    for name, make in makers.items():
        if not (folder / name).is_dir():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            print(make(folder / name), flush=True)
    return sorted({folder / name.partition("/")[0] for name in makers})


def settings(
    recipe: Recipe, patches: int, seed: int, options: Mapping[str, object] = OPTIONS
) -> list[str]:
    """Settings that replace those of a recipe; only options that its method has."""
    takes = set(inspect.signature(find("method", recipe.method.name)).parameters)
    changes = [*ALIKE, f"seed={seed}", f"epochs={EPOCHS}"]
    if recipe.network.name == "l2net-mean-deviation":
        changes += ["network.name=l2net", f"network.dropout={DROPOUT}"]
    elif "dropout" in recipe.network.options:
        changes += [f"network.dropout={DROPOUT}"]
    if recipe.method.options.get("class_size") is None:  # pairs of a point's own patches
        takes -= {"class_size", "turn"}
    changes += [f"method.{key}={json.dumps(v)}" for key, v in options.items() if key in takes]
    return [*changes, f"steps_per_epoch={max(1, round(patches / BATCH / EPOCHS))}"]


def main() -> None:
    """Build missing sets, and run the trainings that are not finished."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recipes", nargs="*", default=RECIPES)
    for folder in ("images", "places", "photographs", "out"):
        parser.add_argument(f"--{folder}", required=True, type=Path)
    parser.add_argument(
        "--licence", required=True, help="licence of the weights, from the images' licences"
    )
    parser.add_argument("--patches", type=int, default=1_000_000, help="patches with a gradient")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    data = [*map(str, sets(given))]
    for name in given.recipes:
        changes = [f"licence={given.licence}", *settings(read(name), given.patches, given.seed)]
        trained_or_resumed(name, given.out / f"{name}-{given.seed}", data, changes)


if __name__ == "__main__":
    main()
