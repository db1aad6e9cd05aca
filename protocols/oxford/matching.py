"""Which regions of two images a descriptor takes for the same, and which of them it is surest of.

Where distances tie, rows decide: they must stand in an order that tells nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Int, UInt64

from harness.distances import Crossed, Distance, chunks
from harness.types import Rows, Vectors

HELD = 32  # pairs for each row that are sorted at a time
LARGEST, LOWER = np.uint64(2**64 - 1), np.uint64(2**32 - 1)


@dataclass(frozen=True, eq=False)
class Matches:
    """Pairs of rows that were taken for the same."""

    a: Rows
    b: Rows
    distance: Float32[np.ndarray, " m"]  # or what else ranks them: smaller is surer


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
    found: list[tuple[Rows, Rows, Float32[np.ndarray, " some"]]] = []
    while len(rows) and len(columns):
        key, row, column = _first_pairs(distance, a[rows], b[columns], rows, columns, n)
        taken = one_to_one(row, column, len(rows), len(columns))
        row, column = row[taken], column[taken]
        found.append((rows[row], columns[column], (key[taken] >> 32).astype(np.uint32).view("f4")))
        rows, columns = np.delete(rows, row), np.delete(columns, column)
    if not found:
        return Matches(rows[:0], columns[:0], np.empty(0, np.float32))
    return Matches(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


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
) -> tuple[UInt64[np.ndarray, " m"], Rows, Rows]:
    """Keys, rows and columns of the pairs that come first, HELD for each row or few more; sorted.

    A key has the distance in its upper half, whose bits grow with it as none is negative, and the
    tie's place below.
    """
    keys = [np.empty(0, np.uint64)]
    places = [np.empty(0, np.intp)]
    last, held, most = LARGEST, 0, HELD * max(len(a), len(b))  # of keys that are still of interest
    for start, crossed in _crossed(distance, a, b):
        bits = crossed.view(np.uint32).ravel()
        near = np.flatnonzero(bits <= np.uint32(last >> 32))
        if len(near) > 2 * most:
            last = min(last, np.partition(bits[near], most)[most].astype(np.uint64) << 32 | LOWER)
            near = near[bits[near] <= np.uint32(last >> 32)]
        row, column = np.divmod(near, len(b))
        tie = (columns[column] - rows[start + row]) % n
        key = bits[near].astype(np.uint64) << 32 | tie.astype(np.uint64)
        keys.append(key[key <= last])
        places.append(near[key <= last] + start * len(b))
        held += len(keys[-1])
        if held > 2 * most:
            last = np.partition(np.concatenate(keys), most)[most]
            places = [place[key <= last] for key, place in zip(keys, places, strict=True)]
            keys = [key[key <= last] for key in keys]
            held = sum(map(len, keys))
    key, place = np.concatenate(keys), np.concatenate(places)
    order = np.argsort(key)
    return key[order], *np.divmod(place[order], len(b))


def nearest(distance: Distance, a: Vectors, b: Vectors) -> Matches:
    """The nearest row of b for each row of a, the first of several that tie."""
    found = [(part.argmin(axis=1), part.min(axis=1)) for _, part in _crossed(distance, a, b)]
    column, least = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return Matches(np.arange(len(a)), column, least)


def mutual(distance: Distance, a: Vectors, b: Vectors) -> Matches:
    """Rows that are nearest to each other."""
    there, back = nearest(distance, a, b), nearest(distance, b, a)
    kept = back.b[there.b] == there.a
    return Matches(there.a[kept], there.b[kept], there.distance[kept])


def ratio(distance: Distance, a: Vectors, b: Vectors) -> Matches:
    """As `nearest`, ranked by the distance over that of the second nearest (Lowe, IJCV 2004).

    The ratio of two distances of 0 is 1: nothing is sure.

    Raises:
        ValueError: if b has one row.
    """
    if len(b) < 2:
        raise ValueError("there is one region to match with, and no second: no ratio is defined")
    columns, shares = [], []
    for _, crossed in _crossed(distance, a, b):
        rows, column = np.arange(len(crossed)), crossed.argmin(axis=1)
        first = distance.unsquared(crossed[rows, column])
        crossed[rows, column] = np.inf
        second = distance.unsquared(crossed.min(axis=1))
        columns.append(column)
        shares.append(np.divide(first, second, out=np.ones_like(first), where=second > 0))
    return Matches(np.arange(len(a)), np.concatenate(columns), np.concatenate(shares))


def count_nearer(
    distance: Distance, a: Vectors, b: Vectors, row: Rows, column: Rows
) -> tuple[Float32[np.ndarray, " m"], Int[np.ndarray, " m"], Int[np.ndarray, " m"]]:
    """The distances of some pairs, ascending; how many of all are nearer; how many not farther.

    Args:
        distance: of vectors.
        a: vectors of one image.
        b: vectors of another.
        row: of a, of each pair; ascending.
        column: of b.
    """
    value = np.empty(len(row), np.float32)
    for start, crossed in _crossed(distance, a, b):
        some = slice(*np.searchsorted(row, [start, start + len(crossed)]))
        value[some] = crossed[row[some] - start, column[some]]
    value.sort()
    below, upto = np.zeros((2, len(row)), np.intp)
    for _, crossed in _crossed(distance, a, b):
        ascending = np.sort(crossed, axis=None)
        below += np.searchsorted(ascending, value, side="left")
        upto += np.searchsorted(ascending, value, side="right")
    return value, below, upto


def _crossed(distance: Distance, a: Vectors, b: Vectors) -> Iterator[tuple[int, Crossed]]:
    """All with all, some rows of a at a time, each time with the first of them."""
    for rows in chunks(len(a), len(b)):
        yield rows.start, distance.cross(a[rows], b)
