"""Vectors with distances that float32 can't tell apart, and exact distances of all pairs."""

import numpy as np


def nearly_tied(seed, n, dim=32, of=4):
    """n copies of a few rows, in which some numbers differ in the last float32 digit."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((of, dim), dtype=np.float32)[rng.integers(of, size=n)]
    digit = np.nextafter(rows, np.float32(np.inf))
    return np.where(rng.random(rows.shape) < 0.1, digit, rows)


def all_pairs(distance, a, b):
    """The distance of every row of a to every row of b, by `paired`."""
    row, column = (i.ravel() for i in np.indices((len(a), len(b))))
    measured = distance.paired(np.concatenate([a, b]), row, len(a) + column)
    return measured.reshape(len(a), len(b))
