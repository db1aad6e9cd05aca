"""What networks are trained on: folders in any installed form, as one data set."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from harness import datasets, registry
from harness.types import Dataset


def open_sets(specs: Sequence[str]) -> Dataset:
    """One data set of all patches of several; no point and no image is in two of them.

    Args:
        specs: folders, or names from `harness data list`.

    Raises:
        LookupError: if one is neither a folder nor a name.
        FileNotFoundError: if a named set is not here, or a file of one is missing.
        ValueError: if a folder is in no form that is known, or a file is damaged, or one is given
            twice.
    """
    if not specs:
        raise ValueError("no training data: give --data NAME or --data DIR")
    parts = [_open(spec) for spec in specs]
    seen: dict[str, str] = {}
    for spec, part in zip(specs, parts, strict=True):
        if seen.setdefault(part.sha256, spec) != spec or specs.count(spec) > 1:
            raise ValueError(f"{spec} is given twice (the other is {seen[part.sha256]})")
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


def _open(spec: str) -> Dataset:
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


def _folder(spec: str) -> Path:
    if Path(spec).is_dir():
        return Path(spec)
    names = [row.name for row in datasets.named(spec)]
    place = datasets.path(names[0]) if len(names) == 1 else datasets.path(spec)
    if place is None:
        raise FileNotFoundError(f"{spec} is not here: harness data fetch {spec}")
    return place
