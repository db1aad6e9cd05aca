"""What training data are worth: one change at a time, the same short training, what tests say.

    python -m studies.training_data --images DIR --photographs DIR --held-out DIR,DIR
        --oxford DIR --frames DIR --mini DIR --out DIR [ROW ...]

HardNet learns from patches of images that are moved, warped and relit at random (`harness data
build homography`), from regions that a detector finds in views of images (`views`), from scenes
built from photographs, and from these together; a row's name says in what it differs from the row
without a comma (of views a detector then finds other points, and more or fewer). Settings are those
of `zoo_training.py`. It is tested on sequences of photographs that are in no set
(`held_out_sequences.py`, which are made as views are; rows that learn from the place that they show
have it easier), by which data may be chosen, and on what they may not be chosen by: Oxford with the
regions of a folder and a set in HPatches' form. Rows that differ in the seed alone say what a
difference is worth: their deviation, pooled, is the last row. In italics is what is farther from
their mean than another seed would be 19 times in 20 (Student's t), bold those of which 19 in 20 are
no luck, as many as they are (Benjamini and Hochberg's). Sets and trainings that are there already
are taken as they are. The table stands in OUT/table.md.
"""

import argparse
import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from harness.escape import markdown
from harness.evaluation import evaluate
from harness.files import atomic
from harness.loading import load_protocols
from harness.onnx import file as onnx_file
from harness.types import Descriptor, Protocol
from protocols.builders.homography.build import build as build_homography
from protocols.builders.homography.strengths import DEFAULT as STRENGTHS
from protocols.builders.views.build import build as build_views
from protocols.builders.views.camera import DEFAULT as CAMERAS
from protocols.oxford.reader import SIX
from studies.short_training import is_trained, trained_or_resumed
from studies.zoo_training import OPTIONS, settings
from zoo import handcrafted
from zoo.training.recipe import read

RECIPE = "hardnet"
NEAR = ("images", "share")  # options by which negatives come from few images
BUILDERS: dict[str, tuple[Any, Any, str]] = {
    "homography": (build_homography, STRENGTHS, "strengths"),
    "views": (build_views, CAMERAS, "cameras"),
}
FEATURES = 1000  # regions of an image that are tested: a table of many rows has to end


@dataclass(frozen=True)
class Data:
    """What is learned from; options are those of the builders, on top of their defaults."""

    homography: Mapping[str, float] | None = None
    views: Mapping[str, float] | None = None
    photographs: bool = False
    near: bool = True  # negatives are of few images
    seed: int = 0


def drawn(**options: float) -> Data:
    """Homographies alone, with options on top of turns of 5 degrees."""
    return Data(homography={"turn": 5.0, **options})


def seen(**options: float) -> Data:
    """Views alone."""
    return Data(views=options)


ALL = Data(homography={"turn": 5.0}, views={}, photographs=True)
ROWS = {
    "homography": drawn(),
    "homography, turn 0": drawn(turn=0.0),
    "homography, turn 14": drawn(turn=14.0),
    "homography, no scale": drawn(scale=0.0),
    "homography, no stretch, no tilt": drawn(stretch=0.0, perspective=0.0),
    "homography, no shift": drawn(shift=0.0),
    "homography, no blur": drawn(blur=0.0, motion=0.0),
    "homography, no light": drawn(gamma=0.0, contrast=0.0, brightness=0.0),
    "homography, none faint": drawn(faint=0.0),
    "homography, no noise": drawn(noise=0.0),
    "homography, no JPEG": drawn(jpeg=0.0),
    "homography, half as wide": drawn(magnification=3.0),
    "views": seen(),
    "views, no blur": seen(blur=0.0),
    "views, no light": seen(gamma=0.0, contrast=0.0, brightness=0.0),
    "views, no JPEG": seen(jpeg=0.0),
    "views, from above": seen(slant=0.0),
    "views, one size": seen(closer=0.0, farther=0.0),
    "views, twice as wide": seen(magnification=6.0),
    "photographs": Data(photographs=True),
    "all three": ALL,
    "all three, no views": replace(ALL, views=None),
    "all three, no homography": replace(ALL, homography=None),
    "all three, no photographs": replace(ALL, photographs=False),
    "all three, negatives of any image": replace(ALL, near=False),
    **{
        f"{name}, seed {seed}": replace(data, seed=seed)
        for name, data in {"homography": drawn(), "views": seen(), "all three": ALL}.items()
        for seed in (1, 2)
    },
}


def folders(data: Data, given: argparse.Namespace) -> list[Path]:
    """Of the sets, built where they are not there yet."""
    found = [given.photographs] * data.photographs
    for form, options in (("homography", data.homography), ("views", data.views)):
        if options is None:
            continue
        own = "-".join([form, *(f"{key}_{value:g}" for key, value in options.items())])
        folder = given.out / "sets" / own
        if not folder.is_dir():
            _build(form, dict(options), folder, given)
        found.append(folder)
    return found


def _build(form: str, options: dict[str, float], out: Path, given: argparse.Namespace) -> None:
    build, default, strengths = BUILDERS[form]
    wide = {key: options.pop(key) for key in ("magnification",) if key in options}
    strength = {strengths: replace(default, **options)}
    build(given.images, out, points=given.points, **wide, **strength)


def trained(name: str, data: Data, given: argparse.Namespace) -> Path:
    """The folder of a training, run or gone on with where it is not done."""
    out = given.out / re.sub(r"\W+", "-", name)
    options = {k: v for k, v in OPTIONS.items() if data.near or k not in NEAR}
    said = settings(read(RECIPE), given.patches, data.seed, options)
    if not is_trained(RECIPE, out, said):  # else its data need not be here any more
        trained_or_resumed(RECIPE, out, [*map(str, folders(data, given))], said)
    return out


def tests(given: argparse.Namespace) -> list[Protocol]:
    """What is tested by: held-out sequences, Oxford on given regions, a set in HPatches' form.

    Raises:
        ValueError: if two are of one name, for of such only one would be in the table.
    """
    few = {"features": FEATURES}
    asked: list[tuple[str, dict[str, Any]]] = [
        *(("oxford", {"data": Path(one), **few}) for one in given.held_out.split(",")),
        ("oxford", {"data": given.oxford, "frames": given.frames, **few}),
        ("hpatches/matching", {"data": given.mini}),
    ]
    found = [load_protocols(name, options)[0] for name, options in asked]
    if len(set(names(found))) < len(names(found)):
        raise ValueError(f"two tests have one name: {', '.join(names(found))}; rename a folder")
    return found


def names(by: Sequence[Protocol]) -> list[str]:
    """Of scores: held-out sequences, Oxford, each of its six, the set in HPatches' form."""
    held_out = [one.dataset.name.removeprefix("oxford-") for one in by[:-2]]
    return [*held_out, "Oxford", *SIX, by[-1].dataset.name]


def scores(model: Descriptor, by: Sequence[Protocol]) -> dict[str, float]:
    """Matching mAP by `names`, in points."""
    found = [next(evaluate(model, [protocol])) for protocol in by]
    *heads, mini = (record.scores[record.protocol.headline] for record in found)
    each = [found[-2].scores[f"{one}/map"] for one in SIX]
    return dict(zip(names(by), [100 * value for value in (*heads, *each, mini)], strict=True))


def story(model: Path, by: Sequence[Protocol]) -> str:
    """What scores are of: sha256 of the model's file, and of what it is tested by."""
    told = [hashlib.sha256(model.read_bytes()).hexdigest(), *names(by)]
    told += [f"{one.name} {one.version} {one.dataset.sha256}" for one in by]
    return hashlib.sha256("\n".join(told).encode()).hexdigest()


def scored(
    out: Path,
    by: Sequence[Protocol],
    file: str = "scores.json",
    measure: Callable[[Descriptor, Sequence[Protocol]], dict[str, float]] = scores,
) -> dict[str, float]:
    """What was trained in a folder, measured, or as a file there has it if it is of this story."""
    model = out / "model.onnx"
    told = story(model, by)
    kept = json.loads((out / file).read_text("utf-8")) if (out / file).is_file() else {}
    if kept.get("story") != told:
        opened = onnx_file.open_model(model, device="cpu")
        kept = {"story": told, "scores": measure(opened, by)}
        atomic.write_text(out / file, json.dumps(kept))
    found: dict[str, float] = kept["scores"]
    return found


def groups(found: Mapping[str, Mapping[str, float]]) -> dict[str, np.ndarray]:
    """Scores, (seeds, columns), of rows that differ in the seed alone, by the first one's name."""
    seeds: dict[str, list[list[float]]] = {}
    for name, each in found.items():
        seeds.setdefault(name.partition(", seed")[0], []).append([*each.values()])
    return {name: np.array(values) for name, values in seeds.items()}


def pooled(found: Mapping[str, np.ndarray]) -> tuple[np.ndarray, int]:
    """The deviation over seeds in each column, NaN if unknown, and its degrees of freedom."""
    degrees = sum(len(values) - 1 for values in found.values())
    squares = sum(((values - values.mean(axis=0)) ** 2).sum(axis=0) for values in found.values())
    return np.sqrt(squares / (degrees or math.nan)), degrees


def table(found: Mapping[str, Mapping[str, float]]) -> list[str]:
    """A row for each, marked where one change makes more of a difference than seeds do."""
    seeds = groups(found)
    deviation, degrees = pooled(seeds)
    chances = {}  # of so great a difference, or a greater one, if the seed alone makes it
    for name, values in seeds.items():
        of, changed, _ = name.partition(",")
        if degrees and changed and of in seeds:
            far = abs(values[0] - seeds[of].mean(axis=0)) / math.sqrt(1 + 1 / len(seeds[of]))
            chances[name] = 2 * stats.t.sf(far / deviation, degrees)
    marks = {}
    if chances:
        alone = np.array([*chances.values()])
        among = stats.false_discovery_control(alone, axis=None).reshape(alone.shape)
        stars = (alone < 0.05).astype(int) + (among < 0.05)
        marks = dict(zip(chances, stars.tolist(), strict=True))
    rows = [row(name, each.values(), marks.get(name, repeat(0))) for name, each in found.items()]
    return rows + [row("deviation over seeds", deviation)] * (degrees > 0)


def row(name: str, values: Iterable[float], stars: Iterable[int] = repeat(0)) -> str:
    """A row of the table, its values between stars."""
    cells = (f"{'*' * n}{value:.1f}{'*' * n}" for value, n in zip(values, stars, strict=False))
    return f"| {markdown(name)} | {' | '.join(cells)} |"


def main() -> None:
    """Train, test, write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", nargs="*", default=[*ROWS])
    parser.add_argument("--held-out", required=True)
    for folder in ("images", "photographs", "oxford", "frames", "mini", "out"):
        parser.add_argument(f"--{folder}", required=True, type=Path)
    parser.add_argument("--points", type=int, default=40, help="of each image")
    parser.add_argument("--patches", type=int, default=100_000, help="trained on")
    given = parser.parse_args()
    if unknown := [name for name in given.rows if name not in ROWS]:
        parser.error(f"no row is named {', '.join(unknown)}; rows are: {'; '.join(ROWS)}")
    by = tests(given)
    found: dict[str, dict[str, float]] = {}
    for name in given.rows:
        found[name] = scored(trained(name, ROWS[name], given), by)
        print(row(name, found[name].values()), flush=True)
    columns = names(by)
    lines = [
        f"| {RECIPE} on | {' | '.join(map(markdown, columns))} |",
        f"|---|{'---:|' * len(columns)}",
        row("rootsift", scores(handcrafted.rootsift(), by).values()),
        *table(found),
    ]
    (given.out / "table.md").write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main()
