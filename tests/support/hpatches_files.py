"""Writes small HPatches sets for tests."""

import json

import cv2
import numpy as np

from protocols.hpatches.reader import STRIPS


def write_set(root, lengths, *, size=8, seed=0, splits=None):
    """Write sequences of n points; all strips show the same points, with growing noise."""
    rng = np.random.default_rng(seed)
    for sequence, n in lengths.items():
        folder = root / "patches" / sequence
        folder.mkdir(parents=True)
        points = rng.integers(0, 256, (n, size, size))
        for place, strip in enumerate(STRIPS):
            noisy = points + rng.normal(0, 4 * place, points.shape)
            image = np.clip(noisy, 0, 255).astype(np.uint8).reshape(n * size, size)
            assert cv2.imwrite(str(folder / f"{strip}.png"), image)
    if splits is not None:
        (root / "tasks").mkdir()
        (root / "tasks" / "splits.json").write_text(json.dumps(splits))
    return root


LENGTHS = {"i_one": 9, "i_two": 8, "v_one": 7, "v_two": 9}
SPLITS = {"a": {"name": "a", "test": ["v_one", "i_one"], "train": ["i_two", "v_two"]}}
