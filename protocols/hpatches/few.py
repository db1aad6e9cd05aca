"""The data set `hpatches-built-few`: the first patches of four sequences of `hpatches-sample`.

It is for tests that run every part of a long work once: a network describes its patches in a
moment. Its scores mean nothing.
"""

from pathlib import Path

from harness.files import atomic, texts
from protocols.hpatches import sample, strips, tasks
from protocols.hpatches.reader import SIDE, STRIPS
from protocols.imaging.png import encode
from protocols.samples import kept

NAME = "hpatches-built-few"
VERSION = 1  # raised with SHA256
SHA256 = "f4ab7f83c202284f87c06d0ba7314f2e2cf0451490352aab352e18cfcd84ba5e"
"""Hash of the whole set; see `cache.fingerprint`."""

PATCHES = 24  # of a strip
TEST = ("i_camera", "v_astronaut", "v_coffee")  # three, so that means have intervals
TRAIN = ("i_grass", "v_chelsea")


def few() -> Path:
    """The folder of the set; it is made on first use and kept in the cache.

    Raises:
        ComputeError: if the set made on this machine has another hash.
    """
    return kept(NAME, VERSION, make, SHA256)


def make(folder: Path) -> None:
    """Write the set into a folder."""
    whole = sample.sample()
    for sequence in (*TEST, *TRAIN):
        for strip in STRIPS:
            patches = strips.read(strips.check(whole / "patches" / sequence / f"{strip}.png"))
            with atomic.writing(folder / "patches" / sequence / f"{strip}.png") as stream:
                stream.write(encode(patches[:PATCHES].reshape(-1, SIDE), compress=False))
    splits = {"few": {"name": "few", "test": sorted(TEST), "train": sorted(TRAIN)}}
    atomic.write_json(folder / "tasks" / "splits.json", splits)
    about = texts.read_json(whole / "dataset.json")["sequences"]
    told = {name: {"photograph": about[name]["photograph"]} for name in sorted((*TEST, *TRAIN))}
    atomic.write_json(folder / "dataset.json", {"name": NAME, "sequences": told})
    tasks.make(folder)
