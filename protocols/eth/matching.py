"""Matches of two images: the nearest, clearly nearer than the second, and mutual. Exact and fast.

Row i of the first image and row j of the second match if j is nearest to i, the distance of the
two is at most 0.8 (or another ratio) of that to the second nearest, and i is nearest to j. The
ratio is of Euclidean distances, not of squares, and of the first image's rows only. Of rows that
tie for nearest the first counts, as in the official code. One row in all has no second: it passes.
Where both distances are 0 the ratio is undefined and nothing matches.

Distances are Euclidean ones for every descriptor, as in the official code. Those compared by angle
are unit vectors, which have the same neighbours; bits are numbers 0 and 1, whose squared distance
is Hamming's, so that 0.8 is 0.64 of differing bits.

Distances are measured row with row, as `L2.paired` has them. Few are: a product of the two images'
vectors bounds all others from below. To be fast it takes a part of each vector, the coordinates
along the axes in which the vectors of the scene differ most, and the length of the rest:
|a - b|^2 >= |a' - b'|^2 + (|a''| - |b''|)^2. What such bounds leave open is decided by the product
of the whole vectors, and what rounding leaves open there by measuring.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Float64, Int, UInt32

from harness.distances import L2, Distance, chunks
from harness.types import Vectors

RATIO = 0.8  # of the official script
LEAST = 15  # matches of two images; fewer are none

ENERGY = 0.95  # of the variance is in the coordinates that are compared first
WORTH = 0.75  # of all coordinates: if more are needed, whole vectors are compared at once
SAMPLE = 10_000  # vectors that tell the axes

Numbers = Float32[np.ndarray, "_ _"]
Squares = Float64[np.ndarray, " _"]
Some = Int[np.ndarray, " _"]
Matches = UInt32[np.ndarray, "m 2"]


@dataclass(frozen=True, eq=False)
class Axes:
    """How the vectors of a scene are compared: around their mean, along a few directions first."""

    distance: Distance
    mean: Float64[np.ndarray, " dim"]
    directions: Float64[np.ndarray, "dim few"]  # orthonormal; all of them where few would not do

    def parts(self, numbers: Numbers) -> tuple[Numbers, Numbers]:
        """The numbers around their mean: what is compared first of them, and all."""
        centred = numbers - self.mean
        whole = centred.astype(np.float32)
        if self.directions.shape[1] == numbers.shape[1]:
            return whole, whole
        first = centred @ self.directions
        rest = np.einsum("nd,nd->n", centred, centred) - np.einsum("nd,nd->n", first, first)
        rest = np.sqrt(np.maximum(rest, 0))
        return np.concatenate([first, rest[:, None]], axis=1).astype(np.float32), whole


def numbers_of(vectors: Vectors, distance: Distance) -> Numbers:
    """Vectors as the numbers that are compared: bits become 0 and 1."""
    if distance.dtype is np.uint8:
        return np.unpackbits(vectors, axis=1).astype(np.float32)
    return vectors


def axes(vectors: Sequence[Vectors], distance: Distance) -> Axes:
    """The axes of the vectors of some images, from a sample: any would give the same matches."""
    step = -(-sum(map(len, vectors)) // SAMPLE) or 1
    numbers = numbers_of(np.concatenate([own[::step] for own in vectors]), distance)
    dim = numbers.shape[1]
    mean = numbers.mean(axis=0, dtype=np.float64) if len(numbers) else np.zeros(dim)
    centred = numbers - mean
    variance, directions = np.linalg.eigh(centred.T @ centred)
    share = np.cumsum(variance[::-1]) / max(variance.sum(), np.finfo(np.float64).tiny)
    few = 8 * (1 + int(np.searchsorted(share, ENERGY)) // 8)
    if few > WORTH * dim:
        few = dim
    return Axes(distance, mean, np.ascontiguousarray(directions[:, ::-1][:, :few]))


def match(a: Vectors, b: Vectors, by: Axes, ratio: float = RATIO) -> Matches:
    """Matches of the rows of two images, ascending; at least 15, or none. 0 < ratio <= 1.

    Besides copies of both images' vectors it holds some MiB of distances at a time.
    """
    if not len(a) or not len(b):
        return np.empty((0, 2), np.uint32)
    numbers = numbers_of(np.concatenate([a, b]), by.distance)
    first, whole = by.parts(numbers)
    pair = _Pair(len(a), numbers, first, whole, L2.rounding(whole))
    row, column = _mutual(pair, *_near(pair, ratio))
    found = np.stack([row, column], axis=1).astype(np.uint32)
    return found if len(found) >= LEAST else found[:0]


@dataclass(frozen=True, eq=False)
class _Pair:
    """The vectors of two images, those of the first before those of the second."""

    n: int  # of the first
    numbers: Numbers
    first: Numbers  # parts that are compared first
    whole: Numbers
    reach: float  # of the rounding of products

    def measured(self, rows: Some, columns: Some) -> Squares:
        """Squared distances of rows of the first image and rows of the second."""
        return L2.paired(self.numbers, rows, self.n + columns)


@dataclass(frozen=True, eq=False)
class _Nearest:
    """What the bounds propose for each row of the first image, and what they leave possible."""

    column: Some  # the nearest by its bound
    square: Squares  # measured, to that column
    others: Squares  # by column: bound of the squares to all rows that it is not proposed to


def _near(pair: _Pair, ratio: float) -> tuple[_Nearest, Some, Some, Squares]:
    """Rows whose nearest is clearly nearer than the second, those columns, and the squares."""
    rows = np.arange(pair.n)
    columns, bound, others = _bounds(pair)
    square = pair.measured(rows, columns[0])
    second = np.where(np.isinf(bound[1]), np.inf, pair.measured(rows, columns[1]))
    farther = np.maximum(square, second)
    clear = (bound[1] > 0) & (np.sqrt(square) <= ratio * np.sqrt(bound[1]))
    hopeless = (np.sqrt(bound[0]) > ratio * np.sqrt(farther)) | (farther == 0)
    left = np.flatnonzero(~(clear | hopeless))
    row, column, close = _within(pair, left, slice(pair.n, None), farther[left])
    at = np.flatnonzero(np.diff(row, prepend=-1))  # the nearest of each row; next, the second
    near = (close[at + 1] > 0) & (np.sqrt(close[at]) <= ratio * np.sqrt(close[at + 1]))
    at = at[near]
    sure = np.flatnonzero(clear)
    return (
        _Nearest(columns[0], square, others),
        np.concatenate([sure, left[row[at]]]),
        np.concatenate([columns[0][sure], column[at]]),
        np.concatenate([square[sure], close[at]]),
    )


def _mutual(
    pair: _Pair, proposed: _Nearest, row: Some, column: Some, square: Squares
) -> tuple[Some, Some]:
    """Those of some rows and columns, at these squares, where the row is nearest to the column."""
    order = np.lexsort((proposed.square, proposed.column))
    taken, at = np.unique(proposed.column[order], return_index=True)
    rival = np.full(len(proposed.others), -1)  # by column, the nearest row it is proposed to
    rival[taken] = order[at]
    other = rival[column]
    gap = np.where(other < 0, np.inf, proposed.square[other]) - square
    kept = np.flatnonzero((gap > 0) | ((gap == 0) & (row <= other)))
    row, column, square = row[kept], column[kept], square[kept]
    mutual = proposed.others[column] > square
    left = np.flatnonzero(~mutual)
    which, nearest, _ = _within(pair, pair.n + column[left], slice(pair.n), square[left])
    at = np.flatnonzero(np.diff(which, prepend=-1))
    mutual[left] = nearest[at] == row[left]
    order = np.flatnonzero(mutual)
    order = order[np.argsort(row[order])]
    return row[order], column[order]


def _bounds(
    pair: _Pair,
) -> tuple[Int[np.ndarray, "2 n"], Float64[np.ndarray, "2 n"], Float64[np.ndarray, " m"]]:
    """Of each row the columns of the two least bounds, and these; `others` of each column."""
    propose = L2.propose(pair.first[pair.n :])
    others = np.full(len(pair.first) - pair.n, np.inf, np.float32)
    columns, bound = np.empty((2, pair.n), np.intp), np.empty((2, pair.n), np.float32)
    for rows in chunks(pair.n, len(others)):
        product = propose(pair.first[rows])
        row = np.arange(len(product))
        columns[0, rows] = column = product.argmin(axis=1)
        bound[0, rows] = product[row, column]
        product[row, column] = np.inf
        columns[1, rows] = column = product.argmin(axis=1)
        bound[1, rows] = product[row, column]
        np.minimum(others, product.min(axis=0), out=others)
    least, others = (np.maximum(v.astype(np.float64) - pair.reach, 0) for v in (bound, others))
    return columns, least, others


def _within(pair: _Pair, rows: Some, others: slice, bound: Squares) -> tuple[Some, Some, Squares]:
    """Which of the others lie within its bound of each row, the nearest first, and the squares."""
    propose = L2.propose(pair.whole[others])
    start, stop, _ = others.indices(len(pair.whole))
    found = [(np.empty(0, np.intp), np.empty(0, np.intp), np.empty(0))]
    for some in chunks(len(rows), stop - start):
        row, column = np.nonzero(
            propose(pair.whole[rows[some]]) <= (bound[some] + pair.reach)[:, None]
        )
        row += some.start
        square = L2.paired(pair.numbers, rows[row], start + column)
        kept = np.flatnonzero(square <= bound[row])
        kept = kept[np.lexsort((column[kept], square[kept], row[kept]))]
        found.append((row[kept], column[kept], square[kept]))
    row, column, square = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return row, column, square
