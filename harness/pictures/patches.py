"""Reads the data of a picture: a protocol's data set, some of its patches, some of its rows."""

from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np
from jaxtyping import Int, UInt8

from harness import loading
from harness.errors import InputError
from harness.pictures.canvas import SIDE
from harness.types import Dataset, Rows

Patch = UInt8[np.ndarray, "_side _side"]

MOST = 20_000  # patches of a data set that a picture compares


def dataset_of(protocol: str, data: Path | None, split: str | None) -> Dataset:
    """The data set of a protocol, or of the first protocol of a family.

    Raises:
        HarnessError: as `load_protocol` does.
    """
    name = loading.protocol_names(protocol)[0]  # all protocols of a family have one data set
    return loading.open_protocol(name, loading.of_data({}, data, split), silent=False).dataset


def some_rows(dataset: Dataset, seed: int, most: int = MOST) -> Rows:
    """Rows of all patches of some points, as many as there is room for; all rows if they are few.

    The same seed gives the same rows.
    """
    if len(dataset) <= most:
        return np.arange(len(dataset))
    points, point = np.unique(dataset.point, return_inverse=True)
    order = np.random.default_rng(seed).permutation(len(points))
    size = np.bincount(point)
    chosen = order[np.cumsum(size[order]) <= most]
    return np.flatnonzero(np.isin(point, chosen))


def must_match(dataset: Dataset) -> None:
    """Refuse a data set in which no two patches are known to match.

    Raises:
        InputError: if there is none; says what can be shown.
    """
    if len(np.unique(dataset.point)) == len(dataset):
        raise InputError(
            f"{dataset.name} does not say which of its patches match; `harness show neighbours` and"
            " `harness show map` need no matches"
        )


def read(dataset: Dataset, rows: Sequence[int] | Int[np.ndarray, " n"]) -> dict[int, Patch]:
    """Patches by row, resized to SIDE pixels; only the blocks that hold them are read."""
    wanted = np.unique(np.asarray(rows, np.intp))
    found: dict[int, Patch] = {}
    start = 0
    for block in dataset.blocks:
        inside = wanted[(start <= wanted) & (wanted < start + block.size)]
        if len(inside):
            patches = block.read()
            found |= {int(row): _resized(patches[row - start]) for row in inside}
        start += block.size
    return found


def _resized(patch: UInt8[np.ndarray, "height width"]) -> Patch:
    if patch.shape == (SIDE, SIDE):
        return np.asarray(patch)
    return cv2.resize(np.ascontiguousarray(patch), (SIDE, SIDE), interpolation=cv2.INTER_AREA)
