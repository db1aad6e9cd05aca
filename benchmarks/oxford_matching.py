"""Time and memory of scoring one pair of images of Oxford, vectors in memory.

    python benchmarks/oxford_matching.py [--regions 3000 5000]

Made-up regions and vectors of 128 numbers; of the regions of image 2, half are those of image 1,
almost. Beside it, in the same run, what VLB does: every pair of vectors in one sorted list, walked
through. Both must find the same matches. One core.
"""

import argparse
import resource
import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from harness.distances import L2
from protocols.images.affine import AffineFrames
from protocols.oxford.evaluation import pair_scores
from protocols.oxford.matching import greedy
from protocols.oxford.raster import raster_overlap
from protocols.oxford.truth import correspondences

HEIGHT, WIDTH, DIM = 640, 800, 128

T = TypeVar("T")


def made(n: int) -> tuple[AffineFrames, AffineFrames, np.ndarray, np.ndarray]:
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
    crossed = L2.cross(a, b)
    rows, columns = np.unravel_index(np.argsort(crossed, axis=None, kind="stable"), crossed.shape)
    free_row, free_column, taken = [True] * len(a), [True] * len(b), []
    for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
        if free_row[row] and free_column[column]:
            free_row[row] = free_column[column] = False
            taken.append((row, column))
            if len(taken) == min(len(a), len(b)):
                break
    return taken


def timed(run: Callable[[], T], runs: int = 1) -> tuple[float, T]:
    best = np.inf
    for _ in range(runs):
        start = time.perf_counter()
        found = run()
        best = min(best, time.perf_counter() - start)
    return best, found


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--regions", type=int, nargs="+", default=[3000, 4000, 5000])
    parser.add_argument("--runs", type=int, default=5, help="of ours; the best is taken")
    options = parser.parse_args()
    print("| regions | truth, s | matches, s | both and scores, s | peak, GiB | sorting all, s |")
    print("|---:|---:|---:|---:|---:|---:|")
    for n in options.regions:
        a, b, left, right = made(n)
        truth_s, truth = timed(
            lambda a=a, b=b: correspondences(a, b, np.eye(3), raster_overlap), options.runs
        )
        greedy_s, found = timed(lambda a=left, b=right: greedy(L2, a, b), options.runs)
        scores_s, scores = timed(
            lambda a=left, b=right, t=truth: pair_scores(L2, a, b, t, "greedy"), options.runs
        )
        ours_peak = peak()
        sort_s, wanted = timed(lambda a=left, b=right: by_sorting(a, b))
        assert set(zip(found.a.tolist(), found.b.tolist(), strict=True)) == set(wanted)
        print(
            f"| {n} | {truth_s:.2f} | {greedy_s:.2f} | {truth_s + scores_s:.2f} |"
            f" {ours_peak:.2f} | {sort_s:.1f} |",
            flush=True,
        )
    print(
        f"\n{scores['correspondences']:.0f} correspondences, ap {scores['ap']:.3f} in the last row"
    )
    print(f"peak memory with all pairs sorted: {peak():.2f} GiB")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
