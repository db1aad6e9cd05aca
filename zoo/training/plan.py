"""Trainings as `harness reproduce` plans them: settings, identity, cost, and the trained model."""

import inspect
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from harness.errors import InputError
from harness.trainings import APART
from harness.types import Descriptor
from zoo import card as cards
from zoo import trained
from zoo.training import loop
from zoo.training import recipe as recipes
from zoo.training.folder import CARD, WEIGHTS, model
from zoo.training.groups import Groups

IMAGE = 20  # points of an image, of the made-up points that `patches` counts with


def settled(
    spec: str, settings: Sequence[str], method: Mapping[str, Any], network: Mapping[str, Any]
) -> list[str]:
    """Settings, and the options that the method and the network of a recipe have.

    An option that a recipe leaves at None stays so: it turns off a part of the method.

    Args:
        spec: the recipe.
        settings: kept as they are, before the others.
        method: options of methods; one that the recipe's method lacks is left out.
        network: options of networks, likewise.
    """
    recipe = recipes.read(spec, settings, ["unknown"])
    changes = [*settings]
    asked = {"method": method, "network": network}
    for kind in recipes.KINDS:
        part: recipes.Part = getattr(recipe, kind)
        takes = inspect.signature(recipes.find(kind, part.name)).parameters
        changes += [
            f"{kind}.{name}={json.dumps(value)}"
            for name, value in asked[kind].items()
            if name in takes and part.options.get(name) is not None
        ]
    return changes


def identity(spec: str, settings: Sequence[str]) -> dict[str, Any]:
    """All settings that decide the weights, with the seed, but not the name."""
    found = recipes.identity(recipes.read(spec, settings, ["unknown"]))
    return {key: value for key, value in found.items() if key not in APART - {"seed"}}


def patches(spec: str, settings: Sequence[str], points: int, each: int) -> int:
    """Patches with a gradient in a whole training, on a training set of a known size.

    Args:
        spec: the recipe.
        settings: settings of the recipe.
        points: number of points of the training set.
        each: patches of each point.

    Raises:
        InputError: if the recipe's method does not say how many patches a batch has.
    """
    recipe = recipes.read(spec, settings, ["unknown"])
    method = recipes.make("method", recipe.method)
    point = np.repeat(np.arange(points), each)
    groups = Groups.of(point, point // IMAGE)
    try:
        in_batch = method.patches_per_step()
    except NotImplementedError:
        raise InputError(
            f"method {recipe.method.name!r} does not say how many patches a batch has: define"
            " `patches_per_step` in its class, or `pairs_per_step` if its batches are of pairs"
        ) from None
    return int(recipe.epochs * loop.steps_per_epoch(recipe, method, groups) * in_batch)


def opened(folder: Path, *, device: str, through_onnx: bool) -> Descriptor | None:
    """The descriptor of a finished training, or of an epoch whose weights were kept.

    Args:
        folder: of the training, or of the epoch.
        device: of ONNX Runtime.
        through_onnx: whether ONNX Runtime describes; false: PyTorch, on the CPU.
    """
    if through_onnx:
        return model(folder, device)
    return trained.by_torch(folder / WEIGHTS, cards.read(folder / CARD))
