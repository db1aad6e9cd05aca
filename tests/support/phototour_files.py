"""Writes small scenes in the official PhotoTour format."""

import numpy as np

from protocols.phototour.writer import write_scene

TEST = "m50_60_60_0.txt"


def made_patches(n, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (n, 64, 64), dtype=np.uint8)


def made_pairs(point, m, seed=0):
    """m pairs of rows, alternately non-matches and matches; rows 2 i and 2 i + 1 show one point."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, len(point) // 2 * 2, m)
    b = np.where(np.arange(m) % 2, a ^ 1, (a + 2) % len(point))
    return np.stack([a, b], axis=1)


def made_scene(folder, n=40, *, seed=0, images=2, pairs=None, patches=None):
    """Write a scene of n patches, two of each point; returns patches and points."""
    patches = made_patches(n, seed) if patches is None else patches
    point = np.arange(n) // 2
    interest = np.random.default_rng(seed).random((n, 5)).round(3)
    interest[:, 0] = point % images
    pairs = {TEST: made_pairs(point, 60, seed)} if pairs is None else pairs
    write_scene(folder, [patches], point, interest, pairs)
    return patches, point
