"""Matches two images: mutual nearest neighbours that pass the ratio test. Exact and fast.

Row i of the first image and row j of the second match if j is nearest to i, the distance of the
two is at most 0.8 (or another ratio) times the distance from i to its second nearest row, and i is
nearest to j. The ratio is of Euclidean distances, not of squares, and of the first image's rows
only. If rows tie for nearest, the first counts, as in the official code. If the second image has
one row, there is no second nearest, and the test is passed. If both distances are 0, the ratio is
undefined and nothing matches.

All descriptors are compared by Euclidean distance, as in the official code. Descriptors compared by
angle are unit vectors, whose neighbours are the same. Bits are numbers 0 and 1, whose squared
distance is Hamming's, so that a ratio of 0.8 means 0.64 in differing bits.

Exact distances are measured row by row, by `L2.paired`, and only for few pairs. For the other pairs
a lower bound is enough, from a matrix product of the two images' vectors. To be fast, the product
uses a part of each vector: the coordinates a' along the axes in which the scene's vectors differ
most, and the length of the rest a'': |a - b|^2 >= |a' - b'|^2 + (|a''| - |b''|)^2. Where these
bounds do not decide, the product of the whole vectors does; where rounding leaves that undecided,
the exact distance does.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Float64, Int, UInt32

from harness.distances import L2, Distance, chunks
from harness.types import Vectors

RATIO = 0.8  # of the official script
LEAST = 15  # two images with fewer matches count as having none

ENERGY = 0.95  # share of the variance in the coordinates that are compared first
WORTH = 0.75  # if more than this share of the coordinates is needed, whole vectors are compared
SAMPLE = 10_000  # most vectors that the axes are computed from

Numbers = Float32[np.ndarray, "_ _"]
Squares = Float64[np.ndarray, " _"]
Some = Int[np.ndarray, " _"]
Matches = UInt32[np.ndarray, "m 2"]


@dataclass(frozen=True, eq=False)
class Axes:
    """The mean and the principal axes of a scene's vectors; a few axes are compared first."""

    distance: Distance
    mean: Float64[np.ndarray, " dim"]
    directions: Float64[np.ndarray, "dim few"]  # orthonormal; all axes if a few are not enough

    def parts(self, numbers: Numbers) -> tuple[Numbers, Numbers]:
        """The centred numbers, twice: the part that is compared first, and the whole."""
        centred = numbers - self.mean
        whole = centred.astype(np.float32)
        if self.directions.shape[1] == numbers.shape[1]:
            return whole, whole
        first = centred @ self.directions
        rest = np.einsum("nd,nd->n", centred, centred) - np.einsum("nd,nd->n", first, first)
        rest = np.sqrt(np.maximum(rest, 0))
        return np.concatenate([first, rest[:, None]], axis=1).astype(np.float32), whole


def numbers_of(vectors: Vectors, distance: Distance) -> Numbers:
    """Vectors as float32 numbers for comparison: bits become 0 and 1."""
    if distance.dtype is np.uint8:
        return np.unpackbits(vectors, axis=1).astype(np.float32)
    return vectors


def axes(vectors: Sequence[Vectors], distance: Distance) -> Axes:
    """The axes of the images' vectors, from a sample; the sample does not change the matches."""
    step = -(-sum(map(len, vectors)) // SAMPLE) or 1
    numbers = numbers_of(np.concatenate([rows[::step] for rows in vectors]), distance)
    dim = numbers.shape[1]
    mean = numbers.mean(axis=0, dtype=np.float64) if len(numbers) else np.zeros(dim)
    centred = numbers - mean
    variance, directions = np.linalg.eigh(centred.T @ centred)
    share = np.cumsum(variance[::-1]) / max(variance.sum(), np.finfo(np.float64).tiny)
    few = 8 * (1 + int(np.searchsorted(share, ENERGY)) // 8)
    if few > WORTH * dim:
        few = dim
    return Axes(distance, mean, np.ascontiguousarray(directions[:, ::-1][:, :few]))


def match(
    a: Vectors, b: Vectors, by: Axes, ratio: float = RATIO, *, least: int | None = None
) -> Matches:
    """Matches of the rows of two images, ascending. 0 < ratio <= 1.

    There are at least `least` matches (None: LEAST), or none.
    Memory: copies of both images' vectors, and some MiB of distances at a time.
    """
    if not len(a) or not len(b):
        return np.empty((0, 2), np.uint32)
    numbers = numbers_of(np.concatenate([a, b]), by.distance)
    first, whole = by.parts(numbers)
    pair = _TwoImages(len(a), numbers, first, whole, L2.rounding(whole))
    row, column = _mutual(pair, *_near(pair, ratio))
    matches = np.stack([row, column], axis=1).astype(np.uint32)
    return matches if len(matches) >= (LEAST if least is None else least) else matches[:0]


@dataclass(frozen=True, eq=False)
class _TwoImages:
    """The vectors of two images, in one array; the first image comes first."""

    n: int  # rows of the first image
    numbers: Numbers
    first: Numbers  # the parts that are compared first
    whole: Numbers
    reach: float  # largest rounding error of the product

    def measured(self, rows: Some, columns: Some) -> Squares:
        """Squared distances of rows of the first image to rows of the second."""
        return L2.paired(self.numbers, rows, self.n + columns)


@dataclass(frozen=True, eq=False)
class _Nearest:
    """The nearest column that the bounds propose for each row, and bounds of all other pairs."""

    column: Some  # the column with the least bound
    square: Squares  # exact squared distance to that column
    others: Squares  # by column: lower bound of the squares to the rows it is not proposed to


def _near(pair: _TwoImages, ratio: float) -> tuple[_Nearest, Some, Some, Squares]:
    """Rows that pass the ratio test, their nearest columns and squares; and all proposals."""
    rows = np.arange(pair.n)
    columns, bound, others = _bounds(pair)
    square = pair.measured(rows, columns[0])
    second = np.where(np.isinf(bound[1]), np.inf, pair.measured(rows, columns[1]))
    farther = np.maximum(square, second)
    clear = (bound[1] > 0) & (np.sqrt(square) <= ratio * np.sqrt(bound[1]))
    hopeless = (np.sqrt(bound[0]) > ratio * np.sqrt(farther)) | (farther == 0)
    left = np.flatnonzero(~(clear | hopeless))
    row, column, close = _within(pair, left, slice(pair.n, None), farther[left])
    at = np.flatnonzero(np.diff(row, prepend=-1))  # each row's nearest; the second follows it
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
    pair: _TwoImages, proposed: _Nearest, row: Some, column: Some, square: Squares
) -> tuple[Some, Some]:
    """The pairs of a row and a column at which the row is also nearest to the column."""
    order = np.lexsort((proposed.square, proposed.column))
    taken, at = np.unique(proposed.column[order], return_index=True)
    rival = np.full(len(proposed.others), -1)  # by column: the nearest row that proposes it
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
    pair: _TwoImages,
) -> tuple[Int[np.ndarray, "2 n"], Float64[np.ndarray, "2 n"], Float64[np.ndarray, " m"]]:
    """The columns of each row's two least bounds, the bounds, and `others` of each column."""
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


def _within(
    pair: _TwoImages, rows: Some, others: slice, bound: Squares
) -> tuple[Some, Some, Squares]:
    """Pairs of a row and another vector within the row's bound, nearest first, and the squares."""
    propose = L2.propose(pair.whole[others])
    start, stop, _ = others.indices(len(pair.whole))
    pieces = [(np.empty(0, np.intp), np.empty(0, np.intp), np.empty(0))]
    for some in chunks(len(rows), stop - start):
        row, column = np.nonzero(
            propose(pair.whole[rows[some]]) <= (bound[some] + pair.reach)[:, None]
        )
        row += some.start
        square = L2.paired(pair.numbers, rows[row], start + column)
        kept = np.flatnonzero(square <= bound[row])
        kept = kept[np.lexsort((column[kept], square[kept], row[kept]))]
        pieces.append((row[kept], column[kept], square[kept]))
    row, column, square = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
    return row, column, square
