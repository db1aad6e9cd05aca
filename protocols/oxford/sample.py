"""The data set `oxford-sample`: small, in Oxford's layout, made from scikit-image's photographs.

Views and lights are those of `hpatches-sample`, and the set too is the same on every machine. Its
regions are detected when it is opened. It is for first trials and for end-to-end tests; its scores
are not those of Oxford's sequences and appear in no table with them.
"""

import json
from pathlib import Path

from harness.files import atomic
from protocols.hpatches.sample import sequence
from protocols.imaging.png import encode
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
    for name, file in SEQUENCES.items():
        images, from_first = sequence(name, photograph(file, NAME)[PART])
        for k, (image, homography) in enumerate(zip(images, from_first, strict=True), start=1):
            with atomic.writing(folder / name / f"img{k}.png") as stream:
                stream.write(encode(image, compress=False))
            if k > 1:
                rows = (" ".join(map(repr, row)) for row in homography.tolist())
                atomic.write_text(folder / name / f"H1to{k}p", "\n".join(rows) + "\n")
    about = {"name": NAME, "version": VERSION, "photographs": SEQUENCES}
    atomic.write_text(folder / "dataset.json", json.dumps(about, indent=1) + "\n")
