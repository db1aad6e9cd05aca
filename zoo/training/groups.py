"""A training set sorted by points: the rows that show each point, and the image of each row."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Int

Rows = Int[np.ndarray, " n"]


@dataclass(frozen=True, eq=False)
class Groups:
    """Rows of a training set, sorted by point. Points are numbered from 0, without gaps."""

    order: Rows  # rows of the training set, point after point
    start: Int[np.ndarray, " points_and_one"]  # point p shows in order[start[p] : start[p + 1]]
    image: Int[np.ndarray, " all"]  # of every row of the training set

    @classmethod
    def of(
        cls,
        point: Int[np.ndarray, " all"],
        image: Int[np.ndarray, " all"],
        rows: Rows | None = None,
    ) -> "Groups":
        """Groups of a training set with these points and images; if `rows` is given, only those."""
        rows = np.arange(len(point)) if rows is None else rows
        _, number, size = np.unique(point[rows], return_inverse=True, return_counts=True)
        order = rows[np.argsort(number, kind="stable")]
        return cls(order, np.concatenate([[0], np.cumsum(size)]), image)

    def __len__(self) -> int:
        """Number of points."""
        return len(self.start) - 1

    @cached_property
    def size(self) -> Rows:
        """Number of rows of each point."""
        return np.diff(self.start)

    def rows(self, point: int | np.integer) -> Rows:
        """The rows that show one point."""
        return self.order[self.start[point] : self.start[point + 1]]
