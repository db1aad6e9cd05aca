"""The set `oxford-sample`: small, in the layout of Oxford's, made from photographs at hand.

Views and lights are those of `hpatches-sample`, and like it the set is the same on every machine;
its regions are found where it is opened. It is for trying things out and for tests of the whole;
its scores are not those of Oxford's sequences and enter no table beside them.
"""

import json
from pathlib import Path

from harness.files import atomic
from protocols.hpatches.sample import sequence
from protocols.imaging.png import encode
from protocols.samples import kept, photograph

VERSION = 1  # raised with SHA256
SHA256 = "5ab19b0878ef746e3dd2b9afbdd9c03330de63ecf983cad93829a108c10093d5"
"""Of the whole set; see `cache.fingerprint`."""

NAME = "oxford-sample"
SEQUENCES = {"i_camera": "camera.png", "v_astronaut": "astronaut.png"}
"""Photographs in the public domain or under CC0, all PNG: decoders agree on every pixel."""

PART = slice(140, 300), slice(160, 320)  # rows and columns of a photograph: less is done sooner


def sample() -> Path:
    """The folder of the set; it is made on first use, in some seconds, and kept in the cache.

    Where its files are not as they were made, it is made again.

    Raises:
        RuntimeError: if this machine makes another set than it should.
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
