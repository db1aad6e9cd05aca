"""A stand-in for HPatches: as many sequences, strips and patches, in the official layout.

    python -m benchmarks.full_size.hpatches --out DIR [--share 1/16] [--seed 0]

Sequence `i_made-ajuntament` has as many patches as the official `i_ajuntament`, and so on. The
split "a" has the same 40 sequences to test and 76 to train, "full" has all. A share takes some of
the sequences of each part. Patches are cut from random images; the strips of a sequence show the
same points, moved and with other light, more from easy to tough. As task files are missing, the
harness makes them.

Nothing can take it for the official set: no sequence has an official name, and dataset.json names
it "hpatches-built-stand-in".
"""

import zlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from benchmarks.full_size.place import place, run
from benchmarks.full_size.textures import SIDE as IMAGE
from benchmarks.full_size.textures import cut, texture
from benchmarks.full_size.textures import strip as strip_of
from benchmarks.hpatches_scoring import SPLIT_A
from harness import parallel
from harness.files import atomic
from protocols.hpatches.reader import OFFICIAL, SIDE, STRIPS

NAME = "hpatches-built-stand-in"
VERSION = 1  # raised whenever the same seed gives other patches
MOVES = {"r": 0, "e": 2, "h": 5, "t": 10}  # largest shift of a patch, pixels, by kind of strip
PIXEL = 0.56  # bytes of a PNG for each pixel, at most


def lengths(share: float = 1.0) -> tuple[dict[str, int], dict[str, Sequence[str]]]:
    """The patches in a strip of each sequence of a share; test and train part of split "a"."""
    official = {name: low for name, (low, _) in OFFICIAL["lengths"].items()}
    tested = SPLIT_A.split()
    parts = {"test": tested, "train": sorted(official.keys() - set(tested))}
    chosen = {part: _some(names, official, share) for part, names in parts.items()}
    return (
        {_made(name): official[name] for names in chosen.values() for name in names},
        {part: [_made(name) for name in names] for part, names in chosen.items()},
    )


def _some(names: Sequence[str], length: Mapping[str, int], share: float) -> list[str]:
    """A share of the sequences, in order; every kind of length has its share."""
    if share == 1:
        return list(names)
    count = max(2, round(share * len(names)))  # retrieval takes distractors of another sequence
    ranked = sorted(names, key=lambda name: (length[name], name))
    at = ((np.arange(count) + 0.5) * len(ranked) / count).astype(int)
    kept = {ranked[i] for i in at}
    return [name for name in names if name in kept]


def _made(official: str) -> str:
    kind, _, name = official.partition("_")
    return f"{kind}_made-{name}"


def bytes_needed(share: float) -> int:
    """Bytes on the disk, at most."""
    patches = len(STRIPS) * sum(lengths(share)[0].values())
    return round(PIXEL * patches * SIDE**2)


def make(out: Path, *, share: float = 1.0, seed: int = 0) -> None:
    """Make a share of the stand-in in a new folder; see `place`. The same seed, the same patches.

    A strip of each core is in memory at a time. A stopped run continues at the next sequence.
    """
    length, split = lengths(share)

    def fill(folder: Path) -> None:
        for name, n in length.items():
            if not (folder / "patches" / name).is_dir():
                with atomic.placing(folder / "patches" / name) as unfinished:
                    _write_sequence(unfinished, name, n, seed)
        splits = {
            "a": {"name": "a", **split},
            "full": {"name": "full", "test": sorted(length)},
        }
        atomic.write_json(folder / "tasks" / "splits.json", splits)
        about = {"name": NAME, "stand_in_for": "hpatches", "share": share, "seed": seed}
        atomic.write_json(folder / "dataset.json", about)

    request = {"version": VERSION, "share": share, "seed": seed}
    place(out, {"stand_in": NAME, **request}, bytes_needed(share), fill)


def _write_sequence(folder: Path, name: str, n: int, seed: int) -> None:
    rng = np.random.default_rng((seed, zlib.crc32(name.encode())))
    image = texture(rng)
    most = max(MOVES.values())
    place_of = rng.integers(most, IMAGE - SIDE - most, (2, n))

    def write(strip: str) -> None:
        of_strip = np.random.default_rng((seed, zlib.crc32(f"{name}/{strip}".encode())))
        move = MOVES[strip[0]]
        x, y = place_of + of_strip.integers(-move, move + 1, (2, n))
        gain, offset = of_strip.uniform(0.7, 1.2), of_strip.uniform(-20, 20)
        light = np.clip(np.arange(256) * gain + offset, 0, 255).astype(np.uint8)
        patches = light[cut(image, x, y, SIDE)]
        with atomic.writing(folder / f"{strip}.png") as stream:
            stream.write(strip_of(patches))

    with ThreadPoolExecutor(parallel.CORES) as pool:
        list(pool.map(write, STRIPS))


def _holds(share: float) -> str:
    length, _ = lengths(share)
    return f"{len(length)} sequences, {len(STRIPS) * sum(length.values()):,} patches"


if __name__ == "__main__":
    run(__doc__, _holds, bytes_needed, make)
