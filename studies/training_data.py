"""Compare training data: change one thing at a time, train for a short time, and test.

    python -m studies.training_data --images DIR --photographs DIR --held-out DIR,DIR
        --oxford DIR --frames DIR --mini DIR --out DIR [ROW ...]

HardNet learns from patches under random homographies and light (`harness data build homography`),
from regions that a detector finds in views of images (`views`), from scenes built from photographs,
and from all of these. The part of a row's name after the comma says how it differs from the row
without a comma. In such rows of views, the detector finds other points, and more or fewer of them.
The settings are those of `studies.zoo_training`.

Data may be chosen by the first tests: sequences of photographs that are in no training set
(`studies.held_out_sequences`; they are made in the same way as views, and rows that learn from the
place that they show have an advantage). Data may not be chosen by the other tests: Oxford with the
regions of a folder, and a set in HPatches' form.

Rows that differ only in the seed show how large a difference must be to matter: their pooled
standard deviation is the last row. A score in italics differs from the mean of the seeds by more
than a new seed would in 19 of 20 cases (Student's t). Of the scores in bold, 19 in 20 differ for
another reason than chance (Benjamini and Hochberg). Sets and trainings that exist already are used
again. The table is written to OUT/table.md.
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
from harness.records import markdown_table
from harness.types import Descriptor, Protocol
from protocols.builders.homography.build import build as build_homography
from protocols.builders.homography.strengths import DEFAULT as STRENGTHS
from protocols.builders.views.build import build as build_views
from protocols.builders.views.camera import DEFAULT as CAMERAS
from protocols.oxford.reader import SIX
from studies.short_training import is_trained, trained_or_resumed
from studies.zoo_training import OPTIONS, settings
from zoo.handcrafted import sift
from zoo.training.recipe import read

RECIPE = "hardnet"
NEAR = ("images", "share")  # options that make negatives come from few images
BUILDERS: dict[str, tuple[Any, Any, str]] = {
    "homography": (build_homography, STRENGTHS, "strengths"),
    "views": (build_views, CAMERAS, "cameras"),
}
FEATURES = 1000  # tested regions of an image: few, because the table has many rows


@dataclass(frozen=True)
class Data:
    """The training data of a row; options replace the defaults of the builders."""

    homography: Mapping[str, float] | None = None
    views: Mapping[str, float] | None = None
    photographs: bool = False
    near: bool = True  # whether negatives come from few images
    seed: int = 0


def drawn(**options: float) -> Data:
    """Data of homographies only; the options are added to turns of 5 degrees."""
    return Data(homography={"turn": 5.0, **options})


def seen(**options: float) -> Data:
    """Data of views only."""
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
    """Folders of the sets; a set that does not exist is built."""
    sets = [given.photographs] * data.photographs
    for form, options in (("homography", data.homography), ("views", data.views)):
        if options is None:
            continue
        name = "-".join([form, *(f"{key}_{value:g}" for key, value in options.items())])
        folder = given.out / "sets" / name
        if not folder.is_dir():
            _build(form, dict(options), folder, given)
        sets.append(folder)
    return sets


def _build(form: str, options: dict[str, float], out: Path, given: argparse.Namespace) -> None:
    build, default, strengths = BUILDERS[form]
    wide = {key: options.pop(key) for key in ("magnification",) if key in options}
    strength = {strengths: replace(default, **options)}
    build(given.images, out, points=given.points, **wide, **strength)


def trained(name: str, data: Data, given: argparse.Namespace) -> Path:
    """Train a row, or continue its training; returns the folder of the training."""
    out = given.out / re.sub(r"\W+", "-", name)
    options = {k: v for k, v in OPTIONS.items() if data.near or k not in NEAR}
    changes = settings(read(RECIPE), given.patches, data.seed, options)
    if not is_trained(RECIPE, out, changes):  # a finished training no longer needs its data
        trained_or_resumed(RECIPE, out, [*map(str, folders(data, given))], changes)
    return out


def tests(given: argparse.Namespace) -> list[Protocol]:
    """The tests: held-out sequences, Oxford on given regions, a set in HPatches' form.

    Raises:
        ValueError: if two tests have the same name; the table could show only one of them.
    """
    few = {"features": FEATURES}
    asked: list[tuple[str, dict[str, Any]]] = [
        *(("oxford", {"data": Path(folder), **few}) for folder in given.held_out.split(",")),
        ("oxford", {"data": given.oxford, "frames": given.frames, **few}),
        ("hpatches/matching", {"data": given.mini}),
    ]
    by = [load_protocols(name, options)[0] for name, options in asked]
    if len(set(names(by))) < len(names(by)):
        raise ValueError(f"two tests have the same name: {', '.join(names(by))}; rename a folder")
    return by


def names(by: Sequence[Protocol]) -> list[str]:
    """Names of the scores: held-out sequences, Oxford, its six sequences, the HPatches-like set."""
    held_out = [test.dataset.name.removeprefix("oxford-") for test in by[:-2]]
    return [*held_out, "Oxford", *SIX, by[-1].dataset.name]


def scores(model: Descriptor, by: Sequence[Protocol]) -> dict[str, float]:
    """Matching mAP in points, by the names of `names`."""
    records = [next(evaluate(model, [protocol])) for protocol in by]
    *heads, mini = (record.scores[record.protocol.headline] for record in records)
    of_six = [records[-2].scores[f"{sequence}/map"] for sequence in SIX]
    return dict(zip(names(by), [100 * value for value in (*heads, *of_six, mini)], strict=True))


def story(model: Path, by: Sequence[Protocol]) -> str:
    """Sha256 of a model's file and the tests; if it is the same, the scores are the same."""
    facts = [hashlib.sha256(model.read_bytes()).hexdigest(), *names(by)]
    facts += [f"{test.name} {test.version} {test.dataset.sha256}" for test in by]
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()


def scored(
    out: Path,
    by: Sequence[Protocol],
    file: str = "scores.json",
    measure: Callable[[Descriptor, Sequence[Protocol]], dict[str, float]] = scores,
) -> dict[str, float]:
    """Scores of the model in a folder; reused from a file there if the story is the same."""
    model = out / "model.onnx"
    wanted = story(model, by)
    kept = json.loads((out / file).read_text("utf-8")) if (out / file).is_file() else {}
    if kept.get("story") != wanted:
        opened = onnx_file.open_model(model, device="cpu")
        kept = {"story": wanted, "scores": measure(opened, by)}
        atomic.write_text(out / file, json.dumps(kept))
    points: dict[str, float] = kept["scores"]
    return points


def groups(of_rows: Mapping[str, Mapping[str, float]]) -> dict[str, np.ndarray]:
    """Scores (seeds, columns) of rows that differ only in the seed, by the first row's name."""
    seeds: dict[str, list[list[float]]] = {}
    for name, points in of_rows.items():
        seeds.setdefault(name.partition(", seed")[0], []).append([*points.values()])
    return {name: np.array(values) for name, values in seeds.items()}


def pooled(seeds: Mapping[str, np.ndarray]) -> tuple[np.ndarray, int]:
    """Standard deviation over seeds by column (NaN if unknown), and its degrees of freedom."""
    degrees = sum(len(values) - 1 for values in seeds.values())
    squares = sum(((values - values.mean(axis=0)) ** 2).sum(axis=0) for values in seeds.values())
    return np.sqrt(squares / (degrees or math.nan)), degrees


def table(of_rows: Mapping[str, Mapping[str, float]]) -> list[list[str]]:
    """Rows of cells; a score is marked if the change matters more than the seed."""
    seeds = groups(of_rows)
    deviation, degrees = pooled(seeds)
    chances = {}  # probability of a difference this large or larger, if only the seed changes
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
    rows = [row(name, p.values(), marks.get(name, repeat(0))) for name, p in of_rows.items()]
    return rows + [row("deviation over seeds", deviation)] * (degrees > 0)


def row(name: str, values: Iterable[float], stars: Iterable[int] = repeat(0)) -> list[str]:
    """Cells of a row of the table; stars on both sides of a value are its mark."""
    cells = (f"{'*' * n}{value:.1f}{'*' * n}" for value, n in zip(values, stars, strict=False))
    return [markdown(name), *cells]


def main() -> None:
    """Train and test all rows, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", nargs="*", default=[*ROWS])
    parser.add_argument("--held-out", required=True)
    for folder in ("images", "photographs", "oxford", "frames", "mini", "out"):
        parser.add_argument(f"--{folder}", required=True, type=Path)
    parser.add_argument("--points", type=int, default=40, help="points of each image")
    parser.add_argument("--patches", type=int, default=100_000, help="patches of each training")
    given = parser.parse_args()
    if unknown := [name for name in given.rows if name not in ROWS]:
        parser.error(f"no row is named {', '.join(unknown)}; rows are: {'; '.join(ROWS)}")
    by = tests(given)
    of_rows: dict[str, dict[str, float]] = {}
    for name in given.rows:
        of_rows[name] = scored(trained(name, ROWS[name], given), by)
        print(name, of_rows[name], flush=True)
    columns = [f"{RECIPE} on", *map(markdown, names(by))]
    rows = [row("rootsift", scores(sift.rootsift(), by).values()), *table(of_rows)]
    text = "\n".join(markdown_table.lines(columns, rows))
    atomic.write_text(given.out / "table.md", f"{text}\n")


if __name__ == "__main__":
    main()
