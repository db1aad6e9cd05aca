"""L2-Net's figures 3b and 3c: the distribution of a descriptor's values, and the means of its bits.

Section 4.4 takes 100,000 patches of different points.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float32

from harness.errors import InputError
from zoo.papers import patches_of

PATCHES = 100_000
TOGETHER = 256  # patches in one pass
BINS = 60


def bits(
    trained: Path | None,
    data: Sequence[Path],
    *,
    shown: Literal["values", "means"],
    patches: int = PATCHES,
) -> dict[str, Any]:
    """The histogram of all values, or the mean of the sign of each; see `values` and `means`.

    Args:
        trained: folder of the training.
        data: patches of different points are drawn from these data.
        shown: "values" or "means".
        patches: most patches.
    """
    if trained is None:
        raise InputError("the measure bits needs a training: give the cell a recipe")
    network = patches_of.network(trained)
    rng = np.random.default_rng(0)
    drawn = patches_of.one_of_each(patches_of.opened(data), patches, network.side, rng)
    with torch.inference_mode():
        parts = np.array_split(drawn, -(-len(drawn) // TOGETHER))
        vectors = np.concatenate([network(patches_of.grey(part)).numpy() for part in parts])
    return {"values": values, "means": means}[shown](vectors)


def values(vectors: Float32[np.ndarray, "n dim"]) -> dict[str, Any]:
    """Density of the values; the value is their excess kurtosis, 0 for a normal distribution."""
    every = vectors.astype(np.float64).ravel()
    density, edges = np.histogram(every, BINS, density=True)
    middle = (edges[1:] + edges[:-1]) / 2
    normal = np.exp(-(((middle - every.mean()) / every.std()) ** 2) / 2)
    normal /= every.std() * np.sqrt(2 * np.pi)
    excess = float((((every - every.mean()) / every.std()) ** 4).mean() - 3)
    curves = {
        "descriptor": list(zip(middle.tolist(), density.tolist(), strict=True)),
        "normal distribution": list(zip(middle.tolist(), normal.tolist(), strict=True)),
    }
    return {"value": excess, "decimals": 3, "lower_is_better": True, "curves": curves}


def means(vectors: Float32[np.ndarray, "n dim"]) -> dict[str, Any]:
    """Mean of each bit, +1 or -1; the value is the largest distance of a mean from 0."""
    of_bits = np.where(vectors >= 0, 1.0, -1.0).mean(axis=0)
    curve = [(float(bit), mean) for bit, mean in enumerate(of_bits.tolist())]
    worst = float(np.abs(of_bits).max())
    return {"value": worst, "decimals": 3, "lower_is_better": True, "curves": {"mean": curve}}
