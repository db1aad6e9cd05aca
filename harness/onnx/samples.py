"""A few patches that stand for a data set."""

import numpy as np

from harness.types import Dataset, Patches

CALIBRATING = 256  # patches that int8 takes its scales from
FROM = 16  # blocks of a data set that such patches are taken from


def some_patches(dataset: Dataset, n: int) -> Patches:
    """About n patches, from blocks all over a data set."""
    blocks = dataset.blocks[:: -(-len(dataset.blocks) // FROM)]
    each = -(-n // len(blocks))
    rows = [np.linspace(0, block.size - 1, min(each, block.size)).astype(int) for block in blocks]
    return np.concatenate([block.read()[some] for block, some in zip(blocks, rows, strict=True)])
