"""Composes descriptors from descriptors: a change of vectors, or several vectors side by side.

Each is written twice, for NumPy arrays and for the tensors of an exported network.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Shaped

from harness.distances import HAMMING, L2, Distance
from harness.types import Descriptor, Patches, Vectors

NUMBERS = frozenset({"l2", "angle"})  # names of distances between vectors of numbers

Views = Callable[[Any], Sequence[Any]]  # of an array or tensor of patches: several of them


def after(
    base: Descriptor,
    change: Callable[[Vectors], Vectors],
    in_torch: Callable[[Any], Any] | None,
    *,
    distance: Distance | None = None,
    dim: int | None = None,
    stored: str | None = None,
) -> Descriptor:
    """A descriptor whose vectors are those of another one after a change.

    Args:
        base: the other descriptor.
        change: of its vectors, into a new array.
        in_torch: the same change of a tensor; None if it can't be exported.
        distance: between the new vectors; as before where None.
        dim: of the new vectors; as before where None.
        stored: as in `Descriptor.stored`.
    """
    made = None
    if in_torch:
        made = network([base], lambda patches, model: in_torch(model(patches)))
    return replace(
        base,
        describe=lambda patches: change(base.describe(patches)),
        distance=distance or base.distance,
        dim=dim or base.dim,
        stored=stored,
        network=made,
    )


def network(models: Sequence[Descriptor], combine: Callable[..., Any]) -> Callable[[], Any] | None:
    """The maker of a torch module that combines networks; None if a model has no network.

    Args:
        models: descriptors.
        combine: takes the tensor of patches, then the network of each model; returns vectors.
    """
    makers = [each.network for each in models if each.network]
    if len(makers) < len(models):
        return None

    def make() -> Any:
        from zoo.wrappers.module import Combined  # torch, which only an export needs

        return Combined([maker() for maker in makers], combine)

    return make


def side_by_side(model: Descriptor, views: Views, n: int) -> Descriptor:
    """The vectors of n views of a patch, one behind the other."""
    distance = HAMMING if model.distance is HAMMING else L2

    def describe(patches: Patches) -> Vectors:
        return joined(_described(model, patches, views), n * [model.dim], distance)

    def in_torch(patches: Any, model: Any) -> Any:
        import torch

        return torch.cat([model(view) for view in views(patches)], dim=1)

    return replace(
        model,
        describe=describe,
        distance=distance,
        dim=n * model.dim,
        network=network([model], in_torch) if fills_bytes([model]) else None,
    )


def mean(model: Descriptor, views: Views) -> Descriptor:
    """The mean of the vectors of several views of a patch, compared by L2."""

    def describe(patches: Patches) -> Vectors:
        vectors = _described(model, patches, views)
        return np.asarray(np.mean(vectors, axis=0, dtype=np.float64), np.float32)

    def in_torch(patches: Any, model: Any) -> Any:
        import torch

        vectors = [model(view) for view in views(patches)]
        return torch.stack(vectors).double().mean(dim=0).float()

    return replace(
        model,
        describe=describe,
        distance=L2,
        stored=None,
        network=network([model], in_torch),
    )


def joined(
    vectors: Sequence[Shaped[np.ndarray, "n _"]], dims: Sequence[int], distance: Distance
) -> Shaped[np.ndarray, "n all"]:
    """Vectors side by side; bits are packed again without the padding between them."""
    if distance is not HAMMING:
        return np.concatenate(vectors, axis=1)
    bits = [np.unpackbits(v, axis=1, count=dim) for v, dim in zip(vectors, dims, strict=True)]
    return np.packbits(np.concatenate(bits, axis=1), axis=1)


def fills_bytes(models: Sequence[Descriptor]) -> bool:
    """Whether no vector has padding, so that packed bits can be joined as bytes."""
    return all(each.distance is not HAMMING or each.dim % 8 == 0 for each in models)


def _described(model: Descriptor, patches: Patches, views: Views) -> list[Vectors]:
    return [model.describe(np.ascontiguousarray(view)) for view in views(patches)]
