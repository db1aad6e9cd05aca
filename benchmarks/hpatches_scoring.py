"""Time and memory of scoring the three HPatches tasks at the size of split a, vectors in memory.

    python benchmarks/hpatches_scoring.py [--official FRACTION]

40 sequences of the official lengths, 128 float numbers a vector, 1,000,000 pairs three times,
10,000 queries against 20,000 distractors. Beside it, in the same run, the official algorithm (one
SciPy call a pair, `cdist` in float64, one sort a query, noise and pool) on a share of the work,
scaled up; `--official 1` does all of it, some minutes.
"""

import argparse
import resource
import time
from collections.abc import Callable

import numpy as np
from scipy.spatial import distance

from harness import Block, Dataset, Descriptions
from harness.distances import L2
from protocols.hpatches import matching, retrieval, tasks, verification
from protocols.hpatches.reader import NOISES, OFFICIAL, STRIPS, HPatches

SPLIT_A = """i_ajuntament i_resort i_table i_troulos i_bologna i_lionnight i_porta i_zion i_brooklyn
i_fruits i_books i_bridger i_whitebuilding i_kurhaus i_salon i_autannes i_tools i_santuario i_fog
i_nijmegen v_courses v_coffeehouse v_abstract v_feast v_woman v_talent v_tabletop v_bees v_strand
v_fest v_yard v_underground v_azzola v_eastsouth v_yuri v_soldiers v_man v_pomegranate v_birdwoman
v_busstop"""
SEQUENCES, DIM = 40, 128


def made_set(rng: np.random.Generator) -> tuple[HPatches, np.ndarray]:
    lengths = {s: n for s, (n, _) in OFFICIAL["lengths"].items()}
    test = tuple(SPLIT_A.split())
    offsets = np.empty((SEQUENCES, len(STRIPS)), int)
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
    length = np.array([opened.lengths[s] for s in opened.test], np.int32)
    n = tasks.PAIRS
    s1, s2 = rng.integers(0, SEQUENCES, (2, n), dtype=np.int32)
    idx1, other, inter = (rng.integers(0, length[s], dtype=np.int32) for s in (s1, s1, s2))
    t1 = rng.integers(0, 5, n, dtype=np.int32)
    t2 = (t1 + rng.integers(1, 5, n, dtype=np.int32)) % 5
    verify = tasks.sorted_by_sequence(
        tasks.Pairs(s1, t1, idx1, s1, t2, idx1),
        tasks.Pairs(s1, t1, idx1, s1, t2, (idx1 + 1 + other) % length[s1]),
        tasks.Pairs(s1, t1, idx1, s2, t2, inter),
    )
    everything = np.concatenate(
        [np.stack([np.full(k, s), np.arange(k)], 1) for s, k in enumerate(length)]
    )
    chosen = rng.permutation(everything)[: tasks.QUERIES + tasks.DISTRACTORS]
    lists = (tasks.Patchlist(*part.T) for part in np.split(chosen, [tasks.QUERIES]))
    return verify, tasks.Retrieval(*lists)


def official_ap(score: np.ndarray, label: np.ndarray, positives: int) -> float:
    order = np.argsort(-score, kind="mergesort")
    tp = np.cumsum(label[order])
    recall = np.concatenate([[0], tp / positives])
    precision = np.concatenate([[1], tp / np.arange(1, len(tp) + 1)])
    return float(np.trapezoid(precision, recall))


def official_verification(opened, task, vectors, share) -> None:
    pairs = int(tasks.PAIRS * share)
    measured = {}
    for kind in ("positive", "intra", "inter"):
        few = getattr(task, kind).take(np.arange(pairs))
        for noise in NOISES:
            a = opened.rows(few.s1, few.t1, few.idx1, noise)
            b = opened.rows(few.s2, few.t2, few.idx2, noise)
            d = np.empty(pairs)
            for i in range(pairs):
                d[i] = distance.euclidean(vectors[a[i]], vectors[b[i]])
            measured[kind, noise] = d
    for noise in NOISES:
        for kind in ("intra", "inter"):
            d = np.concatenate([measured[kind, noise], measured["positive", noise]])
            official_ap(-d, np.repeat([0, 1], pairs), pairs)
            official_ap(
                -d[: int(1.2 * pairs)], np.repeat([0, 1], pairs)[: int(1.2 * pairs)], pairs // 5
            )


def official_matching(opened, task, vectors, share) -> None:
    for s in range(max(1, round(SEQUENCES * share))):
        ref = vectors[opened.strip(s, "ref")]
        for strip in STRIPS[1:]:
            d = distance.cdist(ref, vectors[opened.strip(s, strip)])
            nearest = d.argmin(axis=1)
            rows = np.arange(len(ref))
            official_ap(-d[rows, nearest], nearest == rows, len(ref))


def official_retrieval(opened, task, vectors, share) -> None:
    ref = np.zeros(1, int)
    few = task.queries.take(np.arange(int(tasks.QUERIES * share)))
    q = vectors[opened.rows(few.s, ref, few.idx, "easy")]
    d = vectors[opened.rows(task.distractors.s, ref, task.distractors.idx, "easy")]
    between = distance.cdist(q, d)
    for i in range(len(q)):
        for noise in NOISES:
            five = opened.rows(few.s[i], np.arange(1, 6), few.idx[i], noise)
            own = [distance.cdist(q[i : i + 1], vectors[r : r + 1])[0, 0] for r in five]
            row = np.concatenate([own, between[i][task.distractors.s != few.s[i]]])
            label = np.arange(len(row)) < 5
            for pool in retrieval.POOLS:
                official_ap(-row[:pool], label[:pool], 5)


def seconds(run: Callable[..., object], *arguments: object) -> float:
    start = time.perf_counter()
    run(*arguments)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--official", type=float, default=0.025, help="share of the work to time")
    share = parser.parse_args().official
    rng = np.random.default_rng(0)
    opened, vectors = made_set(rng)
    verify, retrieve = made_tasks(opened, rng)
    described = Descriptions(opened.dataset, vectors, L2)
    total = ours_total = 0.0
    print("| task | ours, s | official algorithm, s | ratio |\n|---|---|---|---|")
    for name, score, task, official in (
        ("verification", verification._score, verify, official_verification),
        ("matching", matching._score, None, official_matching),
        ("retrieval", retrieval._score, retrieve, official_retrieval),
    ):
        ours = seconds(score, opened, task, described, False)
        part = share if name != "matching" else max(1, round(SEQUENCES * share)) / SEQUENCES
        theirs = seconds(official, opened, task, vectors, share) / part if share else np.nan
        ours_total, total = ours_total + ours, total + theirs
        print(f"| {name} | {ours:.1f} | {theirs:.0f} | {theirs / ours:.0f} |", flush=True)
    print(f"| all | {ours_total:.1f} | {total:.0f} | {total / ours_total:.0f} |")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"\npeak memory {peak:.2f} GiB, {vectors.nbytes / 2**30:.2f} GiB of it the vectors")


if __name__ == "__main__":
    main()
