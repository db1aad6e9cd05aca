"""What training data are worth: one change at a time, the same short training, what tests say.

    python benchmarks/training_data.py --images DIR --photographs DIR --held-out DIR
        --oxford DIR --frames DIR --mini DIR --out DIR [CHANGE ...]

HardNet learns from homographies of images, in each row without one kind of change, or with
photographs beside them, or with negatives out of few images. It is tested on Oxford with regions
of a folder, on a set in HPatches' form, and on scenes built from photographs that it has not seen:
by these, which are no test images, data may be chosen. Sets and trainings that are there already
are taken as they are. The table stands in OUT/table.md.
"""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from short_training import settings, trained_or_resumed

from harness import onnx_file
from harness.evaluate import evaluate
from harness.session import make_protocols, protocol_names
from protocols.homography.build import build
from protocols.homography.strengths import DEFAULT
from protocols.oxford.reader import SIX
from zoo.training.recipe import read

RECIPE = "hardnet"


@dataclass(frozen=True)
class Change:
    """Of data, or of how batches are drawn from them."""

    strengths: Mapping[str, float] = field(default_factory=dict)
    photographs: bool = False
    homographies: bool = True
    settings: tuple[str, ...] = ()


CHANGES = {
    "all": Change(),
    "no turn": Change({"turn": 0.0}),
    "turn 8": Change({"turn": 8.0}),
    "no scale, stretch, tilt": Change({"scale": 0.0, "stretch": 0.0, "perspective": 0.0}),
    "no shift": Change({"shift": 0.0}),
    "no blur": Change({"blur_share": 0.0, "motion_share": 0.0}),
    "no light": Change({"gamma": 0.0, "contrast": 0.0, "brightness": 0.0, "faint_share": 0.0}),
    "no noise, no JPEG": Change({"noise": 0.0, "jpeg_share": 0.0}),
    "negatives of 6 images": Change(settings=("method.images=6",)),
    "photographs too": Change(photographs=True),
    "photographs only": Change(photographs=True, homographies=False),
}


def trained(name: str, change: Change, given: argparse.Namespace) -> Path:
    """The folder of a training, run or gone on with where it is not done."""
    out = given.out / name.replace(",", "").replace(" ", "-")
    if (out / "model.onnx").is_file():
        return out  # its data need not be here any more
    data = [given.photographs] * change.photographs
    if change.homographies:
        strengths = replace(DEFAULT, **change.strengths)
        own = "-".join(f"{key}_{value:g}" for key, value in change.strengths.items()) or "default"
        homographies = given.out / "sets" / own
        if not homographies.is_dir():
            build(given.images, homographies, points=given.points, strengths=strengths)
        data.append(homographies)
    said = [*settings(read(RECIPE), given.patches), *change.settings]
    trained_or_resumed(RECIPE, out, [*map(str, data)], said)
    return out


def line(name: str, out: Path, given: argparse.Namespace) -> str:
    """A row of the table."""
    model = onnx_file.open_model(out / "model.onnx", device="cpu")
    asked = {
        "oxford": {"data": given.oxford, "frames": given.frames},
        "hpatches/matching": {"data": given.mini},
        "phototour/snn": {"data": given.held_out},
    }
    records = []
    for protocol, options in asked.items():
        (record,) = evaluate(model, make_protocols(protocol_names(protocol), options))
        records.append(record)
    first, *others = [record.scores[record.protocol.headline] for record in records]
    columns = [first, *(records[0].scores[f"{one}/map"] for one in SIX), *others]
    return f"| {name} | {' | '.join(f'{100 * value:.1f}' for value in columns)} |"


def main() -> None:
    """Train, test, write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("changes", nargs="*", default=[*CHANGES])
    for folder in ("images", "photographs", "held-out", "oxford", "frames", "mini", "out"):
        parser.add_argument(f"--{folder}", required=True, type=Path)
    parser.add_argument("--points", type=int, default=60, help="of each image")
    parser.add_argument("--patches", type=int, default=60_000, help="trained on")
    given = parser.parse_args()
    rows = []
    for name in given.changes:
        out = trained(name, CHANGES[name], given)
        file = out / "row.md"
        if not file.is_file():
            file.write_text(line(name, out, given), "utf-8")
        rows.append(file.read_text("utf-8"))
        print(rows[-1], flush=True)
    names = ("Oxford", *SIX, given.mini.name, f"{given.held_out.name} (held out)")
    table = [f"| HardNet trained on | {' | '.join(names)} |", f"|---|{'---:|' * len(names)}", *rows]
    (given.out / "table.md").write_text("\n".join(table) + "\n", "utf-8")


if __name__ == "__main__":
    main()
