"""Golden values: vectors of each model's revision and scores of each protocol's version.

    python tests/support/golden_values.py

writes missing files below `tests/support/golden` and removes files of older revisions. It never
overwrites a file: changed numbers need a new revision (`Descriptor.revision`) or version
(`Protocol.version`), which is part of the file name.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np

from harness import plugins, registry
from harness.data.weights import NotHere
from harness.evaluation import evaluate
from harness.types import Descriptor, Patches, Protocol, Vectors

FOLDER = Path(__file__).with_name("golden")
PATCHES = FOLDER / "patches.png"  # a strip like those of HPatches: 65 pixels wide, 32 patches high
SIDE = 65
JUDGED = "rootsift"  # its vectors are roots of integers, equal on every machine


def patches() -> Patches:
    """20 patches of a photograph, 4 of noise, 4 of edges, 4 flat; uint8 [32, 65, 65]."""
    strip = cv2.imread(str(PATCHES), cv2.IMREAD_GRAYSCALE)
    assert strip is not None, f"{PATCHES} is missing"
    return strip.reshape(-1, SIDE, SIDE)


def models() -> list[str]:
    """The descriptors of this distribution."""
    return [name for name in registry.names("descriptors") if _is_ours("descriptors", name)]


def protocols() -> list[tuple[str, dict[str, str]]]:
    """The protocols of this distribution, and options that define other scores."""
    ours = [name for name in registry.names("protocols") if _is_ours("protocols", name)]
    return [*((name, {}) for name in ours), ("romepatches", {"ap": "step"})]


def model(name: str) -> Descriptor | None:
    """The model of this name; None if its published weights are not on this machine."""
    try:
        made = plugins.model(name)
    except (NotHere, RuntimeError) as error:
        if isinstance(error, NotHere) or isinstance(error.__cause__, NotHere):
            return None
        raise
    assert isinstance(made, Descriptor)
    return made


def vectors(made: Descriptor) -> Vectors:
    """The vectors of the golden patches."""
    return made.describe(patches())


def vectors_file(made: Descriptor) -> Path:
    """The file of golden vectors of a model's revision."""
    return FOLDER / "vectors" / f"{made.name}.revision{made.revision}.npy"


def sample_protocol(name: str, options: dict[str, str]) -> Protocol:
    """A protocol on its sample, made from photographs that are always there."""
    made: Protocol = registry.load("protocols", name)(**options)
    return made


def scores(made: Protocol) -> dict[str, float]:
    """All scores and ends of intervals of the descriptor JUDGED."""
    judged = plugins.model(JUDGED)
    (record,) = evaluate(judged, [made])
    values = dict(record.scores)
    for name, (low, high) in record.intervals.items():
        values |= {f"{name} low": low, f"{name} high": high}
    return values


def scores_file(made: Protocol) -> Path:
    """Where the golden scores of a protocol's version are."""
    name = ",".join([made.name.replace("/", "_"), *(f"{k}={v}" for k, v in made.options.items())])
    return FOLDER / "scores" / f"{name}.version{made.version}.json"


def _is_ours(kind: str, name: str) -> bool:
    return registry.source(kind, name).startswith("descriptor-harness ")


def _write_missing() -> Iterator[Path]:
    for name in models():
        made = model(name)
        if made is None:
            print(f"{name}: its weights are not here")
        elif not vectors_file(made).is_file():
            _without_older(vectors_file(made))
            np.save(vectors_file(made), vectors(made))
            yield vectors_file(made)
    for name, options in protocols():
        protocol = sample_protocol(name, options)
        if not scores_file(protocol).is_file():
            _without_older(scores_file(protocol))
            text = json.dumps(scores(protocol), indent=1, sort_keys=True) + "\n"
            scores_file(protocol).write_text(text)
            yield scores_file(protocol)


def _without_older(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    name = file.name.rpartition(".revision")[0] or file.name.rpartition(".version")[0]
    for older in file.parent.iterdir():
        if older.name.startswith((f"{name}.revision", f"{name}.version")):
            older.unlink()


if __name__ == "__main__":
    for written in _write_missing():
        print(written)
