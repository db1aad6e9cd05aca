"""A stand-in for ETH's Madrid Metropolis: keypoints and vectors of 1,344 images, to be matched.

    python -m benchmarks.full_size.madrid --out DIR [--share 1/1024] [--seed 0]

A share is one of the 902,496 pairs of images: a quarter of the pairs takes half of the images. Each
image is a file `NNNN.npz` with the arrays `keypoints` (x, y, scale, angle; float32 [n, 4]) and
`vectors` (float32 [n, 128], as `benchmarks.eth_matching` makes them). There is no photograph, so
what can be measured is matching; the official number of keypoints is not known, and 8,000 is what
a web photograph of 1,600 pixels has.
"""

from collections.abc import Iterator
from math import ceil, sqrt
from pathlib import Path

import numpy as np

from benchmarks.eth_matching import DIM, image_after_image
from benchmarks.full_size.place import place, run
from harness.files import atomic

NAME = "eth-stand-in"
VERSION = 1  # raised whenever the same seed gives other vectors
IMAGES = 1344
KEYPOINTS = 8000
PAIRS = IMAGES * (IMAGES - 1) // 2


def images_of(share: float) -> int:
    """Images of a share of the pairs."""
    return max(2, ceil((1 + sqrt(1 + 8 * share * PAIRS)) / 2 - 1e-9))


def bytes_needed(share: float) -> int:
    """Bytes on the disk, at most."""
    return images_of(share) * (KEYPOINTS * 4 * (DIM + 4) + 4096)


def make(out: Path, *, share: float = 1.0, seed: int = 0, keypoints: int = KEYPOINTS) -> None:
    """Make a share of the stand-in in a new folder; see `place`. The same seed, the same vectors.

    An image is in memory at a time.
    """

    def fill(folder: Path) -> None:
        rng = np.random.default_rng((seed, 4))
        made = image_after_image(keypoints, np.random.default_rng((seed, 5)))
        for number, vectors in zip(range(images_of(share)), made, strict=False):
            places = rng.random((keypoints, 4), np.float32) * [1600, 1200, 20, 6.28]
            with atomic.writing(folder / f"{number:04}.npz") as stream:
                np.savez(stream, keypoints=places.astype(np.float32), vectors=vectors)

    request = {"version": VERSION, "share": share, "seed": seed, "keypoints": keypoints}
    place(out, {"stand_in": NAME, **request}, bytes_needed(share), fill)


def read(folder: Path) -> Iterator[np.ndarray]:
    """Yields the vectors of each image, in order."""
    for file in sorted(folder.glob("*.npz")):
        with np.load(file, allow_pickle=False) as arrays:
            yield arrays["vectors"]


def _holds(share: float) -> str:
    n = images_of(share)
    return f"{n:,} images, {n * (n - 1) // 2:,} pairs"


if __name__ == "__main__":
    run(__doc__, _holds, bytes_needed, make)
