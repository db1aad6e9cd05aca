"""Distances between descriptor rows. Smaller is always more alike.

L2 is kept squared: the order is the same, and rounding a square root would tie distances that
differ. `Distance.unsquared` gives the distance itself where a ratio or a threshold needs it.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float32, Int, Shaped

Vectors = Shaped[np.ndarray, "_ dim"]
"""One descriptor a row: float32 numbers, or bits packed into uint8, as its distance takes them."""

Rows = Int[np.ndarray, " m"]
"""Indices of vectors, or of patches in data-set order."""

ManyRows = Int[np.ndarray, "*sets m"]
Distances = Float32[np.ndarray, "*sets m"]
Crossed = Float32[np.ndarray, "n m"]

GATHERED = 4096  # rows compared at a time: two such gathers of 128 floats stay in the cache
CROSSED = 1 << 20  # entries of an all-with-all matrix held at a time: 4 MiB stay in the cache


@dataclass(frozen=True)
class Distance:
    """A named distance in its three shapes: row with row, all with all, nearest of each."""

    name: str
    dtype: type[np.generic]  # of the vectors
    paired: Callable[[Vectors, Rows, ManyRows], Distances]  # rows a[i] with rows b[..., i]
    cross: Callable[[Vectors, Vectors], Crossed]  # every row with every row; ties come out equal
    propose: Callable[[Vectors], "Proposal"]  # of b: a faster `cross` with b, or in its order
    rounding: Callable[[Vectors], float]  # bound on the error of a difference of two of its entries
    unsquared: Callable[[np.ndarray], np.ndarray]  # from what is returned to the distance named

    def columns(self, dim: int) -> int:
        """Columns that vectors of `dim` numbers take, or of `dim` bits where bits are packed."""
        return -(-dim // 8) if self.dtype is np.uint8 else dim

    def nearest(self, a: Vectors, b: Vectors) -> "Nearest":
        """Rows of b nearest to each row of a, exactly: every one of several that tie.

        The fast product only proposes. What lies within its rounding of the least is measured
        again row with row, so equal vectors tie and the order of b does not matter.

        Raises:
            ValueError: if b has no rows.
        """
        if not len(b):
            raise ValueError("no rows to search: the nearest is undefined")
        both = np.concatenate([a, b])
        reach = self.rounding(both)
        propose = self.propose(b)
        found = [
            _nearest(self.paired, propose, both, rows, len(a), reach)
            for rows in chunks(len(a), len(b))
        ]
        return Nearest(
            np.concatenate([part.distance for part in found] or [np.empty(0, np.float32)]),
            np.concatenate([part.row for part in found] or [np.empty(0, np.intp)]),
            np.concatenate([part.column for part in found] or [np.empty(0, np.intp)]),
        )


@dataclass(frozen=True)
class Nearest:
    """The nearest rows of b for each row of a; a row that ties appears once for each."""

    distance: Float32[np.ndarray, " n"]  # from row i of a to its nearest
    row: Int[np.ndarray, " ties"]  # of a, ascending
    column: Int[np.ndarray, " ties"]  # of b, ascending within one row


Proposal = Callable[[Vectors], Crossed]
"""Rows a -> all with all, as far as float32 goes."""


def _nearest(
    paired: Callable[[Vectors, Rows, Rows], Distances],
    propose: Proposal,
    both: Vectors,
    rows: slice,
    n: int,
    reach: float,
) -> Nearest:
    """For some rows of the first n of `both`, the nearest among the others."""
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
    least = np.full(len(proposed), np.inf, np.float32)
    np.minimum.at(least, row, measured)
    tied = measured == least[row]
    row, column = row[tied], column[tied]
    order = np.lexsort((column, row))
    return Nearest(least, row[order] + rows.start, column[order])


def chunks(n: int, m: int) -> Iterator[slice]:
    """Rows of n to compare with m others at a time: CROSSED entries, or one row."""
    step = max(1, CROSSED // max(m, 1))
    return (slice(i, min(i + step, n)) for i in range(0, n, step))


def _l2_paired(vectors: Vectors, a: Rows, b: ManyRows) -> Distances:
    out = np.empty(b.shape, np.float32)
    sets = b.reshape(math.prod(b.shape[:-1]), len(a))
    left, right = np.empty((2, min(GATHERED, len(a)), vectors.shape[1]), np.float32)
    for i in range(0, len(a), GATHERED):
        rows = slice(i, min(i + GATHERED, len(a)))
        n = rows.stop - rows.start
        # "clip" gathers straight into `out`, without a second buffer; rows are known to exist.
        np.take(vectors, a[rows], axis=0, out=left[:n], mode="clip")
        for others, distance in zip(sets, out.reshape(sets.shape), strict=True):
            np.take(vectors, others[rows], axis=0, out=right[:n], mode="clip")
            right[:n] -= left[:n]
            np.einsum("nd,nd->n", right[:n], right[:n], out=distance[rows])
    return out


def _l2_cross(a: Float32[np.ndarray, "n d"], b: Float32[np.ndarray, "m d"]) -> Crossed:
    # Rounding of float64 vanishes in float32, except next to zero: there it is taken off.
    a, b = a.astype(np.float64), b.astype(np.float64)
    squares, others = _squared_norm(a), _squared_norm(b)
    # |a|^2 - 2ab + |b|^2 as one product of longer rows: no second pass over n x m.
    less = 1 - 1e-13  # of |a|^2 + |b|^2
    left = np.concatenate([-2 * a, np.ones_like(squares), less * squares], axis=1)
    right = np.concatenate([b, less * others, np.ones_like(others)], axis=1)
    out = np.empty((len(a), len(b)), np.float32)
    return np.maximum(left @ right.T, 0, out=out, casting="same_kind")


def _l2_propose(b: Float32[np.ndarray, "m d"]) -> Proposal:
    right = np.concatenate([b, np.ones((len(b), 1), np.float32), _squared_norm(b)], axis=1).T

    def propose(a: Float32[np.ndarray, "n d"]) -> Crossed:
        ones = np.ones((len(a), 1), np.float32)
        return np.concatenate([-2 * a, _squared_norm(a), ones], axis=1) @ right

    return propose


def _squared_norm(a: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n 1"]:
    return np.einsum("nd,nd->n", a, a)[:, None]


def _l2_rounding(vectors: Float32[np.ndarray, "n d"]) -> float:
    """Worst case of two float32 sums of d + 2 products, which are 4 such norms at most together."""
    largest = float(_squared_norm(vectors).max(initial=0))
    return 5 * (vectors.shape[1] + 2) * float(np.finfo(np.float32).eps) * largest


def _hamming_paired(vectors: Vectors, a: Rows, b: ManyRows) -> Distances:
    out = np.empty(b.shape, np.float32)
    for i in range(0, len(a), GATHERED):
        rows = slice(i, i + GATHERED)
        differing = np.bitwise_count(vectors[a[rows]] ^ vectors[b[..., rows]])
        out[..., rows] = differing.sum(axis=-1, dtype=np.int64)
    return out


def _hamming_cross(a: Vectors, b: Vectors) -> Crossed:
    return _hamming_propose(b)(a)


def _hamming_propose(b: Vectors) -> Proposal:
    # Bits as -1 and 1: their product counts agreements minus differences, exact below 2^24 bits.
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
    # From the chord: arccos of a rounded inner product loses small angles.
    return (2 * np.arcsin(np.clip(np.sqrt(_l2_paired(vectors, a, b)) / 2, 0, 1))).astype(np.float32)


def _angle_cross(a: Vectors, b: Vectors) -> Crossed:
    return (2 * np.arcsin(np.clip(np.sqrt(_l2_cross(a, b)) / 2, 0, 1))).astype(np.float32)


def _as_it_is(distance: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    return distance


def _exact(vectors: Vectors) -> float:
    return 0.0


L2 = Distance("l2", np.float32, _l2_paired, _l2_cross, _l2_propose, _l2_rounding, np.sqrt)
HAMMING = Distance(
    "hamming", np.uint8, _hamming_paired, _hamming_cross, _hamming_propose, _exact, _as_it_is
)
ANGLE = Distance(
    "angle", np.float32, _angle_paired, _angle_cross, _l2_propose, _l2_rounding, _as_it_is
)  # the nearest by the angle is the nearest by the chord

DISTANCES = {distance.name: distance for distance in (L2, HAMMING, ANGLE)}
