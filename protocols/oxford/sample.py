"""The data set `oxford-sample`: small, in Oxford's layout, made from scikit-image's photographs.

Views and lights are those of `hpatches-sample`, and the set too is the same on every machine. Its
regions are detected when it is opened. It is for first trials and for end-to-end tests; its scores
are not those of Oxford's sequences and appear in no table with them.
"""

import json
from pathlib import Path

from harness.files import atomic
from protocols.hpatches.sample import write_sequences
from protocols.samples import kept, photograph

VERSION = 1  # raised with SHA256
SHA256 = "5ab19b0878ef746e3dd2b9afbdd9c03330de63ecf983cad93829a108c10093d5"
"""Hash of the whole set; see `cache.fingerprint`."""

NAME = "oxford-sample"
SEQUENCES = {"i_camera": "camera.png", "v_astronaut": "astronaut.png"}
"""Photographs in the public domain or under CC0, all PNG: decoders agree on every pixel."""

PART = slice(140, 300), slice(160, 320)  # rows and columns used of a photograph, to save time


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
    write_sequences(folder, photographs, image="img{k}.png", homography="H1to{k}p")
    about = {"name": NAME, "version": VERSION, "photographs": SEQUENCES}
    atomic.write_text(folder / "dataset.json", json.dumps(about, indent=1) + "\n")
