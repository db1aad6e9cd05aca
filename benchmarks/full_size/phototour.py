"""A stand-in for a PhotoTour scene: 450,092 patches in 1,759 tiles, with all its text files.

    python -m benchmarks.full_size.phototour --out DIR [--share 1/16] [--seed 0]

The numbers are those of the official liberty: patches, tiles, pairs in the list of 100,000 and in
that of 500,000. Points have 2 to 7 patches each; a reference image has about a thousand patches.
A share has fewer patches, pairs in the same proportion, and images of the same size. The patches of
a point are cut from one place of a random image, a little moved and lighter or darker.

Nothing can take it for an official scene: its scene is called "stand-in", and dataset.json names
it "phototour-stand-in".
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from jaxtyping import Int

from benchmarks.full_size.place import place, run
from benchmarks.full_size.textures import SIDE as IMAGE
from benchmarks.full_size.textures import cut, texture
from harness.files import atomic
from protocols.phototour.scenes import OFFICIAL
from protocols.phototour.writer import HEADER, PIXELS, SIDE, TILE, Patches, fill

NAME, SCENE = "phototour-stand-in", "stand-in"
VERSION = 1  # raised whenever the same seed gives other patches
PATCHES = OFFICIAL["liberty"]
PAIRS = (100_000, 500_000)  # in the list of the papers' tests, and in the one for training
OF_POINT = (2, 7)  # patches of a point
OF_IMAGE = 1000  # patches whose point was found in one reference image
MOVE = 4  # largest shift of a patch, pixels
LINE = 120  # bytes of a patch or a pair in the text files, at most

Rows = Int[np.ndarray, " n"]


def patches_of(share: float) -> int:
    """Patches of a share."""
    return max(2 * TILE, round(share * PATCHES))


def bytes_needed(share: float) -> int:
    """Bytes on the disk, at most."""
    n = patches_of(share)
    tiles = -(-n // TILE)
    return tiles * (HEADER + PIXELS**2) + LINE * (n + sum(round(share * p) for p in PAIRS))


def make(out: Path, *, share: float = 1.0, seed: int = 0) -> None:
    """Make a share of the stand-in in a new folder; see `place`. The same seed, the same patches.

    A tile of patches is in memory at a time.
    """
    n = patches_of(share)
    rng = np.random.default_rng((seed, 1))
    sizes = rng.integers(OF_POINT[0], OF_POINT[1] + 1, n)  # more points than are needed
    point = np.repeat(np.arange(n), sizes)[:n]
    image_of_point = np.cumsum(np.bincount(point)) // OF_IMAGE
    interest = np.column_stack([image_of_point[point], rng.random((n, 4)).round(3)]).astype(float)
    lists = {}
    for pairs in PAIRS:
        some = 2 * max(1, round(share * pairs / 2))
        lists[f"m50_{some}_{some}_0.txt"] = _pairs(point, image_of_point, some, rng)
    about = {"name": NAME, "stand_in_for": "phototour/liberty", "share": share, "seed": seed}

    def write(folder: Path) -> None:
        batches = _patches(point, seed)
        fill(folder / SCENE, batches, point, interest, lists, about=about)
        atomic.write_json(folder / "dataset.json", about)

    request = {"version": VERSION, "share": share, "seed": seed}
    place(out, {"stand_in": NAME, **request}, bytes_needed(share), write)


def _pairs(
    point: Rows, image_of_point: Rows, count: int, rng: np.random.Generator
) -> Int[np.ndarray, "_ 2"]:
    """Half matches, half patches of two points of one reference image, in turn."""
    half = count // 2
    first = np.searchsorted(point, np.arange(int(point[-1]) + 2))  # the first patch of each point
    several = np.flatnonzero(np.diff(first) > 1)
    chosen = rng.choice(several, half)
    a = first[chosen] + rng.integers(0, np.diff(first)[chosen])
    b = first[chosen] + (a - first[chosen] + 1) % np.diff(first)[chosen]
    image = image_of_point[point]
    start, stop = (np.searchsorted(image, image[a], side=side) for side in ("left", "right"))
    other = start + rng.integers(0, stop - start)
    same = np.flatnonzero(point[other] == point[a])
    while same.size:
        other[same] = start[same] + rng.integers(0, (stop - start)[same])
        same = same[point[other[same]] == point[a[same]]]
    rows = np.empty((2 * half, 2), np.int64)
    rows[0::2], rows[1::2] = np.stack([a, b], 1), np.stack([a, other], 1)
    return rows


def _patches(point: Rows, seed: int) -> Iterator[Patches]:
    """Yields the patches, a tile at a time; no two points have the same place in the image."""
    image = texture(np.random.default_rng((seed, 2)))
    for start in range(0, len(point), TILE):
        of_tile = point[start : start + TILE]
        draws = np.random.default_rng((seed, 3, start))
        most = IMAGE - SIDE - 2 * MOVE
        x, y = (of_tile * 7919) % most, (of_tile * 104729) % (most - 1)  # together, no period
        dx, dy = draws.integers(0, 2 * MOVE + 1, (2, len(of_tile)))
        light = draws.uniform(0.7, 1.2, (len(of_tile), 1, 1)).astype(np.float32)
        yield np.clip(cut(image, x + dx, y + dy, SIDE) * light, 0, 255).astype(np.uint8)


def _holds(share: float) -> str:
    return f"{patches_of(share):,} patches"


if __name__ == "__main__":
    run(__doc__, _holds, bytes_needed, make)
