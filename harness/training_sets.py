"""What networks are trained on: folders in any installed form, as one data set."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from harness import datasets, registry
from harness.types import Dataset


def open_set(spec: str) -> Dataset:
    """All patches of one set.

    Args:
        spec: a folder, or a name from `harness data list`.

    Raises:
        LookupError: if it is neither.
        FileNotFoundError: if a named set is not here, or a file of it is missing.
        ValueError: if it is in no form that is known, or a file is damaged.
    """
    folder = _folder(spec)
    for form in registry.names("training"):
        found: Dataset | None = registry.load("training", form)(folder)
        if found is not None:
            return found
    forms = ", ".join(registry.names("training"))
    raise ValueError(
        f"{folder} holds no training data in a form that is known ({forms}): give the folder of"
        " PhotoTour scenes, of HPatches sequences, ..., or build one by `harness data build`"
    )


def joined(parts: Sequence[Dataset]) -> Dataset:
    """One data set of several; no point and no image is in two of them.

    Raises:
        ValueError: if one is there twice, or there is none.
    """
    if not parts:
        raise ValueError("no training data: give --data NAME or --data DIR")
    if len({part.sha256 for part in parts}) < len(parts):
        names = ", ".join(part.name for part in parts)
        raise ValueError(f"one training set is given twice: {names}")
    points, images = [], []
    next_point = next_image = 0
    for part in parts:
        points.append(part.point + next_point)
        images.append(part.image + next_image)
        next_point += int(part.point.max()) + 1
        next_image += int(part.image.max()) + 1
    return Dataset(
        name="+".join(part.name for part in parts),
        split="+".join(part.split for part in parts),
        blocks=tuple(block for part in parts for block in part.blocks),
        point=np.concatenate(points),
        image=np.concatenate(images),
        truth=" ".join(part.truth for part in parts),
        sources=frozenset().union(*(part.sources for part in parts)),
        complete=all(part.complete for part in parts),
    )


def _folder(spec: str) -> Path:
    folder = Path(spec) if Path(spec).is_dir() else datasets.path(spec)
    if folder is None:
        raise FileNotFoundError(f"{spec} is not here: harness data fetch {spec}")
    return folder
