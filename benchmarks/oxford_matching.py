"""Time and memory of scoring one pair of images of Oxford, vectors in memory.

    python -m benchmarks.oxford_matching [--regions 3000 5000]

Made-up regions and vectors of 128 numbers; of the regions of image 2, half are those of image 1,
almost. Beside it, in the same run, what VLB does: every pair of vectors in one sorted list, walked
through. Both must find the same matches. Seconds of one core; the truth is made once for all
models.
"""

import argparse
import resource
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.comparison import Comparison
from harness.distances import L2
from harness.records import markdown_table
from protocols.imaging.affine import AffineFrames
from protocols.oxford.matching import greedy
from protocols.oxford.protocol import pair_scores
from protocols.oxford.raster import raster_overlap
from protocols.oxford.truth import correspondences

HEIGHT, WIDTH, DIM = 640, 800, 128
COLUMNS = (
    "regions", "truth, s", "matching and scores, s", "peak so far, GiB", "sorting all, s",
)  # fmt: skip

T = TypeVar("T")


def made(n: int) -> tuple[AffineFrames, AffineFrames, np.ndarray, np.ndarray]:
    """Regions of two images, and the vectors of both."""
    rng = np.random.default_rng(0)
    x, y = rng.uniform(0, WIDTH, n), rng.uniform(0, HEIGHT, n)
    matrix = (np.eye(2) + rng.normal(0, 0.3, (n, 2, 2))) * rng.uniform(1, 2, (n, 1, 1)) ** 3
    a = AffineFrames(x, y, matrix, np.zeros(n))
    same = np.arange(n) < n // 2
    x = np.where(same, x + rng.normal(0, 0.7, n), rng.permutation(x))
    y = np.where(same, y + rng.normal(0, 0.7, n), rng.permutation(y))
    b = AffineFrames(x, y, matrix + rng.normal(0, 0.1, (n, 2, 2)), np.zeros(n))
    vectors = rng.normal(size=(n, DIM))
    others = np.where(same[:, None], vectors, rng.normal(size=(n, DIM)))
    others += rng.normal(size=(n, DIM)) * rng.uniform(0.5, 2, (n, 1))
    order = rng.permutation(n)
    unit = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in (vectors, others[order]))
    return a, b.take(order), *(v.astype(np.float32) for v in unit)


def by_sorting(a: np.ndarray, b: np.ndarray) -> list[tuple[int, int]]:
    """Matches, one to one, nearest first, by one sorted list of all pairs."""
    rows, columns = (index.ravel() for index in np.indices((len(a), len(b))))
    measured = L2.paired(np.concatenate([a, b]), rows, len(a) + columns)
    order = np.argsort(measured, kind="stable")
    rows, columns = rows[order], columns[order]
    free_row, free_column, taken = [True] * len(a), [True] * len(b), []
    for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
        if free_row[row] and free_column[column]:
            free_row[row] = free_column[column] = False
            taken.append((row, column))
            if len(taken) == min(len(a), len(b)):
                break
    return taken


def timed(run: Callable[[], T], runs: int = 1) -> tuple[float, T]:
    """Seconds of one core in the fastest run, and the result."""
    best = np.inf
    for _ in range(runs):
        start = time.process_time()
        found = run()
        best = min(best, time.process_time() - start)
    return best, found


def comparisons(quick: bool) -> Iterator[Comparison]:
    """Yields the rows of `python -m benchmarks`."""
    n = 300 if quick else 5000
    with threadpool_limits(1):
        _, _, a, b = made(n)
        ours_s, found = timed(partial(greedy, L2, a, b), 1 if quick else 3)
        sort_s, wanted = timed(partial(by_sorting, a, b))
    same = set(zip(found.a.tolist(), found.b.tolist(), strict=True)) == set(wanted)
    results = "same matches" if same else "other matches"
    task = f"Oxford, matching {n:,} regions of two images"
    yield Comparison(task, ours_s, "one sorted list of all pairs, as VLB", sort_s, results)


def peak() -> float:
    """Peak memory so far, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def main() -> None:
    """Time both, print a row for each number of regions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--regions", type=int, nargs="+", default=[3000, 4000, 5000])
    parser.add_argument("--runs", type=int, default=5, help="of ours; the best is taken")
    options = parser.parse_args()
    ours = []
    for n in options.regions:
        regions_a, regions_b, a, b = made(n)
        truth_s, truth = timed(
            partial(correspondences, regions_a, regions_b, np.eye(3), raster_overlap), options.runs
        )
        scores_s, _ = timed(partial(pair_scores, L2, a, b, truth, "greedy"), options.runs)
        matches = greedy(L2, a, b)
        pairs = set(zip(matches.a.tolist(), matches.b.tolist(), strict=True))
        ours.append((truth_s, scores_s, peak(), pairs))

    def rows() -> Iterator[tuple[object, ...]]:
        for n, (truth_s, scores_s, memory, pairs) in zip(options.regions, ours, strict=True):
            sort_s, wanted = timed(partial(by_sorting, *made(n)[2:]))
            assert pairs == set(wanted)
            yield n, f"{truth_s:.2f}", f"{scores_s:.2f}", f"{memory:.2f}", f"{sort_s:.1f}"

    for line in markdown_table.lines(COLUMNS, rows(), "r"):
        print(line, flush=True)
    print(f"\npeak memory with all pairs sorted: {peak():.2f} GiB")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
