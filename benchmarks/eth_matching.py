"""Time and memory of matching the pairs of a scene, beside plain NumPy.

    python -m benchmarks.eth_matching [--images N] [--keypoints N] [--plain PAIRS]

Eleven images of 10,000 keypoints make 55 pairs, as Fountain-P11. Vectors are made: 128 numbers with
the variances that SIFT has along its axes, and half of an image's points seen in the next, less
farther on. Plain NumPy holds all distances of a pair (float32, one product, its own threads), and
searches them both ways; a few pairs are timed and scaled up. Both give the same matches.
"""

import argparse
import resource
import time
from collections.abc import Iterator
from itertools import islice

import numpy as np

from harness import parallel
from harness.distances import L2
from harness.records import markdown_table
from protocols.eth.matching import RATIO, axes, match

DIM = 128


def image_after_image(keypoints: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Yields the vectors of one image after another, made at random, without end."""
    k = np.arange(DIM)
    spread = np.sqrt(0.8 * np.exp(-k / 12) / 12 + 0.2 * np.exp(-k / 45) / 45)
    turn = np.linalg.qr(rng.normal(size=(DIM, DIM)))[0]
    points = rng.normal(size=(keypoints, DIM)) * spread
    while True:
        new = rng.random(keypoints) < 0.5
        points[new] = rng.normal(size=(np.count_nonzero(new), DIM)) * spread
        noisy = points + 0.4 * spread * rng.normal(size=points.shape)
        yield (noisy[rng.permutation(keypoints)] @ turn + 1).astype(np.float32)


def plain(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Matches of two images, by plain NumPy."""
    squares = (a * a).sum(1)[:, None] - 2 * (a @ b.T) + (b * b).sum(1)
    rows = np.arange(len(a))
    nearest, back = squares.argmin(axis=1), squares.argmin(axis=0)
    first = squares[rows, nearest]
    squares[rows, nearest] = np.inf
    second = squares.min(axis=1)
    near = np.sqrt(np.maximum(first, 0)) <= RATIO * np.sqrt(np.maximum(second, 0))
    kept = near & (back[nearest] == rows)
    return np.stack([rows[kept], nearest[kept]], axis=1)


def main() -> None:
    """Match by both, print times and differences."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=11)
    parser.add_argument("--keypoints", type=int, default=10_000)
    parser.add_argument("--plain", type=int, default=3, help="pairs that plain NumPy matches")
    given = parser.parse_args()
    made = image_after_image(given.keypoints, np.random.default_rng(0))
    images = list(islice(made, given.images))
    pairs = [(i, j) for i in range(given.images) for j in range(i + 1, given.images)]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = time.perf_counter()
    by = axes(images, L2)
    found = parallel.each(lambda pair: match(images[pair[0]], images[pair[1]], by), pairs)
    ours = time.perf_counter() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    some = pairs[:: max(1, len(pairs) // given.plain)][: given.plain]
    begun = time.perf_counter()
    expected = [plain(images[i], images[j]) for i, j in some]
    theirs = (time.perf_counter() - begun) * len(pairs) / len(some)
    own = dict(zip(pairs, found, strict=True))
    differing = sum(
        len(set(map(tuple, own[pair].tolist())) ^ set(map(tuple, there.tolist())))
        for pair, there in zip(some, expected, strict=True)
    )
    columns = (f"{len(pairs)} pairs of {given.keypoints} keypoints", "s", "pairs a second")
    rows = (
        (name, f"{taken:.1f}", f"{len(pairs) / taken:.2f}")
        for name, taken in (("ours", ours), ("plain NumPy", theirs))
    )
    print("\n".join(markdown_table.lines(columns, rows)))
    print(f"\nratio {theirs / ours:.1f}; {sum(map(len, found))} matches, {differing} of")
    print(f"{sum(map(len, expected))} differ from plain NumPy's, whose float32 rounds")
    print(f"memory above the vectors {peak / 1024:.0f} MiB on {parallel.CORES} cores")


if __name__ == "__main__":
    main()
