"""Distances between vectors. A smaller distance always means more alike.

L2 distances stay squared: the order is the same, and rounding a square root would make different
distances equal. `Distance.unsquared` returns the true distance, for ratios and thresholds.

Only `paired` decides an order. It measures each pair of rows alone, in float64, so that equal rows
tie wherever they stand. All rows against all rows is a matrix product, which is fast but rounded.
It selects the few pairs that rounding could reorder, and `paired` measures these.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float, Float32, Float64, Int, Shaped

from harness.errors import InputError

Vectors = Shaped[np.ndarray, "_ dim"]
"""One vector a row: float32 numbers, or bits packed into uint8, as the distance requires."""

Rows = Int[np.ndarray, " m"]
"""Row numbers of vectors, or of patches in the order of the data set."""

ManyRows = Int[np.ndarray, "*sets m"]
Distances = Float64[np.ndarray, "*sets m"]
Crossed = Float32[np.ndarray, "n m"]

GATHERED = 256  # rows compared at a time: three arrays of 256 x 128 numbers fit in the CPU cache
CROSSED = 1 << 20  # entries of a distance matrix computed at a time: 4 MiB fit in the CPU cache
BLUR = 1e-6  # error of `cross` before rounding to float32, as a fraction of `rounding`


@dataclass(frozen=True)
class Distance:
    """A named distance: between pairs of rows, between all rows, and to the nearest row."""

    name: str
    dtype: type[np.generic]  # of the vectors
    paired: Callable[[Vectors, Rows, ManyRows], Distances]  # between rows a[i] and b[..., i]; exact
    # Every row of a with every row of b, in the order of `paired`, but for the last one or two
    # digits of float32.
    cross: Callable[[Vectors, Vectors], Crossed]
    propose: Callable[[Vectors], "Proposal"]  # takes b; returns a faster, less exact `cross` with b
    # Bound on the error of a difference of two proposals; the error of `cross` is far smaller.
    rounding: Callable[[Vectors], float]
    unsquared: Callable[[np.ndarray], np.ndarray]  # from `paired` to the true distance
    crossed: Callable[[np.ndarray], np.ndarray]  # from `paired` to the scale of `cross`

    def __deepcopy__(self, memo: object) -> "Distance":
        """The distance itself, since distances are compared by identity."""
        return self

    def columns(self, dim: int) -> int:
        """Number of columns of vectors of `dim` numbers; of `dim` bits if bits are packed."""
        return -(-dim // 8) if self.dtype is np.uint8 else dim

    def nearest(self, a: Vectors, b: Vectors) -> "Nearest":
        """The exact nearest rows of b for each row of a, all of them if several tie.

        The fast product proposes; pairs within its rounding error of the smallest are measured.

        Raises:
            InputError: if b has no rows.
        """
        if not len(b):
            raise InputError("no rows to search: the nearest row is undefined")
        both = np.concatenate([a, b])
        reach = self.rounding(both)
        propose = self.propose(b)
        parts = [
            _nearest(self.paired, propose, both, rows, len(a), reach)
            for rows in chunks(len(a), len(b))
        ]
        return Nearest(
            np.concatenate([part.distance for part in parts] or [np.empty(0)]),
            np.concatenate([part.row for part in parts] or [np.empty(0, np.intp)]),
            np.concatenate([part.column for part in parts] or [np.empty(0, np.intp)]),
        )

    def window(
        self, value: Float[np.ndarray, "*any"], both: Vectors
    ) -> tuple[Float32[np.ndarray, "*any"], Float32[np.ndarray, "*any"]]:
        """Smallest and largest entry of `cross` that may tie with a value.

        An entry outside this window is on the right side of the value. An entry inside it has to
        be measured by `paired`.

        Args:
            value: distances in the form of `crossed`, or entries of `cross`.
            both: all vectors that are compared.
        """
        reach = 2 * BLUR * self.rounding(both)
        low, high = (np.asarray(value + side, np.float32) for side in (-reach, reach))
        return np.nextafter(low, np.float32(-np.inf)), np.nextafter(high, np.float32(np.inf))

    def count_nearer(
        self, a: Vectors, b: Vectors, value: Float64[np.ndarray, "n k"]
    ) -> tuple[Int[np.ndarray, "n k"], Int[np.ndarray, "n k"]]:
        """Number of rows of b nearer to row i of a than value[i, k], and number not farther.

        The counts are exact: values come from `paired`, and it measures entries of `cross` that
        may tie with a value.
        """
        both = np.concatenate([a, b])
        low, high = self.window(self.crossed(value), both)
        nearer, upto = np.zeros((2, *value.shape), np.intp)
        for rows in chunks(len(a), len(b)):
            entries = self.cross(a[rows], b)
            ascending = np.sort(entries, axis=1)
            nearer[rows] = count_below(ascending, low[rows], "left")
            upto[rows] = count_below(ascending, high[rows], "right")
            if self.rounding is _exact:
                continue
            undecided = nearer[rows] < upto[rows]
            chunk_rows = np.flatnonzero(undecided.any(axis=1))
            open_rows = chunk_rows + rows.start
            unsure = np.zeros((len(chunk_rows), len(b)), bool)
            for at, k in zip(*np.nonzero(undecided[chunk_rows]), strict=True):
                near, i = entries[chunk_rows[at]], open_rows[at]
                unsure[at] |= (low[i, k] <= near) & (near <= high[i, k])
            row, column = np.nonzero(unsure)
            exact = entries[chunk_rows].astype(np.float64)
            exact[row, column] = self.crossed(self.paired(both, open_rows[row], len(a) + column))
            exact.sort(axis=1)
            wanted = self.crossed(value[open_rows])
            nearer[open_rows] = count_below(exact, wanted, "left")
            upto[open_rows] = count_below(exact, wanted, "right")
        return nearer, upto


@dataclass(frozen=True)
class Nearest:
    """The nearest rows of b for each row of a; a row of a with ties appears once for each."""

    distance: Float64[np.ndarray, " n"]  # from row i of a to its nearest row
    row: Int[np.ndarray, " ties"]  # of a, ascending
    column: Int[np.ndarray, " ties"]  # of b, ascending within one row


Proposal = Callable[[Vectors], Crossed]
"""Takes rows a; returns their distances to all rows of b, computed in float32."""


def _nearest(
    paired: Callable[[Vectors, Rows, Rows], Distances],
    propose: Proposal,
    both: Vectors,
    rows: slice,
    n: int,
    reach: float,
) -> Nearest:
    """The nearest rows of b for these rows of a; `both` holds the n rows of a, then those of b."""
    proposed = propose(both[rows])
    row = np.arange(len(proposed))
    column = proposed.argmin(axis=1)
    least = proposed[row, column]
    proposed[row, column] = np.inf
    unsure = np.flatnonzero(proposed.min(axis=1) <= least + reach)
    if unsure.size:
        sure = np.delete(row, unsure)
        proposed[unsure, column[unsure]] = least[unsure]
        among, others = np.nonzero(proposed[unsure] <= (least[unsure] + reach)[:, None])
        row = np.concatenate([sure, unsure[among]])
        column = np.concatenate([column[sure], others])
    measured = paired(both, row + rows.start, column + n)
    if not unsure.size:
        return Nearest(measured, row + rows.start, column)
    least = np.full(len(proposed), np.inf)
    np.minimum.at(least, row, measured)
    tied = measured == least[row]
    row, column = row[tied], column[tied]
    order = np.lexsort((column, row))
    return Nearest(least, row[order] + rows.start, column[order])


def count_below(
    ascending: Float[np.ndarray, "rows n"],
    value: Float[np.ndarray, "rows m"],
    side: Literal["left", "right"],
) -> Int[np.ndarray, "rows m"]:
    """Number of entries of the row that are below each value ("left"), or not above it ("right").

    It is `np.searchsorted` for many rows at once.
    """
    n = ascending.shape[1]
    row = np.arange(len(ascending))[:, None]
    low = np.zeros(value.shape, np.intp)
    high = np.full(value.shape, n)
    for _ in range(n.bit_length()):
        middle = (low + high) // 2
        at = ascending[row, np.minimum(middle, n - 1)]
        goes_on = (at < value if side == "left" else at <= value) & (middle < high)
        low = np.where(goes_on, middle + 1, low)
        high = np.where(goes_on, high, middle)
    return low


def chunks(n: int, m: int) -> Iterator[slice]:
    """Slices of n rows to compare with m others at a time: CROSSED entries, or one row, each."""
    step = max(1, CROSSED // max(m, 1))
    return (slice(i, min(i + step, n)) for i in range(0, n, step))


def _l2_paired(vectors: Vectors, a: Rows, b: ManyRows) -> Distances:
    out = np.empty(b.shape)
    sets = b.reshape(math.prod(b.shape[:-1]), len(a))
    held = min(GATHERED, len(a)), vectors.shape[1]
    gathered = np.empty(held, vectors.dtype)
    left, apart = np.empty((2, *held))
    for i in range(0, len(a), GATHERED):
        rows = slice(i, min(i + GATHERED, len(a)))
        n = rows.stop - rows.start
        # mode="clip" writes straight into `out`, without a second buffer; all rows exist.
        np.take(vectors, a[rows], axis=0, out=gathered[:n], mode="clip")
        left[:n] = gathered[:n]
        for others, distance in zip(sets, out.reshape(sets.shape), strict=True):
            np.take(vectors, others[rows], axis=0, out=gathered[:n], mode="clip")
            apart[:n] = gathered[:n]
            apart[:n] -= left[:n]
            np.einsum("nd,nd->n", apart[:n], apart[:n], out=distance[rows])
    return out


def _l2_cross(a: Float[np.ndarray, "n d"], b: Float[np.ndarray, "m d"]) -> Crossed:
    # Float64 rounding is too small for float32 to show, except near zero: `less` removes it there.
    a, b = a.astype(np.float64), b.astype(np.float64)
    squares, others = _squared_norm(a), _squared_norm(b)
    # |a|^2 - 2ab + |b|^2 as one product of longer rows saves a second pass over n x m.
    less = 1 - 1e-13  # factor of |a|^2 + |b|^2
    left = np.concatenate([-2 * a, np.ones_like(squares), less * squares], axis=1)
    right = np.concatenate([b, less * others, np.ones_like(others)], axis=1)
    out = np.empty((len(a), len(b)), np.float32)
    return np.maximum(left @ right.T, 0, out=out, casting="same_kind")


def _l2_propose(b: Float[np.ndarray, "m d"]) -> Proposal:
    b = b.astype(np.float32, copy=False)
    right = np.concatenate([b, np.ones((len(b), 1), np.float32), _squared_norm(b)], axis=1).T

    def propose(a: Float[np.ndarray, "n d"]) -> Crossed:
        a = a.astype(np.float32, copy=False)
        ones = np.ones((len(a), 1), np.float32)
        return np.concatenate([-2 * a, _squared_norm(a), ones], axis=1) @ right

    return propose


def _squared_norm(a: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n 1"]:
    return np.einsum("nd,nd->n", a, a)[:, None]


def _l2_rounding(vectors: Float[np.ndarray, "n d"]) -> float:
    """Worst error of two float32 sums of d + 2 products, together at most 4 largest norms."""
    largest = float(_squared_norm(vectors).max(initial=0))
    return 5 * (vectors.shape[1] + 2) * float(np.finfo(np.float32).eps) * largest


def _hamming_paired(vectors: Vectors, a: Rows, b: ManyRows) -> Distances:
    out = np.empty(b.shape)
    for i in range(0, len(a), GATHERED):
        rows = slice(i, i + GATHERED)
        differing = np.bitwise_count(vectors[a[rows]] ^ vectors[b[..., rows]])
        out[..., rows] = differing.sum(axis=-1, dtype=np.int64)
    return out


def _hamming_cross(a: Vectors, b: Vectors) -> Crossed:
    return _hamming_propose(b)(a)


def _hamming_propose(b: Vectors) -> Proposal:
    # With bits as -1 and 1, a product is equal bits minus different bits; exact below 2^24 bits.
    right = _signs(b).T

    def propose(a: Vectors) -> Crossed:
        agreement = _signs(a) @ right
        np.subtract(len(right), agreement, out=agreement)
        agreement *= 0.5
        return agreement

    return propose


def _signs(bits: Vectors) -> Float32[np.ndarray, "n bits"]:
    return 1 - 2 * np.unpackbits(bits, axis=1).astype(np.float32)


def _angle_paired(vectors: Vectors, a: Rows, b: ManyRows) -> Distances:
    # Computed from the chord, since arccos of a rounded inner product loses small angles.
    return 2 * np.arcsin(np.clip(np.sqrt(_l2_paired(vectors, a, b)) / 2, 0, 1))


def _squared_chord(angle: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    return np.square(2 * np.sin(angle / 2))


def _as_it_is(distance: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    return distance


def _exact(vectors: Vectors) -> float:
    return 0.0


L2 = Distance(
    "l2", np.float32, _l2_paired, _l2_cross, _l2_propose, _l2_rounding, np.sqrt, _as_it_is
)
HAMMING = Distance(
    "hamming", np.uint8, _hamming_paired, _hamming_cross, _hamming_propose, _exact, _as_it_is,
    _as_it_is,
)  # fmt: skip
ANGLE = Distance(  # the order of angles is that of squared chords
    "angle", np.float32, _angle_paired, _l2_cross, _l2_propose, _l2_rounding, _as_it_is,
    _squared_chord,
)  # fmt: skip

DISTANCES = {distance.name: distance for distance in (L2, HAMMING, ANGLE)}
