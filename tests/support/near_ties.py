"""Vectors whose distances differ, but by less than float32 can tell; and all their distances."""

import numpy as np


def nearly_tied(seed, n, dim=32, of=4):
    """Rows that are one of a few, but for the last digit of some numbers."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((of, dim), dtype=np.float32)[rng.integers(of, size=n)]
    digit = np.nextafter(rows, np.float32(np.inf))
    return np.where(rng.random(rows.shape) < 0.1, digit, rows)


def all_pairs(distance, a, b):
    """Every row with every row, measured one by one."""
    row, column = (i.ravel() for i in np.indices((len(a), len(b))))
    measured = distance.paired(np.concatenate([a, b]), row, len(a) + column)
    return measured.reshape(len(a), len(b))
