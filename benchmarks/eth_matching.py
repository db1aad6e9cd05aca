"""Time and memory of matching the pairs of a scene, beside plain NumPy.

    python -m benchmarks.eth_matching [--images N] [--keypoints N] [--plain PAIRS]

Eleven images of 10,000 keypoints make 55 pairs, as Fountain-P11. Vectors are made: 128 numbers with
the variances that SIFT has along its axes, and half of an image's points seen in the next, less
farther on. Plain NumPy holds all distances of a pair (float32, one product, its own threads), and
searches them both ways; a few pairs are timed and scaled up. Both give the same matches.
"""

import argparse
import math
import resource
import time
from collections.abc import Iterator
from itertools import combinations, islice

import numpy as np

from benchmarks.comparison import Comparison
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


def compared(images: int, keypoints: int, plain_pairs: int) -> tuple[Comparison, float]:
    """All pairs matched by both, plain NumPy on a few pairs; and MiB of ours above the vectors."""
    made = image_after_image(keypoints, np.random.default_rng(0))
    vectors = list(islice(made, images))
    pairs = list(combinations(range(images), 2))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = time.perf_counter()
    by = axes(vectors, L2)
    found = parallel.each(lambda pair: match(vectors[pair[0]], vectors[pair[1]], by), pairs)
    ours = time.perf_counter() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    some = pairs[:: max(1, len(pairs) // plain_pairs)][:plain_pairs]
    begun = time.perf_counter()
    expected = [plain(vectors[i], vectors[j]) for i, j in some]
    theirs = (time.perf_counter() - begun) * len(pairs) / len(some)
    own = dict(zip(pairs, found, strict=True))
    differing = sum(
        len(set(map(tuple, own[pair].tolist())) ^ set(map(tuple, there.tolist())))
        for pair, there in zip(some, expected, strict=True)
    )
    results = f"{differing} of {sum(map(len, expected)):,} matches differ: float32 rounds"
    task = f"ETH, {len(pairs)} pairs of {keypoints:,} keypoints"
    return Comparison(task, ours, "plain NumPy", theirs, results), peak / 1024


def comparisons(quick: bool) -> Iterator[Comparison]:
    """Yields the rows of `python -m benchmarks`."""
    yield compared(*((3, 500, 1) if quick else (11, 10_000, 3)))[0]


def main() -> None:
    """Match by both, print times and differences."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=11)
    parser.add_argument("--keypoints", type=int, default=10_000)
    parser.add_argument("--plain", type=int, default=3, help="pairs that plain NumPy matches")
    given = parser.parse_args()
    row, peak = compared(given.images, given.keypoints, given.plain)
    count = math.comb(given.images, 2)
    rows = (
        (name, f"{taken:.1f}", f"{count / taken:.2f}")
        for name, taken in (("ours", row.ours_s), (row.reference, row.reference_s))
    )
    print("\n".join(markdown_table.lines((row.task, "s", "pairs a second"), rows)))
    print(f"\nratio {row.ratio:.1f}; {row.results}")
    print(f"memory above the vectors {peak:.0f} MiB on {parallel.CORES} cores")


if __name__ == "__main__":
    main()
