"""Finds columns of vectors that count the rows of a file instead of describing its patches.

pandas writes such a column by default (its index), and matching by it is perfect wherever row i of
two files shows the same point.
"""

from collections.abc import Iterable

import numpy as np
from jaxtyping import Bool, Float64, Int

OFF = 1e-3  # share of its range that a counter may be off a straight line: it may be rounded
BITS = 20.0  # of evidence: less than one data set in a million has such a column by chance
LOOKED_AT = 10_000  # numbers among which the different ones are counted


def columns_that_count(parts: Iterable[np.ndarray]) -> list[int]:
    """Columns, from 0, that are equal to the row number, shifted or scaled, in every part.

    A part is what one file holds, or one batch: a row for each patch. The count may begin anew in
    each part, run on through all of them, or be shifted in each. In one part of two rows any column
    counts, so that all parts together decide.

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
            some = table[: 1 + LOOKED_AT // table.shape[1]]
            values = np.union1d(values, some)
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
    # By chance, a number equals its prediction once in n cases, of n different numbers.
    bits = min(np.log2(max(len(values), 2)), -np.log2(2 * OFF))
    wanted = (BITS + np.log2(len(straight))) / bits
    first, step, size = np.array(firsts), np.array(steps), np.array(sizes)
    return [
        int(column)
        for column in np.flatnonzero(straight)
        if _foretold(first[:, column], step[:, column], size) >= wanted
    ]


def _foretold(
    first: Float64[np.ndarray, " parts"],
    step: Float64[np.ndarray, " parts"],
    size: Int[np.ndarray, " parts"],
) -> int:
    """How many numbers of a column follow from the others, by the best of four ways of counting."""
    rows, long = int(size.sum()), size > 1
    found = [int(np.maximum(size - 2, 0).sum())]  # whatever each part begins with
    if long.any():
        unit = OFF * np.abs(step[long]).min()
        if np.ptp(step[long]) <= unit:
            found.append(int((size[long] - 1).sum()) - 1)  # by one step
            if np.ptp(first) <= unit:
                found.append(rows - 2)  # from one number, by one step
    begun = np.cumsum(size) - size
    ends = first + step * (size - 1)
    rows_known = np.concatenate([begun, begun + size - 1])
    numbers = np.concatenate([first, ends])
    slope = (ends[-1] - first[0]) / max(rows - 1, 1)
    off = np.abs(numbers - (first[0] + slope * rows_known)).max()
    if slope != 0 and off <= OFF * abs(slope) * rows:
        found.append(rows - 2)  # running on through all parts
    return max(found)
