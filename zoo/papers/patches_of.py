"""Patches of training data that measures show or describe."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8

from harness.data import training_sets
from harness.types import Dataset, Patches
from zoo import card, trained
from zoo.backbones import Network
from zoo.training.folder import CARD, WEIGHTS
from zoo.training.groups import Groups
from zoo.training.patches import stored


def opened(data: Sequence[Path]) -> Dataset:
    """The training data in some folders."""
    return training_sets.joined([training_sets.open_set(str(folder)) for folder in data])


def network(folder: Path) -> Network:
    """The network of a finished training, in evaluation mode."""
    return trained.load(folder / WEIGHTS, card.read(folder / CARD))


def one_of_each(
    dataset: Dataset, most: int, side: int, rng: np.random.Generator
) -> UInt8[np.ndarray, "n side side"]:
    """A patch of each of some points, drawn at random."""
    groups = Groups.of(dataset.point, dataset.image)
    chosen = rng.permutation(len(groups))[:most]
    rows = np.array([groups.rows(point)[0] for point in chosen])
    return stored(dataset, side)[rows]


def whole_points(
    dataset: Dataset, most: int, each: int, rng: np.random.Generator
) -> Int[np.ndarray, "points each"]:
    """Rows of some points that have at least `each` patches; the first rows of each point."""
    groups = Groups.of(dataset.point, dataset.image)
    large = np.flatnonzero(groups.size >= each)
    chosen = rng.permutation(large)[:most]
    return np.array([groups.rows(point)[:each] for point in chosen])


def grey(patches: Patches) -> Float[torch.Tensor, "n 1 side side"]:
    """Patches as networks take them."""
    return torch.from_numpy(np.ascontiguousarray(patches))[:, None].float()


def as_text(patches: UInt8[np.ndarray, "n side side"]) -> list[str]:
    """Grey values as hexadecimal digits, a text for each patch."""
    return [patch.tobytes().hex() for patch in patches]
