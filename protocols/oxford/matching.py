"""Matches the regions of two images by a descriptor's vectors, and ranks the matches.

Where distances tie, the order of rows decides: it must carry no information about matches.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int

from harness.distances import Crossed, Distance, chunks
from harness.errors import InputError
from harness.types import Rows, Vectors

HELD = 32  # pairs per row that are sorted at a time


@dataclass(frozen=True, eq=False)
class Matches:
    """Matched pairs of rows."""

    a: Rows
    b: Rows
    distance: Float64[np.ndarray, " m"]  # or another measure that ranks them: smaller is surer


def greedy(distance: Distance, a: Vectors, b: Vectors) -> Matches:
    """One-to-one matches: take the nearest pair of the free rows, until one side has no free row.

    This is VLB's strategy "nn". It is neither the nearest neighbour of each row nor mutual nearest
    neighbours. The result is that of sorting all pairs by distance and taking each pair whose rows
    are both free. To save memory, only the nearest pairs are sorted and taken, then the nearest
    pairs of the rows that are left, and so on.

    Of pairs (i, j) at equal distance, the pair with the least (j - i) mod n comes first; n is the
    larger number of rows. So ties favour no row. Pairs with the same (j - i) mod n share no row, so
    their order does not matter.
    """
    n = max(len(a), len(b))
    rows, columns = np.arange(len(a)), np.arange(len(b))
    rounds: list[Matches] = []
    while len(rows) and len(columns):
        first = _first_pairs(distance, a[rows], b[columns], rows, columns, n)
        taken = one_to_one(first.a, first.b, len(rows), len(columns))
        row, column = first.a[taken], first.b[taken]
        rounds.append(Matches(rows[row], columns[column], first.distance[taken]))
        rows, columns = np.delete(rows, row), np.delete(columns, column)
    if not rounds:
        return Matches(rows[:0], columns[:0], np.empty(0))
    return Matches(
        np.concatenate([part.a for part in rounds]),
        np.concatenate([part.b for part in rounds]),
        np.concatenate([part.distance for part in rounds]),
    )


def one_to_one(a: Rows, b: Rows, rows: int, columns: int) -> Int[np.ndarray, " taken"]:
    """Which pairs are taken, in the given order, if every row and column is used at most once."""
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
    """The first pairs in sorted order: at least HELD per row, or all pairs."""
    both = np.concatenate([a, b])
    most = HELD * max(len(a), len(b))

    def measured(place: Rows) -> Matches:
        row, column = np.divmod(place, len(b))
        value = distance.paired(both, row, len(a) + column)
        order = np.lexsort(((columns[column] - rows[row]) % n, value))
        return Matches(row[order], column[order], value[order])

    entry, place = np.empty(0, np.float32), np.empty(0, np.intp)
    end = np.array([np.inf], np.float32)  # entries beyond it are not needed
    for start, crossed in _crossed(distance, a, b):
        near = np.flatnonzero(crossed.ravel() <= end)
        entry = np.concatenate([entry, crossed.ravel()[near]])
        place = np.concatenate([place, near + start * len(b)])
        if len(entry) > 2 * most:
            _, end = distance.window(np.partition(entry, most)[most : most + 1], both)
            place, entry = place[entry <= end], entry[entry <= end]
        if len(entry) > 2 * most:  # many tie: measure exactly which of them come first
            first = measured(place)
            place = first.a[: most + 1] * len(b) + first.b[: most + 1]
            _, end = distance.window(distance.crossed(first.distance[most : most + 1]), both)
            entry = np.repeat(end, len(place))  # no kept entry is beyond the end
    return measured(place)


def nearest(distance: Distance, a: Vectors, b: Vectors) -> Matches:
    """The nearest row of b for each row of a; of tied rows the first."""
    neighbours = distance.nearest(a, b)
    rows = np.arange(len(a))
    return Matches(
        rows, neighbours.column[np.searchsorted(neighbours.row, rows)], neighbours.distance
    )


def mutual(distance: Distance, a: Vectors, b: Vectors) -> Matches:
    """Mutual nearest neighbours."""
    there, back = nearest(distance, a, b), nearest(distance, b, a)
    kept = back.b[there.b] == there.a
    return Matches(there.a[kept], there.b[kept], there.distance[kept])


def ratio(distance: Distance, a: Vectors, b: Vectors) -> Matches:
    """Like `nearest`, ranked by nearest distance / second nearest distance (Lowe, IJCV 2004).

    The ratio of two distances of 0 is 1, the least sure.

    Raises:
        InputError: if b has only one row.
    """
    if len(b) < 2:
        raise InputError("the second image has only one region: the ratio test needs two")
    both = np.concatenate([a, b])
    columns, shares = [], []
    for start, crossed in _crossed(distance, a, b):
        _, end = distance.window(np.partition(crossed, 1, axis=1)[:, 1], both)
        row, column = np.nonzero(crossed <= end[:, None])  # all candidates for the two nearest
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
    """The distances of given pairs, ascending; and how many of all pairs are nearer, or no farther.

    Args:
        distance: of vectors.
        a: vectors of one image.
        b: vectors of another image.
        row: of each given pair, the row of a.
        column: of each given pair, the row of b.
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
        # Entries inside a window are measured exactly, each once; entries before it are nearer.
        unsure = np.zeros(len(order) + 1, np.intp)
        np.add.at(unsure, first, 1)
        np.add.at(unsure, end, -1)
        places = np.flatnonzero(np.cumsum(unsure)[:-1])
        i, j = np.divmod(order[places], len(b))
        exact = np.sort(distance.paired(both, start + i, len(a) + j))
        sure = first - np.searchsorted(places, first)  # before the window, and in no other window
        below += sure + np.searchsorted(exact, value, side="left")
        upto += sure + np.searchsorted(exact, value, side="right")
    return value, below, upto


def _crossed(distance: Distance, a: Vectors, b: Vectors) -> Iterator[tuple[int, Crossed]]:
    """Yields the products of some rows of a with all of b, with the number of the first row."""
    for rows in chunks(len(a), len(b)):
        yield rows.start, distance.cross(a[rows], b)
