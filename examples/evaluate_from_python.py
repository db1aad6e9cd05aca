"""Evaluates models from Python: a leaderboard of two descriptors, on HPatches or on a sample.

python examples/evaluate_from_python.py [FOLDER]

FOLDER holds HPatches' patches; without it, a small sample is made from photographs.
"""

import sys

import numpy as np

import harness
from harness.distances import L2

GRID = 8


def describe(patches: np.ndarray) -> np.ndarray:
    """A descriptor of one's own: a grid of grey values, with zero mean."""
    n, side, _ = patches.shape
    rows = np.linspace(0, side - 1, GRID).round().astype(int)
    values = patches[:, rows][:, :, rows].reshape(n, GRID * GRID).astype(np.float32)
    return values - values.mean(axis=1, keepdims=True)


mine = harness.Descriptor("grid", describe, L2, dim=GRID * GRID, licence="CC0-1.0")
folder = sys.argv[1] if len(sys.argv) > 1 else None
records = harness.evaluate([mine, "rootsift"], "hpatches", data=folder)
table = harness.leaderboard(records)
print(table[["model", "dim", "matching/map", "retrieval/map", "verification/map"]].to_string())
