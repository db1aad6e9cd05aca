"""Draws the pairs of m50 lists: as many matches as non-matches, none twice."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64, Int

from harness.errors import InputError
from protocols.imaging.frames import uniform

# Limits of a match, as in the official lists (UBC patch data).
OFFSET = 5.0  # pixels between the keypoint and the model's point
OCTAVES = 0.25
ANGLE = np.pi / 8

OVERLAP = 0.5
"""Two points whose patches overlap more (intersection over union) are never a non-match."""

LISTS = (100_000, 500_000)  # pairs of the official lists: for tests, for training
MATCHES, NON_MATCHES, MIXED = range(1, 4)  # streams of random numbers; `selection` has stream 0

TRIES = 40  # rounds of draws; after them, no more pairs are expected

RowPairs = Int[np.ndarray, "_ 2"]


@dataclass(frozen=True, eq=False)
class PatchFacts:
    """The facts that decide about pairs. One row a patch; the rows of a point are adjacent."""

    point: Int[np.ndarray, " n"]
    reference: Int[np.ndarray, " n"]  # the reference image of the patch's point
    xyz: Float64[np.ndarray, "n 3"]  # of the point
    half: Float64[np.ndarray, " n"]  # half a side of the shown square, in the units of xyz
    angle: Float64[np.ndarray, " n"]  # direction; comparable only between patches of a point
    offset: Float64[np.ndarray, " n"]  # distance from the point, pixels


def lists(drawn: PatchFacts, fit: RowPairs, seed: int) -> dict[str, RowPairs]:
    """Lists of pairs by file name: of the official lengths, or one shorter list of all pairs."""
    by_file = {}
    for lines in LISTS:
        half = min(lines // 2, len(fit))
        if half < lines // 2 and lines != LISTS[0]:
            break
        others = draw_non_matches(drawn, half, (seed, NON_MATCHES, lines))
        half = len(others)
        if not half:
            raise InputError(
                f"{len(fit)} pairs of patches can be matches, and none can be a non-match: give"
                " more images that overlap"
            )
        matches = draw_matches(fit, drawn.point, half, (seed, MATCHES, lines))
        mixed = shuffled(matches, others, (seed, MIXED, lines))
        by_file[f"m50_{len(mixed)}_{len(mixed)}_0.txt"] = mixed
    return by_file


def matching(patches: PatchFacts) -> RowPairs:
    """All pairs of patches of one point that agree in place, scale and direction."""
    near = np.flatnonzero(patches.offset <= OFFSET)
    octave = np.log2(patches.half)
    matches = [np.empty((0, 2), np.int64)]
    first = near
    for apart in range(1, len(patches.point)):
        first = first[first < len(patches.point) - apart]
        first = first[patches.point[first] == patches.point[first + apart]]
        if not len(first):
            break
        second = first + apart
        turn = np.abs(patches.angle[first] - patches.angle[second])
        agree = (
            (patches.offset[second] <= OFFSET)
            & (np.abs(octave[first] - octave[second]) <= OCTAVES)
            & (np.minimum(turn, 2 * np.pi - turn) <= ANGLE)
        )
        matches.append(np.stack([first, second], 1)[agree])
    return np.concatenate(matches)


def draw_matches(
    candidates: RowPairs, point: Int[np.ndarray, " n"], most: int, seed: tuple[int, ...]
) -> RowPairs:
    """A choice of candidates: one pair of each point first, then a second pair, and so on.

    In a uniform draw among all pairs, points that many images see would dominate.
    """
    number = uniform(seed, len(candidates))
    points = point[candidates[:, 0]]
    order = np.lexsort((number, points))
    starts = np.searchsorted(points[order], points[order])
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order)) - starts
    return candidates[np.lexsort((number, rank))[:most]]


def draw_non_matches(patches: PatchFacts, most: int, seed: tuple[int, ...]) -> RowPairs:
    """Pairs of patches of two points that don't overlap; uniform among points.

    Both points have the same reference image; other pairs follow only if there are too few.
    """
    first, count, image = _points(patches)
    order = np.argsort(image, kind="stable")
    non_matches = np.empty((0, 2), np.int64)
    for group in (image[order], np.zeros(len(order), np.int64)):
        low = np.searchsorted(group, group)
        size = np.searchsorted(group, group, side="right") - low
        for tried in range(TRIES):
            if len(non_matches) >= most:
                break
            u = uniform((*seed, int(group[-1] == group[0]), tried), 4, most + 16)
            i = (u[0] * len(order)).astype(np.int64)
            p, q = order[i], order[low[i] + (u[1] * size[i]).astype(np.int64)]
            a = first[p] + (u[2] * count[p]).astype(np.int64)
            b = first[q] + (u[3] * count[q]).astype(np.int64)
            apart = (p != q) & ~_overlapping(patches, a, b)
            non_matches = _without_repeats(
                np.concatenate([non_matches, np.stack([a, b], 1)[apart]])
            )
    return non_matches[:most]


def shuffled(matches: RowPairs, others: RowPairs, seed: tuple[int, ...]) -> RowPairs:
    """Matches and non-matches in random order, the two patches of a pair in random order."""
    pairs = np.concatenate([matches, others])
    order, swap = uniform(seed, 2, len(pairs))
    pairs = np.where(swap[:, None] < 0.5, pairs, pairs[:, ::-1])
    return pairs[np.argsort(order, kind="stable")]


def _points(patches: PatchFacts) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The first row, the number of rows and the reference image of each point."""
    first = np.flatnonzero(np.diff(patches.point, prepend=patches.point[0] - 1))
    return first, np.diff(first, append=len(patches.point)), patches.reference[first]


def _overlapping(
    patches: PatchFacts, a: Int[np.ndarray, " m"], b: Int[np.ndarray, " m"]
) -> Bool[np.ndarray, " m"]:
    """Whether two squares, side by side at the points' distance, overlap more than `OVERLAP`."""
    small = np.minimum(patches.half[a], patches.half[b])
    large = np.maximum(patches.half[a], patches.half[b])
    apart = np.linalg.norm(patches.xyz[a] - patches.xyz[b], axis=1)
    both = np.clip(small + large - apart, 0, 2 * small) * 2 * small
    return both > OVERLAP * (4 * small**2 + 4 * large**2 - both)


def _without_repeats(pairs: RowPairs) -> RowPairs:
    """The pairs without repeats; the order of a pair's two patches does not count."""
    _, first = np.unique(np.sort(pairs, axis=1), axis=0, return_index=True)
    return pairs[np.sort(first)]
