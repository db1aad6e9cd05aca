"""DOAP's figure 7: patches of some points before and after the spatial transformer."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from harness.errors import InputError
from zoo.backbones import resize, standardise
from zoo.doap_networks import SpatialTransformer
from zoo.papers import patches_of
from zoo.training.patches import stored

SIDE = 32  # of an aligned patch
POINTS = 64  # whose patches are measured
SHOWN = 2  # points that the figure shows


def alignment(
    trained: Path | None,
    data: Sequence[Path],
    *,
    aligned: bool = True,
    each: int = 16,
    points: int = POINTS,
) -> dict[str, Any]:
    """How much the patches of a point differ, and the patches of two points.

    The value is the standard deviation of each pixel over the standardised patches of a point; the
    mean over pixels and points. If all are equal it is 0, if none are alike about 1.

    Args:
        trained: folder of a training of a network with a spatial transformer.
        data: training data with `each` patches of a point or more.
        aligned: whether the transformer samples the patches; false: they are only resized.
        each: patches of a point.
        points: most points.

    Raises:
        InputError: if the network has no transformer, or no point has so many patches.
    """
    network = patches_of.network(trained) if trained else None
    if not isinstance(network, SpatialTransformer):
        raise InputError("the measure alignment needs a training with a spatial transformer")
    dataset = patches_of.opened(data)
    rows = patches_of.whole_points(dataset, points, each, np.random.default_rng(0))
    if not len(rows):
        raise InputError(f"no point of {dataset.name} has {each} patches")
    patches = patches_of.grey(stored(dataset, network.side)[rows.ravel()])
    with torch.inference_mode():
        seen = network.aligned(patches) if aligned else resize(patches, SIDE)
    by_point = seen.unflatten(0, rows.shape)
    label = "aligned" if aligned else "original"
    strips = [
        {
            "label": f"point {number}, {label}",
            "side": SIDE,
            "patches": patches_of.as_text(
                of_point[:, 0].round().clamp(0, 255).to(torch.uint8).numpy()
            ),
        }
        for number, of_point in enumerate(by_point[:SHOWN], 1)
    ]
    return {
        "value": difference(by_point),
        "decimals": 3,
        "lower_is_better": True,
        "strips": strips,
    }


def difference(patches: Float[torch.Tensor, "points each 1 side side"]) -> float:
    """Standard deviation of each pixel over the standardised patches of a point; the mean."""
    normal = standardise(patches.flatten(0, 1)).unflatten(0, patches.shape[:2])
    return float(normal.std(dim=1, correction=0).mean())
