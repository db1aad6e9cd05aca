"""The data set `hpatches-sequences-sample`: small, in HPatches' layout, of scikit-image's photos.

Views and lights are those of `hpatches-sample`, and the set too is the same on every machine. Its
keypoints are detected when it is opened. It is for first trials and for end-to-end tests; its
scores are not those of HPatches and appear in no table with them.
"""

import json
from pathlib import Path

from harness.files import atomic
from protocols.hpatches.sample import write_sequences
from protocols.samples import kept, photograph

VERSION = 1  # raised with SHA256
SHA256 = "deb580990e7cda681008b002faebc5e49624fc0cb75340f07539ef26528786c9"
"""Hash of the whole set; see `cache.fingerprint`."""

NAME = "hpatches-sequences-sample"
SEQUENCES = {
    "i_brick": "brick.png",
    "i_camera": "camera.png",
    "i_coins": "coins.png",
    "v_astronaut": "astronaut.png",
    "v_chelsea": "chelsea.png",
    "v_coffee": "coffee.png",
}
"""Photographs in the public domain or under CC0, all PNG: decoders agree on every pixel."""

PART = slice(60, 240), slice(120, 320)  # rows and columns used of a photograph, to save time


def sample() -> Path:
    """The folder of the set; it is made on first use, in some seconds, and kept in the cache.

    If its files have changed, it is made again.

    Raises:
        ComputeError: if the set made on this machine has another hash.
    """
    return kept(NAME, VERSION, make, SHA256)


def make(folder: Path) -> None:
    """Write the set into a folder."""
    photographs = {name: photograph(file, NAME)[PART] for name, file in SEQUENCES.items()}
    write_sequences(folder, photographs, image="{k}.png", homography="H_1_{k}")
    about = {"name": NAME, "version": VERSION, "photographs": SEQUENCES}
    atomic.write_text(folder / "dataset.json", json.dumps(about, indent=1) + "\n")
