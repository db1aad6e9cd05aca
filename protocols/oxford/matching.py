"""Which regions of two images a descriptor takes for the same, and which of them it is surest of.

Where distances tie, rows decide: they must stand in an order that tells nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int

from harness.distances import Crossed, Distance, chunks
from harness.errors import InputError
from harness.types import Rows, Vectors

HELD = 32  # pairs for each row that are sorted at a time


@dataclass(frozen=True, eq=False)
class Matches:
    """Pairs of rows that were taken for the same."""

    a: Rows
    b: Rows
    distance: Float64[np.ndarray, " m"]  # or what else ranks them: smaller is surer


def greedy(distance: Distance, a: Vectors, b: Vectors) -> Matches:
    """One to one: of all rows that are left, the nearest pair first, until a side has none left.

    VLB's strategy "nn", which is neither the nearest neighbour of each row nor the mutual ones. It
    is as if all pairs were sorted and walked through. They are not held: the nearest of them are
    looked for, sorted and walked through, then the nearest of the rows that are left.

    Of equal distances, those of rows i and j with the least (j - i) mod n come first, n being the
    longer side's number of rows. So ties serve all rows alike, and order within such a group is of
    no account: no two of its pairs share a row.
    """
    n = max(len(a), len(b))
    rows, columns = np.arange(len(a)), np.arange(len(b))
    found: list[Matches] = []
    while len(rows) and len(columns):
        first = _first_pairs(distance, a[rows], b[columns], rows, columns, n)
        taken = one_to_one(first.a, first.b, len(rows), len(columns))
        row, column = first.a[taken], first.b[taken]
        found.append(Matches(rows[row], columns[column], first.distance[taken]))
        rows, columns = np.delete(rows, row), np.delete(columns, column)
    if not found:
        return Matches(rows[:0], columns[:0], np.empty(0))
    return Matches(
        np.concatenate([part.a for part in found]),
        np.concatenate([part.b for part in found]),
        np.concatenate([part.distance for part in found]),
    )


def one_to_one(a: Rows, b: Rows, rows: int, columns: int) -> Int[np.ndarray, " taken"]:
    """Which pairs are taken if every row and every column serves the first that asks for it."""
    free_row, free_column = bytearray(b"\1" * rows), bytearray(b"\1" * columns)
    taken: list[int] = []
    for i, (row, column) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
        if free_row[row] and free_column[column]:
            free_row[row] = free_column[column] = 0
            taken.append(i)
            if len(taken) == min(rows, columns):
                break
    return np.array(taken, np.intp)


def _first_pairs(
    distance: Distance,
    a: Vectors,
    b: Vectors,
    rows: Int[np.ndarray, " rows"],
    columns: Int[np.ndarray, " columns"],
    n: int,
) -> Matches:
    """The pairs that come first, sorted: HELD for each row or more, or all there are."""
    both = np.concatenate([a, b])
    most = HELD * max(len(a), len(b))

    def measured(place: Rows) -> Matches:
        row, column = np.divmod(place, len(b))
        value = distance.paired(both, row, len(a) + column)
        order = np.lexsort(((columns[column] - rows[row]) % n, value))
        return Matches(row[order], column[order], value[order])

    entry, place = np.empty(0, np.float32), np.empty(0, np.intp)
    end = np.array([np.inf], np.float32)  # no entry beyond it is of interest any more
    for start, crossed in _crossed(distance, a, b):
        near = np.flatnonzero(crossed.ravel() <= end)
        entry = np.concatenate([entry, crossed.ravel()[near]])
        place = np.concatenate([place, near + start * len(b)])
        if len(entry) > 2 * most:
            _, end = distance.window(np.partition(entry, most)[most : most + 1], both)
            place, entry = place[entry <= end], entry[entry <= end]
        if len(entry) > 2 * most:  # many tie: how exactly, and which of them come first?
            first = measured(place)
            place = first.a[: most + 1] * len(b) + first.b[: most + 1]
            _, end = distance.window(distance.crossed(first.distance[most : most + 1]), both)
            entry = np.repeat(end, len(place))  # none is beyond
    return measured(place)


def nearest(distance: Distance, a: Vectors, b: Vectors) -> Matches:
    """The nearest row of b for each row of a, the first of several that tie."""
    found = distance.nearest(a, b)
    rows = np.arange(len(a))
    return Matches(rows, found.column[np.searchsorted(found.row, rows)], found.distance)


def mutual(distance: Distance, a: Vectors, b: Vectors) -> Matches:
    """Rows that are nearest to each other."""
    there, back = nearest(distance, a, b), nearest(distance, b, a)
    kept = back.b[there.b] == there.a
    return Matches(there.a[kept], there.b[kept], there.distance[kept])


def ratio(distance: Distance, a: Vectors, b: Vectors) -> Matches:
    """As `nearest`, ranked by the distance over that of the second nearest (Lowe, IJCV 2004).

    The ratio of two distances of 0 is 1: nothing is sure.

    Raises:
        InputError: if b has one row.
    """
    if len(b) < 2:
        raise InputError("there is one region to match with, and no second: no ratio is defined")
    both = np.concatenate([a, b])
    columns, shares = [], []
    for start, crossed in _crossed(distance, a, b):
        _, end = distance.window(np.partition(crossed, 1, axis=1)[:, 1], both)
        row, column = np.nonzero(crossed <= end[:, None])  # the two nearest, and what may be
        measured = distance.paired(both, start + row, len(a) + column)
        order = np.lexsort((column, measured, row))
        at = np.searchsorted(row, np.arange(len(crossed)))
        first, second = (distance.unsquared(measured[order[at + i]]) for i in (0, 1))
        columns.append(column[order[at]])
        shares.append(np.divide(first, second, out=np.ones_like(first), where=second > 0))
    return Matches(np.arange(len(a)), np.concatenate(columns), np.concatenate(shares))


def count_nearer(
    distance: Distance, a: Vectors, b: Vectors, row: Rows, column: Rows
) -> tuple[Float64[np.ndarray, " m"], Int[np.ndarray, " m"], Int[np.ndarray, " m"]]:
    """The distances of some pairs, ascending; how many of all are nearer; how many not farther.

    Args:
        distance: of vectors.
        a: vectors of one image.
        b: vectors of another.
        row: of a, of each pair.
        column: of b.
    """
    both = np.concatenate([a, b])
    value = np.sort(distance.paired(both, row, len(a) + column))
    low, high = distance.window(distance.crossed(value), both)
    below, upto = np.zeros((2, len(value)), np.intp)
    for start, crossed in _crossed(distance, a, b):
        order = np.argsort(crossed, axis=None)
        ascending = crossed.ravel()[order]
        first = np.searchsorted(ascending, low, side="left")
        end = np.searchsorted(ascending, high, side="right")
        # Entries in a window are measured, each once; those before it are nearer.
        unsure = np.zeros(len(order) + 1, np.intp)
        np.add.at(unsure, first, 1)
        np.add.at(unsure, end, -1)
        places = np.flatnonzero(np.cumsum(unsure)[:-1])
        i, j = np.divmod(order[places], len(b))
        exact = np.sort(distance.paired(both, start + i, len(a) + j))
        sure = first - np.searchsorted(places, first)  # before the window, and in no other
        below += sure + np.searchsorted(exact, value, side="left")
        upto += sure + np.searchsorted(exact, value, side="right")
    return value, below, upto


def _crossed(distance: Distance, a: Vectors, b: Vectors) -> Iterator[tuple[int, Crossed]]:
    """All with all, some rows of a at a time, each time with the first of them."""
    for rows in chunks(len(a), len(b)):
        yield rows.start, distance.cross(a[rows], b)
