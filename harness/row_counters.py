"""Finds columns of vectors that count the rows of a file instead of describing patches.

pandas writes such a column by default, the index. Matching by it is perfect if row i of two files
shows the same point.
"""

from collections.abc import Iterable

import numpy as np
from jaxtyping import Bool, Float64, Int

OFF = 1e-3  # largest deviation of a counter from a straight line, as a share of its range: rounding
BITS = 20.0  # bits of evidence: by chance, less than one data set in a million has such a column
LOOKED_AT = 10_000  # numbers in which distinct values are counted


def columns_that_count(parts: Iterable[np.ndarray]) -> list[int]:
    """Numbers, from 0, of the columns that equal the row number, shifted or scaled, in every part.

    A part is the vectors of one file, or of one batch: one row for each patch. The count may start
    again in each part, continue through all parts, or have another shift in each. Any column of
    only two rows is linear, so all parts together decide.

    >>> vectors = np.sin(np.arange(36)).reshape(12, 3)
    >>> columns_that_count([np.column_stack([range(12), vectors])])
    [0]
    >>> columns_that_count([vectors])
    []
    """
    firsts, steps, sizes = [], [], []
    straight: Bool[np.ndarray, " columns"] | None = None
    values = np.empty(0)
    for part in parts:
        n = len(part)
        if n == 0:
            continue
        table = np.asarray(part, np.float64)
        if straight is None:
            straight = np.ones(table.shape[1], bool)
        if len(values) < LOOKED_AT:
            sample = table[: 1 + LOOKED_AT // table.shape[1]]
            values = np.union1d(values, sample)
        step = (table[-1] - table[0]) / max(n - 1, 1)
        if n > 1:
            left = np.flatnonzero(straight)
            line = table[0, left] + np.arange(n)[:, None] * step[left]
            off = np.abs(table[:, left] - line).max(axis=0)
            straight[left] = (step[left] != 0) & (off <= OFF * np.abs(step[left]) * (n - 1))
        if not straight.any():
            return []
        firsts.append(table[0])
        steps.append(step)
        sizes.append(n)
    if straight is None:
        return []
    # A number out of n distinct values equals its prediction by chance once in n cases.
    bits = min(np.log2(max(len(values), 2)), -np.log2(2 * OFF))
    wanted = (BITS + np.log2(len(straight))) / bits
    first, step, size = np.array(firsts), np.array(steps), np.array(sizes)
    return [
        int(column)
        for column in np.flatnonzero(straight)
        if _predicted(first[:, column], step[:, column], size) >= wanted
    ]


def _predicted(
    first: Float64[np.ndarray, " parts"],
    step: Float64[np.ndarray, " parts"],
    size: Int[np.ndarray, " parts"],
) -> int:
    """How many numbers of a column the others predict, by the best of four ways of counting."""
    rows, long = int(size.sum()), size > 1
    counts = [int(np.maximum(size - 2, 0).sum())]  # own starts and steps
    if long.any():
        unit = OFF * np.abs(step[long]).min()
        if np.ptp(step[long]) <= unit:
            counts.append(int((size[long] - 1).sum()) - 1)  # own starts, one step
            if np.ptp(first) <= unit:
                counts.append(rows - 2)  # one start, one step
    begun = np.cumsum(size) - size
    ends = first + step * (size - 1)
    rows_known = np.concatenate([begun, begun + size - 1])
    numbers = np.concatenate([first, ends])
    slope = (ends[-1] - first[0]) / max(rows - 1, 1)
    off = np.abs(numbers - (first[0] + slope * rows_known)).max()
    if slope != 0 and off <= OFF * abs(slope) * rows:
        counts.append(rows - 2)  # one count continues through all parts
    return max(counts)
