"""Time and memory of scoring the three HPatches tasks at the size of split a, vectors in memory.

    python -m benchmarks.hpatches_scoring [--official FRACTION]

40 sequences of the official lengths, 128 float numbers a vector, 1,000,000 pairs three times,
10,000 queries against 20,000 distractors. Beside it, in the same run, the official algorithm (one
SciPy call a pair, `cdist` in float64, one sort a query, noise and pool) on a share of the work,
scaled up; `--official 1` does all of it, some minutes. The numbers of both must be the same.
"""

import argparse
import resource
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import ModuleType
from typing import Any, TypeVar

import numpy as np
from scipy.spatial import distance

from benchmarks.comparison import Comparison
from harness import Block, Dataset, Descriptions
from harness.distances import L2
from harness.records import markdown_table
from protocols.hpatches import matching, retrieval, tasks, verification
from protocols.hpatches.reader import NOISES, OFFICIAL, STRIPS, HPatches

SPLIT_A = """i_ajuntament i_resort i_table i_troulos i_bologna i_lionnight i_porta i_zion i_brooklyn
i_fruits i_books i_bridger i_whitebuilding i_kurhaus i_salon i_autannes i_tools i_santuario i_fog
i_nijmegen v_courses v_coffeehouse v_abstract v_feast v_woman v_talent v_tabletop v_bees v_strand
v_fest v_yard v_underground v_azzola v_eastsouth v_yuri v_soldiers v_man v_pomegranate v_birdwoman
v_busstop"""
SEQUENCES, DIM = 40, 128

COLUMNS = ("task", "ours, s", "official algorithm, s", "ratio", "largest difference")

T = TypeVar("T")
Arguments = tuple[object, ...]
Official = Callable[..., dict[str, float]]


def made_set(rng: np.random.Generator, sequences: int = SEQUENCES) -> tuple[HPatches, np.ndarray]:
    """A set of the size of split a, or of its first sequences, and random vectors."""
    lengths = {s: n for s, (n, _) in OFFICIAL["lengths"].items()}
    test = tuple(SPLIT_A.split()[:sequences])
    offsets = np.empty((len(test), len(STRIPS)), int)
    parts, start = [], 0
    for row, sequence in enumerate(test):
        n = lengths[sequence]
        point = rng.normal(size=(n, DIM)).astype(np.float32)
        for column in range(len(STRIPS)):
            noisy = point + rng.normal(size=(n, DIM)).astype(np.float32) * (0.5 + 0.03 * column)
            parts.append(noisy / np.linalg.norm(noisy, axis=1, keepdims=True))
            offsets[row, column] = start
            start += n
    vectors = np.concatenate(parts)
    blocks = (Block("all", len(vectors), "", lambda: np.empty(0, np.uint8)),)
    dataset = Dataset("made", "a", blocks, np.arange(start), np.arange(start))
    return HPatches(dataset, test, (), lengths, offsets, None), vectors


def made_tasks(
    opened: HPatches, rng: np.random.Generator
) -> tuple[tasks.Verification, tasks.Retrieval]:
    """Random pairs, queries and distractors: as many as official, or the sequences' share."""
    length = np.array([opened.lengths[s] for s in opened.test], np.int32)
    share = len(opened.test) / SEQUENCES
    n = int(share * tasks.PAIRS)
    s1, s2 = rng.integers(0, len(length), (2, n), dtype=np.int32)
    idx1, other, inter = (rng.integers(0, length[s], dtype=np.int32) for s in (s1, s1, s2))
    t1 = rng.integers(0, 5, n, dtype=np.int32)
    t2 = (t1 + rng.integers(1, 5, n, dtype=np.int32)) % 5
    verify = tasks.sorted_by_sequence(
        tasks.PatchPairs(s1, t1, idx1, s1, t2, idx1),
        tasks.PatchPairs(s1, t1, idx1, s1, t2, (idx1 + 1 + other) % length[s1]),
        tasks.PatchPairs(s1, t1, idx1, s2, t2, inter),
    )
    everything = np.concatenate(
        [np.stack([np.full(k, s), np.arange(k)], 1) for s, k in enumerate(length)]
    )
    queries, distractors = int(share * tasks.QUERIES), int(share * tasks.DISTRACTORS)
    chosen = rng.permutation(everything)[: queries + distractors]
    lists = (tasks.Patchlist(*part.T) for part in np.split(chosen, [queries]))
    return verify, tasks.Retrieval(*lists)


def official_ap(score: np.ndarray, label: np.ndarray, positives: int) -> float:
    """Average precision by the official code's trapezoid."""
    order = np.argsort(-score, kind="mergesort")
    tp = np.cumsum(label[order])
    recall = np.concatenate([[0], tp / positives])
    precision = np.concatenate([[1], tp / np.arange(1, len(tp) + 1)])
    return float(np.trapezoid(precision, recall))


def official_verification(
    opened: HPatches, task: tasks.Verification, vectors: np.ndarray
) -> dict[str, float]:
    """Scores of the verification task, by the official algorithm."""
    measured = {}
    for kind in ("positive", "intra", "inter"):
        pairs = getattr(task, kind).take(np.argsort(task.place))  # in the order of the file
        for noise in NOISES:
            a = opened.rows(pairs.s1, pairs.t1, pairs.idx1, noise)
            b = opened.rows(pairs.s2, pairs.t2, pairs.idx2, noise)
            d = np.empty(len(a))
            for i in range(len(a)):
                d[i] = distance.euclidean(vectors[a[i]], vectors[b[i]])
            measured[kind, noise] = d
    found = {}
    for noise in NOISES:
        for kind in ("inter", "intra"):
            d = np.concatenate([measured[kind, noise], measured["positive", noise]])
            n = len(d) // 2
            label = np.repeat([0, 1], n)
            order = np.argsort(d, kind="mergesort")
            tp, fp = np.cumsum(label[order]), np.cumsum(1 - label[order])
            found[f"{noise}/{kind}/auc"] = float(np.trapezoid(tp / n, fp / n))
            few = n + int(0.2 * n)
            found[f"{noise}/{kind}/ap"] = official_ap(-d[:few], label[:few], few - n)
    return found


def official_matching(opened: HPatches, task: None, vectors: np.ndarray) -> dict[str, float]:
    """Scores of the matching task, by the official algorithm; it has no task files."""
    found = {}
    for noise in NOISES:
        aps = []
        for s in range(len(opened.test)):
            ref = vectors[opened.strip(s, "ref")]
            for k in range(1, 6):
                d = distance.cdist(ref, vectors[opened.strip(s, f"{noise[0]}{k}")])
                nearest = d.argmin(axis=1)
                rows = np.arange(len(ref))
                aps.append(official_ap(-d[rows, nearest], nearest == rows, len(ref)))
        found[f"{noise}/all/map"] = float(np.mean(aps))
    return found


def official_retrieval(
    opened: HPatches, task: tasks.Retrieval, vectors: np.ndarray
) -> dict[str, float]:
    """Scores of the retrieval task, by the official algorithm."""
    ref = np.zeros(1, int)
    queries, distractors = task.queries, task.distractors
    q = vectors[opened.rows(queries.s, ref, queries.idx, "easy")]
    d = vectors[opened.rows(distractors.s, ref, distractors.idx, "easy")]
    between = distance.cdist(q, d)
    aps = defaultdict(list)
    for i in range(len(q)):
        for noise in NOISES:
            five = opened.rows(queries.s[i], np.arange(1, 6), queries.idx[i], noise)
            own = [distance.cdist(q[i : i + 1], vectors[r : r + 1])[0, 0] for r in five]
            row = np.concatenate([own, between[i][distractors.s != queries.s[i]]])
            label = np.arange(len(row)) < 5
            for pool in retrieval.POOLS:
                aps[f"{noise}/map@{pool}"].append(official_ap(-row[:pool], label[:pool], 5))
    return {name: float(np.mean(values)) for name, values in aps.items()}


def share_of(
    opened: HPatches, verify: tasks.Verification, retrieve: tasks.Retrieval, share: float
) -> tuple[HPatches, tasks.Verification, tasks.Retrieval]:
    """The first of the pairs, sequences and queries, so that both algorithms do the same work."""
    few = verify.place < int(share * len(verify.place))
    positive, intra, inter = (
        part.take(few) for part in (verify.positive, verify.intra, verify.inter)
    )
    queries = retrieve.queries.take(np.arange(max(1, int(share * len(retrieve.queries.s)))))
    return (
        replace(opened, test=opened.test[: max(1, round(share * len(opened.test)))]),
        tasks.Verification(positive, intra, inter, verify.place[few]),
        tasks.Retrieval(queries, retrieve.distractors),
    )


def timed(run: Callable[..., T], *arguments: object) -> tuple[float, T]:
    """Seconds that a call takes, and its result."""
    start = time.perf_counter()
    found = run(*arguments)
    return time.perf_counter() - start, found


def compared(sequences: int, share: float, runs: int) -> Iterator[tuple[Comparison, float]]:
    """Yields each task by both algorithms, and the largest difference of their numbers.

    Args:
        sequences: of split a.
        share: of the work that the official algorithm does; its time is scaled up.
        runs: of ours; the best is taken.
    """
    rng = np.random.default_rng(0)
    opened, vectors = made_set(rng, sequences)
    verify, retrieve = made_tasks(opened, rng)
    described = Descriptions(opened.dataset, vectors, L2)
    some, some_pairs, some_queries = share_of(opened, verify, retrieve, share)
    tried: tuple[tuple[ModuleType, Official, Arguments, Arguments, float], ...] = (
        (verification, official_verification, (opened, verify), (opened, some_pairs),
         len(some_pairs.place) / len(verify.place)),
        (matching, official_matching, (opened, None), (some, None),
         len(some.test) / len(opened.test)),
        (retrieval, official_retrieval, (opened, retrieve), (opened, some_queries),
         len(some_queries.queries.s) / len(retrieve.queries.s)),
    )  # fmt: skip
    for module, official, whole, few, part in tried:
        name = module.__name__.rpartition(".")[2]
        ours = min(timed(_score, module, *whole, described, False)[0] for _ in range(runs))
        expected: dict[str, float]
        theirs, expected = timed(official, *few, vectors)
        found = _score(module, *few, described, True)
        off = max(abs(found[key] - value) for key, value in expected.items())
        assert off < 1e-6, f"{name}: {off}"
        results = f"differ by {off:.0e} at most"
        yield (
            Comparison(f"HPatches, {name}", ours, "official algorithm", theirs / part, results),
            off,
        )


def _score(module: ModuleType, *arguments: Any) -> Mapping[str, float]:
    """The scores of a task, without its name."""
    if module is verification:
        values, _, _ = verification.score(*arguments)
        return values
    opened, task, described, official = arguments
    values, _, _ = module.SEQUENCES.whole(opened, task, described, official)
    return values


def comparisons(quick: bool) -> Iterator[Comparison]:
    """Yields the rows of `python -m benchmarks`."""
    sizes = (2, 0.05, 1) if quick else (SEQUENCES, 0.025, 3)
    return (row for row, _ in compared(*sizes))


def main() -> None:
    """Score by both, print a row for each task."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--official", type=float, default=0.025, help="share of the work to time")
    parser.add_argument("--runs", type=int, default=3, help="of ours; the best is taken")
    options = parser.parse_args()

    def rows() -> Iterator[tuple[str, ...]]:
        totals = np.zeros(2)
        for row, off in compared(SEQUENCES, options.official, options.runs):
            totals += row.ours_s, row.reference_s
            name = row.task.partition(", ")[2]
            times = f"{row.ours_s:.1f}", f"{row.reference_s:.0f}", f"{row.ratio:.0f}"
            yield name, *times, f"{off:.0e}"
        yield "all", f"{totals[0]:.1f}", f"{totals[1]:.0f}", f"{totals[1] / totals[0]:.0f}", ""

    for line in markdown_table.lines(COLUMNS, rows()):
        print(line, flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"\npeak memory {peak:.2f} GiB, the vectors included")


if __name__ == "__main__":
    main()
