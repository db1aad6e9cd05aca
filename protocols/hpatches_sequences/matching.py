"""Mutual nearest neighbours, with an order among equal distances that favours no keypoint."""

import numpy as np
from jaxtyping import Int

from harness.distances import Distance
from harness.types import Rows, Vectors


def mutual(distance: Distance, a: Vectors, b: Vectors) -> tuple[Rows, Rows]:
    """Pairs of rows of a and b, each of which is the other's nearest row; ascending in a.

    Of several nearest rows, row i of a takes the row j of b with the least (j - i) mod n, and row j
    takes the row i with the least (j - i) mod n; n is the larger number of rows. So if all
    distances are equal, row i matches row i. The order of rows must carry no information.
    """
    if not (len(a) and len(b)):
        return np.empty(0, np.intp), np.empty(0, np.intp)
    n = max(len(a), len(b))
    there, back = distance.nearest(a, b), distance.nearest(b, a)
    partner = _first(there.row, there.column, (there.column - there.row) % n)
    returned = _first(back.row, back.column, (back.row - back.column) % n)
    rows = np.flatnonzero(returned[partner] == np.arange(len(a)))
    return rows, partner[rows]


def _first(
    row: Int[np.ndarray, " ties"], column: Int[np.ndarray, " ties"], rank: Int[np.ndarray, " ties"]
) -> Rows:
    """For each row, the column of the least rank."""
    order = np.lexsort((rank, row))
    return column[order[np.searchsorted(row[order], np.arange(row.max() + 1))]]
